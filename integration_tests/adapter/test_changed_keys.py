"""incremental_strategy='changed_keys': after each run the model is what its full refresh would be, of few keys."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.soak.random_batches import random_batches
from tablestore_engine.api import TableSpec, WriteSpec
from tests.doses import case_rows

ORDERS = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: orders}, {name: customers}]}]"
CONFIG = "materialized='incremental', incremental_strategy='changed_keys', unique_key='customer_id', affected_limit=1.0"
MODEL = """
{{{{ config({config}, affected_by={{'customers': 'id'}}) }}}}
select o.customer_id, max(c.name) as name, count(*) as orders, count(distinct o.product) as products,
       percentile(o.amount, 0.5) as median, sum(o.amount) as total
from {{{{ source('raw', 'orders') }}}} o join {{{{ source('raw', 'customers') }}}} c on c.id = o.customer_id
group by o.customer_id
"""
WINDOWED = """
{{{{ config({config}, affected_key='customer_id') }}}}
select id, customer_id, amount, row_number() over (partition by customer_id order by amount desc, id) as place
from {{{{ source('raw', 'orders') }}}}
"""


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """A shop with orders and customers that others write, and two models over them."""
    shop.write("models/feed.yml", SOURCES)
    shop.write("models/totals.sql", MODEL.format(config=CONFIG))
    config = CONFIG.replace("unique_key='customer_id'", "unique_key='id'")
    shop.write("models/places.sql", WINDOWED.format(config=config))
    customers(shop, *((n, f"n{n}") for n in range(1, 9)))
    orders(shop, *((n, n % 5 + 1, n % 3, n * 1.5) for n in range(1, 30)))
    return shop


def customers(shop: Shop, *pairs: tuple[int, str]) -> None:
    """Put some."""
    rows = pa.table({"id": [one for one, _ in pairs], "name": [name for _, name in pairs]})
    shop.engine.write("demo.customers", rows, ORDERS)


def orders(shop: Shop, *found: tuple[int, int, int, float]) -> None:
    """Put some: id, customer, product, amount."""
    columns = dict(zip(("id", "customer_id", "product", "amount"), zip(*found, strict=True), strict=True))
    shop.engine.write(
        "demo.orders", pa.table({name: list(values) for name, values in columns.items()}), ORDERS
    )


def run(shop: Shop) -> None:
    """Both models."""
    shop.dbt("run", "--select", "totals", "places")


def check(shop: Shop) -> None:
    """Each table is what its query gives now."""
    for model in ("totals", "places"):
        text = (shop.folder / f"target/compiled/shop/models/{model}.sql").read_text()
        assert Counter(shop.rows(f"select * from demo.{model}")) == Counter(shop.rows(text)), model


def newest(shop: Shop, model: str) -> int:
    """Id of the newest snapshot."""
    return shop.engine.table(f"demo.{model}").latest_snapshot_id() or 0


def keys_changed(shop: Shop, model: str, since: int, key: str = "customer_id") -> set[Any]:
    """Whose rows changed."""
    return {one[key] for one in shop.engine.table(f"demo.{model}").changes(since).to_pylist()}


def test_only_affected_keys_are_written(feed: Shop) -> None:
    """An update, a row that moves to another key, a delete that empties a key, a renamed customer, a late row."""
    run(feed)
    check(feed)
    before = newest(feed, "totals")
    run(feed)
    assert newest(feed, "totals") == before
    orders(feed, (1, 3, 9, 100.0))  # was customer 2's
    run(feed)
    check(feed)
    assert keys_changed(feed, "totals", before) == {2, 3}
    before = newest(feed, "totals")
    feed.engine.sql("delete from demo.orders where customer_id = 5")
    run(feed)
    check(feed)
    assert feed.rows("select count(*) from demo.totals where customer_id = 5") == [(0,)]
    assert keys_changed(feed, "totals", before) == {5}
    before = newest(feed, "totals")
    customers(feed, (4, "other"), (8, "nobody's"))
    run(feed)
    check(feed)
    assert keys_changed(feed, "totals", before) == {4}
    assert "all rows are compared" not in feed.log


@pytest.mark.nightly  # by day only affected keys are written; pipelines
def test_unchanged_rows_of_affected_keys_are_no_changes(feed: Shop) -> None:
    """A run commits the difference: of a customer's rows only the one whose values differ is in the changelog."""
    run(feed)
    before = {model: newest(feed, model) for model in ("totals", "places")}
    orders(feed, (6, 2, 0, 9.25))  # a little more, and still at the same place
    feed.dbt("run", "--select", "totals", "places")
    check(feed)
    assert keys_changed(feed, "places", before["places"], "id") == {6}
    response = feed.response("places")
    assert (response["rows_updated"], response["rows_affected"], response["keys_affected"]) == (1, 1, 1)
    before["places"] = newest(feed, "places")
    feed.engine.sql("update demo.orders set product = 7 where id = 6")  # which places does not read
    customers(feed, (2, "n2 too"))
    run(feed)
    check(feed)
    assert keys_changed(feed, "places", before["places"], "id") == set()
    assert feed.response("totals")["rows_updated"] == 1


