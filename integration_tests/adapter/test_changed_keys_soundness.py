"""changed_keys is never silently wrong: a model is its full query, or takes the slow way and says so, or is refused.

Each test names a shape that gave wrong rows without an error while one expression per input name led to the key.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec

KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
CONFIG = "materialized='incremental', incremental_strategy='changed_keys', affected_limit=1.0"
PEOPLE, ORDERS, PRODUCTS = (f"{{{{ source('raw', '{name}') }}}}" for name in ("people", "orders", "products"))
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: people}, {name: orders}, {name: products}]}]"


RESTRICTED = ("affected keys", "deltas")


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """A shop with three tables that others write."""
    return fed(shop)


def fed(shop: Shop) -> Shop:
    """The shop, with the tables."""
    shop.write("models/feed.yml", SOURCES)
    put(shop, "people", {"id": [1, 2, 3, 4], "name": ["ann", "bob", "cay", "dan"], "boss": [1, 1, 2, 2]})
    put(
        shop,
        "orders",
        {"id": [1, 2, 3, 4], "customer": [1, 1, 2, 3], "product": [7, 8, 7, 9], "amount": [1, 2, 3, 4]},
    )
    put(shop, "products", {"id": [7, 8, 9], "name": ["pen", "cup", "hat"]})
    return shop


def put(shop: Shop, table: str, columns: dict[str, list[object]]) -> None:
    """Rows of a source."""
    shop.engine.write(f"demo.{table}", pa.table(columns), KEYED)


def model(shop: Shop, name: str, sql: str, key: str = "id", more: str = "") -> None:
    """A changed_keys model."""
    shop.write(f"models/{name}.sql", f"{{{{ config({CONFIG}, unique_key='{key}'{more}) }}}}\n{sql}\n")


def run(shop: Shop, *names: str, evaluated: str | None = None) -> None:
    """Each model equals its full query, and was computed in this way; None: not by a comparison of all rows."""
    shop.dbt("run", "--select", *names)
    for name in names:
        check(shop, name)
        found = shop.response(name)["evaluated"]
        assert found == evaluated or (evaluated is None and found in RESTRICTED), shop.response(name)


def check(shop: Shop, name: str) -> None:
    """The table is what its query gives now."""
    text = (shop.folder / f"target/compiled/shop/models/{name}.sql").read_text()
    assert Counter(shop.rows(f"select * from demo.{name}")) == Counter(shop.rows(text)), name


@pytest.mark.nightly  # by day tests/laws/test_node_trace_laws.py; spark/test_traced_stars.py
def test_self_join_change_reaches_rows_of_the_other_role(feed: Shop) -> None:
    """Renaming the boss changes the rows of the staff; a star of four tables needs no configuration."""
    model(
        feed,
        "staff",
        f"select e.id, e.name, b.name as boss from {PEOPLE} e left join {PEOPLE} b on e.boss = b.id",
    )
    model(
        feed,
        "lines",
        f"select o.id, c.name, p.name as product, b.name as boss, o.amount from {ORDERS} o "
        f"left join {PEOPLE} c on c.id = o.customer left join {PRODUCTS} p on p.id = o.product "
        f"left join {PEOPLE} b on b.id = c.boss",
    )
    run(feed, "staff", "lines", evaluated="all rows")
    put(feed, "people", {"id": [2], "name": ["rob"], "boss": [1]})
    run(feed, "staff", "lines")
    assert feed.response("staff")["keys_affected"] == 3
    put(feed, "products", {"id": [7], "name": ["pencil"]})
    feed.engine.sql("delete from demo.people where id = 1")
    run(feed, "staff", "lines")


def test_column_of_the_same_name_that_no_join_uses_is_not_followed(feed: Shop) -> None:
    """A customer's change touches the orders of that customer, not the orders with the customer's id."""
    model(feed, "named", f"select o.id, c.name from {ORDERS} o left join {PEOPLE} c on o.customer = c.id")
    run(feed, "named", evaluated="all rows")
    put(feed, "people", {"id": [3], "name": ["kay"], "boss": [2]})
    run(feed, "named")
    assert feed.rows("select name from demo.named where id = 4") == [("kay",)]
    assert feed.response("named")["keys_affected"] == 1


@pytest.mark.nightly  # by day test_keyed_streaming.py: a column dropped and added
def test_swapped_input_columns_compare_all_rows(feed: Shop) -> None:
    """Three renames that swap two columns, and a column that is dropped and added again, are other columns."""
    model(
        feed, "sums", f"select customer as id, sum(amount) as a, sum(product) as p from {ORDERS} group by 1"
    )
    run(feed, "sums", evaluated="all rows")
    for old, new in (("amount", "x"), ("product", "amount"), ("x", "product")):
        feed.engine.sql(f"alter table demo.orders rename column {old} to {new}")
    run(feed, "sums", evaluated="all rows")
    assert "column of an input" in feed.response("sums")["fallback"]
    feed.engine.sql("alter table demo.orders drop column amount")
    feed.engine.sql("alter table demo.orders add column amount bigint")
    run(feed, "sums", evaluated="all rows")
    feed.engine.sql("alter table demo.orders add column note string")
    run(feed, "sums")


def test_changed_view_function_and_setting_compare_all_rows(feed: Shop) -> None:
    """The text of a view, of a view over a view, of an ephemeral model, a header's function and a setting of Spark."""
    feed.write(
        "models/base.sql", f"{{{{ config(materialized='view') }}}} select * from {ORDERS} where amount > 1"
    )
    feed.write("models/inner.sql", "{{ config(materialized='view') }} select * from {{ ref('base') }}")
    feed.write(
        "models/eph.sql",
        "{{ config(materialized='ephemeral') }} select * from {{ ref('inner') }} where id > 0",
    )
    header = (
        "{% call set_sql_header(config) %}create or replace temporary function add_one(x bigint) "
        "returns bigint return x + 1{% endcall %}\n"
    )
    model(feed, "seen", header + "select id, add_one(amount) as amount from {{ ref('eph') }}")
    for select in ("base", "inner"):
        feed.dbt("run", "--select", select)
    run(feed, "seen", evaluated="all rows")
    feed.write(
        "models/base.sql", f"{{{{ config(materialized='view') }}}} select * from {ORDERS} where amount > 2"
    )
    feed.dbt("run", "--select", "base")
    run(feed, "seen", evaluated="all rows")
    assert len(feed.rows("select * from demo.seen")) == 2
    feed.write(
        "models/eph.sql",
        "{{ config(materialized='ephemeral') }} select * from {{ ref('inner') }} where id > 3",
    )
    run(feed, "seen", evaluated="all rows")
    model(
        feed,
        "seen",
        header.replace("+ 1", "+ 2") + "select id, add_one(amount) as amount from {{ ref('eph') }}",
    )
    run(feed, "seen", evaluated="all rows")
    assert feed.rows("select amount from demo.seen") == [(6,)]
    before = str(feed.engine.spark.conf.get("spark.sql.session.timeZone"))
    feed.engine.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        run(feed, "seen", evaluated="all rows")
    finally:
        feed.engine.spark.conf.set("spark.sql.session.timeZone", before)