@pytest.mark.nightly
def test_the_generic_test_sees_a_wrong_row(feed: Shop) -> None:
    """equals_full_refresh is green behind each run, and while inputs move on; red for a row that is wrong or missing.
    In dbt build it lets a right model go. A model whose SQL was edited since is not compared with what it never was.
    """
    feed.write("models/t.yml", "models: [{name: totals, data_tests: [equals_full_refresh]}]")
    feed.dbt("build", "--select", "totals")
    assert newest(feed, "totals") == 1
    orders(feed, (1, 3, 9, 100.0))
    feed.dbt("test", "--select", "totals")
    feed.dbt("build", "--select", "totals")
    assert newest(feed, "totals") == 2
    for past in (
        "{orders: 1}",
        "{totals: 1}",
        "{totals: 1, orders: 1}",
    ):  # what rows were made from is no choice
        feed.dbt("test", "--select", "totals", "--vars", f"{{tablestore_as_of: {past}}}")
    for change in (
        "update demo.totals set total = 0 where customer_id = 1",
        "delete from demo.totals where customer_id = 2",
    ):
        feed.engine.sql(change)
        feed.dbt("test", "--select", "totals", ok=False)
        feed.engine.table("demo.totals").rollback(2)
    feed.dbt("test", "--select", "totals")
    feed.write("models/totals.sql", MODEL.format(config=CONFIG).replace("sum(o.amount)", "2 * sum(o.amount)"))
    feed.dbt("compile", "--select", "totals")
    feed.dbt("test", "--select", "totals", ok=False)
    assert "TS1840" in feed.log


@pytest.mark.nightly
def test_random_batches(tmp_path: Path) -> None:
    """Puts, moves and deletes of both inputs in any order: always the full refresh, and what Python computes."""
    counts = random_batches(20261124, 8, tmp_path)
    assert counts["models tested against their full refresh"] == 24


@pytest.mark.parametrize(
    ("act", "reason"),
    case_rows(
        [
            (
                lambda shop: orders(shop, *((n, 1, 0, 0.0) for n in range(1, 10_100))),
                "rows of demo.orders changed",
            ),
            (lambda shop: shop.engine.table("demo.orders").rollback(1), "which changes of"),
            (lambda shop: shop.engine.table("demo.totals").rollback(1), ""),
        ],
        1,
    ),
    ids=["many rows", "an input that was rolled back", "rolled back itself"],
)
def test_all_rows_are_compared_where_changes_do_not_do(feed: Shop, act: Any, reason: str) -> None:
    """It says why, and is right; a model that was rolled back follows from where it is."""
    feed.write("models/totals.sql", MODEL.format(config=CONFIG.replace("1.0", "0.5")))
    run(feed)
    orders(feed, (50, 1, 1, 1.0))
    run(feed)
    act(feed)
    run(feed)
    check(feed)
    assert (reason in feed.log) if reason else ("demo.totals: all rows" not in feed.log)
    assert ("demo.totals: all rows are compared" in feed.log) is bool(reason)


@pytest.mark.nightly  # by day an input that was rolled back, above
def test_an_input_that_was_made_anew(feed: Shop) -> None:
    """Another table of the name: all rows are compared, and the old one's position is forgotten."""
    run(feed)
    feed.engine.drop_table("demo.customers")
    customers(feed, (1, "new"), (3, "c"))
    run(feed)
    check(feed)
    assert "demo.totals: all rows are compared: it has not read demo.customers yet" in feed.log
    assert len(feed.engine.table("demo.totals").positions()) == 3
    feed.dbt("run", "--select", "totals", "--full-refresh")
    orders(feed, (60, 1, 1, 1.0))
    run(feed)
    check(feed)
    assert "demo.totals: all rows are compared" not in feed.log


def test_another_query(feed: Shop) -> None:
    """Rows that no change affects are other rows then."""
    run(feed)
    feed.write("models/totals.sql", MODEL.format(config=CONFIG).replace("sum(o.amount)", "2 * sum(o.amount)"))
    run(feed)
    check(feed)
    assert "demo.totals: all rows are compared: its SQL changed" in feed.log


def test_what_is_refused(feed: Shop) -> None:
    """A name that is no input, a model that reads itself, expressions that do not fit, another strategy."""
    good = MODEL.format(config=CONFIG)
    for code, text in (
        ("TS1872", good.replace("'customers': 'id'", "'customer': 'id'")),
        ("TS1837", good.replace("'id'}", "['id', 'name']}")),
        ("TS1837", good.replace("changed_keys", "merge")),
        ("TS1837", good.replace("affected_limit=1.0", "affected_limit=7")),
    ):
        feed.write("models/totals.sql", text)
        feed.dbt("run", "--select", "totals", ok=False)
        assert code in feed.log
    feed.write("models/totals.sql", good)
    feed.dbt("run", "--select", "totals")
    feed.write("models/totals.sql", good + " having count(*) > (select 0 * count(*) from {{ this }})")
    feed.dbt("run", "--select", "totals", ok=False)
    assert "TS1839" in feed.log


def test_an_input_whose_changes_say_too_little(shop: Shop) -> None:
    """Keyed, without a changelog: which key a row has left is nowhere, so all rows are compared; and none when it is as
    it was.
    """
    silent = WriteSpec(table=TableSpec(primary_key=("id",), options={"changelog-producer": "none"}))
    shop.write("models/feed.yml", SOURCES)
    shop.write(
        "models/totals.sql",
        f"{{{{ config({CONFIG}) }}}} select customer_id, count(*) as orders "
        "from {{ source('raw', 'orders') }} group by customer_id",
    )
    for customer, expected in (("a", [("a", 1)]), ("b", [("b", 1)]), ("b", [("b", 1)])):
        if expected != shop_rows(shop):
            shop.engine.write("demo.orders", pa.table({"id": [1], "customer_id": [customer]}), silent)
        shop.dbt("run", "--select", "totals")
        assert shop_rows(shop) == expected
    assert "all rows" not in shop.log


def shop_rows(shop: Shop) -> list[tuple[object, ...]]:
    """Of the totals, once they are there."""
    return shop.rows("select * from demo.totals") if "totals" in shop.tables() else []