def test_is_incremental_is_false_with_a_warning(feed: Shop) -> None:
    """Rows outside of the incremental branch stay, and the test compares with the query of a full refresh."""
    feed.write("models/t.yml", "models: [{name: part, data_tests: [equals_full_refresh]}]")
    model(
        feed,
        "part",
        f"select id, amount from {ORDERS} {{% if is_incremental() %}} where id > 2 {{% endif %}}",
    )
    feed.dbt("build", "--select", "part")
    put(feed, "orders", {"id": [5, 1], "customer": [1, 1], "product": [7, 7], "amount": [5, 10]})
    feed.dbt("build", "--select", "part")
    assert sorted(feed.rows("select * from demo.part")) == [(1, 10), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert "is_incremental() is false with incremental_strategy='changed_keys'" in "\n".join(feed.shown)


@pytest.mark.nightly  # by day test_changed_keys.py: what is refused
def test_corrected_affected_by_and_unknown_names(feed: Shop) -> None:
    """affected_by cannot make a proven model wrong; where nothing is proven, a corrected one compares all rows; a name
    that the query does not read is an error before anything is written.
    """
    proven = f"select o.id, c.name from {ORDERS} o left join {PEOPLE} c on o.customer = c.id"
    model(feed, "named", proven, more=", affected_by={'people': 'id'}")
    run(feed, "named", evaluated="all rows")
    put(feed, "people", {"id": [3], "name": ["kay"], "boss": [2]})
    run(feed, "named")
    ranked = f"select id, customer, sum(amount) over (order by customer range 0 preceding) as s from {ORDERS}"
    model(feed, "ranked", ranked, more=", affected_key='customer', affected_by={'orders': 'customer + 1'}")
    run(feed, "ranked", evaluated="all rows")
    assert "affected_by of demo.orders is not proven by the query" in "\n".join(feed.shown)
    put(feed, "orders", {"id": [2], "customer": [1], "product": [8], "amount": [20]})
    feed.dbt("run", "--select", "ranked")
    assert feed.rows("select max(s) from demo.ranked where customer = 1") == [(3,)]  # as the user has said
    model(feed, "ranked", ranked, more=", affected_key='customer', affected_by={'orders': 'customer'}")
    run(feed, "ranked", evaluated="all rows")
    put(feed, "orders", {"id": [2], "customer": [1], "product": [8], "amount": [30]})
    run(feed, "ranked")
    model(feed, "named", proven, more=", affected_by={'poeple': 'id'}")
    feed.dbt("run", "--select", "named", ok=False)
    assert "TS1872" in feed.log


def test_query_without_proof_compares_all_rows_with_its_clause_or_is_refused(feed: Shop) -> None:
    """An average over all rows is right and slow, the clause is a warning; `fallback: error` refuses it at once."""
    model(feed, "ranked", f"select id, avg(cast(amount as double)) over () as place from {ORDERS}")
    run(feed, "ranked", evaluated="all rows")
    assert "a window function without PARTITION BY" in "\n".join(feed.shown)
    put(feed, "orders", {"id": [1], "customer": [1], "product": [7], "amount": [100]})
    run(feed, "ranked", evaluated="all rows")
    assert feed.response("ranked")["fallback"] == "a window function without PARTITION BY (over demo.orders)"
    feed.dbt("run", "--select", "ranked")
    assert feed.response("ranked")["fallback"] == ""
    strict = ", changed_keys={'fallback': 'error'}"
    model(
        feed, "strict", f"select id, avg(cast(amount as double)) over () as place from {ORDERS}", more=strict
    )
    feed.dbt("run", "--select", "strict", ok=False)
    assert "TS1870" in feed.log
    assert "strict" not in feed.tables()


def test_volatile_function_is_refused_unless_allowed(feed: Shop) -> None:
    """current_date() makes another row each day: refused before anything is written, or allowed by name."""
    model(feed, "dated", f"select id, amount, current_date() as day from {ORDERS}")
    feed.dbt("run", "--select", "dated", ok=False)
    assert "TS1871" in feed.log
    assert "dated" not in feed.tables()
    allowed = ", changed_keys={'volatile': 'allowed'}"
    model(feed, "dated", f"select id, amount, current_date() as day from {ORDERS}", more=allowed)
    run(feed, "dated", evaluated="all rows")
    put(feed, "orders", {"id": [1], "customer": [1], "product": [7], "amount": [100]})
    run(feed, "dated")
    for wrong in ("{'volatile': 'yes'}", "{'fallbak': 'warn'}"):
        model(feed, "dated", f"select id, amount from {ORDERS}", more=f", changed_keys={wrong}")
        feed.dbt("run", "--select", "dated", ok=False)
        assert "TS1811" in feed.log or "TS1837" in feed.log


def test_small_table_is_followed_whatever_its_limit_is(feed: Shop) -> None:
    """affected_limit does not make a run over a few rows compare everything."""
    limit = CONFIG.replace("1.0", "0.0")
    feed.write(
        "models/few.sql", f"{{{{ config({limit}, unique_key='id') }}}} select id, amount from {ORDERS}"
    )
    run(feed, "few", evaluated="all rows")
    put(feed, "orders", {"id": [1, 2, 3], "customer": [1, 1, 1], "product": [7, 7, 7], "amount": [9, 9, 9]})
    run(feed, "few")


def test_compile_reports_how_inputs_are_followed_and_what_forces_a_comparison(feed: Shop) -> None:
    """`dbt compile` names the tables that find keys by a join, the clause of a full comparison, and refuses what a run
    refuses; a model whose input does not exist yet compiles.
    """
    model(feed, "named", f"select o.id, c.name from {ORDERS} o left join {PEOPLE} c on o.customer = c.id")
    model(feed, "ranked", f"select id, avg(cast(amount as double)) over () as place from {ORDERS}")
    model(feed, "later", "select id from {{ ref('named') }}")
    feed.dbt("compile", "--select", "named", "ranked", "later")
    told = "\n".join(feed.shown)
    assert "demo.named: changes of demo.orders give their keys without reading another table" in told
    assert "demo.named: changes of demo.people find their keys by a join with demo.orders" in told
    assert "compares all rows: a window function without PARTITION BY (over demo.orders)" in told
    assert "demo.later: its inputs are analyzed when it runs" in told
    model(feed, "dated", f"select id, now() as at from {ORDERS}")
    feed.dbt("compile", "--select", "dated", ok=False)
    assert "TS1871" in feed.log


@pytest.mark.nightly  # by day test_changed_keys_deltas.py: rows that others change
def test_primary_key_of_an_unaffected_row_is_refused(feed: Shop) -> None:
    """With affected_key, a new row that takes the unique_key of a row of another key is an error, as in a full refresh;
    a row that moves to another key is not.
    """
    sql = f"select c.name, o.customer, count(*) as n from {ORDERS} o join {PEOPLE} c on c.id = o.customer group by 1, 2"
    model(feed, "names", sql, key="name", more=", affected_key='customer'")
    run(feed, "names", evaluated="all rows")
    put(feed, "people", {"id": [2], "name": ["bert"], "boss": [1]})
    run(feed, "names")
    put(feed, "people", {"id": [2], "name": ["cay"], "boss": [1]})
    feed.dbt("run", "--select", "names", ok=False)
    assert "TS1601" in feed.log
    put(feed, "people", {"id": [2, 3], "name": ["cay", "bert"], "boss": [1, 1]})
    run(feed, "names")


@pytest.mark.nightly  # by day spark/test_traced_query.py; test_changed_keys_deltas.py
def test_a_null_among_the_affected_keys_finds_its_rows(feed: Shop) -> None:
    """NULL is a key as any other; without one among the affected keys, keys are joined by `=`."""
    sql = f"select id, boss, count(*) over (partition by boss) as n from {PEOPLE}"
    model(feed, "teams", sql, more=", affected_key='boss'")
    put(feed, "people", {"id": [5, 6], "name": ["eve", "fay"], "boss": [None, None]})
    run(feed, "teams", evaluated="all rows")
    for people in ({"id": [5], "boss": [1]}, {"id": [1], "boss": [None]}, {"id": [3], "boss": [1]}):
        put(feed, "people", {**people, "name": ["new"]})
        run(feed, "teams")


@pytest.mark.nightly  # by day spark/test_equal_values.py
def test_key_of_numbers_with_two_zeros_compares_all_rows(feed: Shop) -> None:
    """SQL joins 0.0 with -0.0, the table has a row for each: of 0.0 that becomes -0.0 the former row has to go."""
    numbers = "{{ source('raw', 'numbers') }}"
    feed.write("models/feed.yml", SOURCES.replace("{name: products}", "{name: products}, {name: numbers}"))
    put(feed, "numbers", {"id": [1, 2], "d": [0.0, 1.0], "f": [1, 2]})
    model(feed, "signed", f"select d, f from {numbers}", key="d")
    model(feed, "places", f"select id, d, f from {numbers}", key="d", more=", affected_key='id'")
    run(feed, "signed", "places", evaluated="all rows")
    put(feed, "numbers", {"id": [1], "d": [-0.0], "f": [1]})
    run(feed, "signed", "places", evaluated="all rows")
    for name in ("signed", "places"):
        assert "equal values can differ (d)" in feed.response(name)["fallback"]
        found = feed.rows(f"select cast(d as string) as d from demo.{name} order by 1")
        assert found == [("-0.0",), ("1.0",)]


def test_the_warehouse_itself_is_no_constant(feed: Shop) -> None:
    """What information_schema says changes with every statement: a model by changed keys would miss that."""
    names = (
        "(select table_name, row_number() over (order by table_name) as id from information_schema.tables)"
    )
    text = f"select o.id, n.table_name from {ORDERS} o join {names} n on n.id = o.id"
    model(feed, "inventory", text)
    feed.dbt("run", "--select", "inventory", ok=False)
    assert "TS1871" in feed.log
