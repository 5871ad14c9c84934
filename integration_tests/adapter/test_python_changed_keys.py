"""Python models by changed_keys: the code runs for affected keys alone, and the table equals the code over all rows."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_changed_keys import SOURCES, customers, keys_changed, newest, orders
from tablestore_engine.api import Engine
from tests.doses import case_rows, examples

CONFIG = (
    "materialized='incremental', incremental_strategy='changed_keys', unique_key='customer_id', affected_limit=1.0, "
    "changed_keys={'strategy': 'affected_keys'}"
)
KEYED = "affected_by={'orders': 'customer_id', 'customers': 'id'}"
# what the code has seen of its inputs goes into a file beside the project
TOTALS = """
import json
import polars as pl
import pathlib


def model(dbt, session):
    dbt.config({config}, dataframe="polars")
    orders, customers = dbt.source("raw", "orders"), dbt.source("raw", "customers")
    with pathlib.Path("{seen}").open("a") as file:
        file.write(json.dumps([sorted(orders["id"].to_list()), sorted(customers["id"].to_list())]) + "\\n")
    named = orders.join(customers, left_on="customer_id", right_on="id", how="left")
    return named.group_by("customer_id").agg(
        pl.col("name").max(), pl.col("amount").sum(), pl.col("product").n_unique().cast(pl.Int64).alias("products")
    )
"""
SPARK = """
from pyspark.sql import functions as sf


def model(dbt, session):
    dbt.config({config})
    dbt.ref("joined").createOrReplaceTempView("j")
    return session.sql("select customer_id, max(name) as name, sum(amount) as amount from j group by customer_id")
"""
VIEW = (
    "{{ config(materialized='view') }} select o.*, c.name from {{ source('raw', 'orders') }} o "
    "left join {{ source('raw', 'customers') }} c on c.id = o.customer_id"
)
ODD = """
import polars as pl


def model(dbt, session):
    dbt.config({config}, dataframe="polars")
    orders = dbt.source("raw", "orders")
    {body}
"""


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """A shop with orders and customers that others write, and a model."""
    shop.write("models/feed.yml", SOURCES)
    customers(shop, *((n, f"n{n}") for n in range(1, 9)))
    orders(shop, *((n, n % 5 + 1, n % 3, n * 1.5) for n in range(1, 30)))
    write(shop, TOTALS, KEYED)
    return shop


def write(shop: Shop, text: str, by: str) -> None:
    """The model."""
    shop.write("models/m.py", text.format(config=f"{CONFIG}, {by}", seen=shop.folder / "seen"))


class WholeInputs:
    """What `dbt` is to the code of a model, over all rows."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def config(self, **_: object) -> None:
        """Nothing to decide."""

    def source(self, _: str, name: str) -> pl.DataFrame:
        """All rows of a table."""
        return pl.DataFrame(self.engine.table(f"demo.{name}").scan().to_arrow())

    def ref(self, name: str) -> Any:
        """All rows of a view, as Spark has them."""
        return self.engine.query(f"select * from demo.{name}")


def run(shop: Shop, *words: str) -> None:
    """The table is what the code gives over all rows."""
    (shop.folder / "seen").unlink(missing_ok=True)
    shop.dbt("run", "--select", "+m", *words)
    code: dict[str, Any] = {}
    exec((shop.folder / "models/m.py").read_text().replace(str(shop.folder / "seen"), "/dev/null"), code)
    found = code["model"](WholeInputs(shop.engine), shop.engine.spark)
    rows = found.rows() if isinstance(found, pl.DataFrame) else map(tuple, found.collect())
    assert Counter(shop.rows("select * from demo.m")) == Counter(rows)


def seen(shop: Shop) -> list[list[list[int]]]:
    """Ids of orders and customers, for each time that the code ran."""
    path = shop.folder / "seen"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_code_sees_rows_of_affected_keys_alone(feed: Shop) -> None:
    """A row that moves to another key, a key that loses its rows, a renamed customer; without changes no code runs."""
    run(feed)
    assert [len(one) for one in seen(feed)[0]] == [29, 8]
    run(feed)
    assert seen(feed) == []
    before = newest(feed, "m")
    orders(feed, (1, 3, 9, 100.0))  # was customer 2's
    run(feed)
    assert feed.response("m")["evaluated"] == "affected keys"
    assert feed.response("m")["keys_affected"] == 2
    of_both = [n for n in range(1, 30) if n == 1 or n % 5 + 1 in (2, 3)]
    assert seen(feed) == [[of_both, [2, 3]]]
    assert keys_changed(feed, "m", before) == {2, 3}
    feed.engine.sql("delete from demo.orders where customer_id = 5")
    run(feed)
    assert feed.rows("select count(*) from demo.m where customer_id = 5") == [(0,)]
    customers(feed, (4, "other"), (8, "nobody's"))
    run(feed)
    assert seen(feed) == [[[n for n in range(1, 30) if n % 5 + 1 == 4], [4, 8]]]


def test_an_input_that_affected_by_does_not_name_is_read_whole(feed: Shop) -> None:
    """Its changes run the code over all rows, with the reason; changes of the other input do not."""
    write(feed, TOTALS, "affected_by={'demo.orders': 'customer_id'}")
    run(feed)
    orders(feed, (1, 3, 9, 100.0))
    run(feed)
    assert [len(one) for one in seen(feed)[0]] == [12, 8]
    customers(feed, (4, "other"))
    run(feed)
    assert [len(one) for one in seen(feed)[0]] == [29, 8]
    assert feed.response("m")["fallback"] == "a change of demo.customers, which affected_by does not name"


def test_a_view_over_two_tables_is_followed(feed: Shop) -> None:
    """The engine proves which keys of a view changed, whatever table below it did; SQL may read frames as views."""
    feed.write("models/joined.sql", VIEW)
    write(feed, SPARK, "affected_by={'joined': 'customer_id'}")
    run(feed)
    customers(feed, (4, "other"))
    orders(feed, (7, 6, 9, 1.0), (40, 1, 1, 2.0))
    run(feed)
    assert (feed.response("m")["evaluated"], feed.response("m")["keys_affected"]) == ("affected keys", 4)
    feed.write(
        "models/joined.sql", VIEW.replace("o.*", "o.id, o.customer_id, o.product, o.amount * 2 as amount")
    )
    run(feed)
    assert feed.response("m")["evaluated"] == "all rows"


def test_other_code_config_or_columns_run_over_all_rows(feed: Shop) -> None:
    """The rows of before say nothing then: new code, another config that the code can read, a new column."""
    run(feed)
    write(feed, TOTALS.replace('pl.col("amount").sum()', 'pl.col("amount").max()'), KEYED)
    run(feed)
    assert feed.response("m")["fallback"] == "its SQL changed"
    write(feed, TOTALS.replace('pl.col("amount").sum()', 'pl.col("amount").max()'), KEYED + ", meta={'a': 1}")
    run(feed)
    assert feed.response("m")["evaluated"] == "all rows"
    feed.engine.sql("alter table demo.orders add column note string")
    feed.engine.sql("update demo.orders set amount = 100 where id = 1")
    run(feed)
    assert [len(one) for one in seen(feed)[0]] == [29, 8]
    run(feed)
    assert seen(feed) == []


def test_a_test_runs_the_code_over_all_rows(feed: Shop) -> None:
    """equals_full_refresh is green while inputs move on, and red for code that does not obey its declaration."""
    feed.write("models/t.yml", "models: [{name: m, data_tests: [equals_full_refresh]}]")
    feed.dbt("build", "--select", "m")
    orders(feed, (1, 3, 9, 100.0))
    feed.dbt("test", "--select", "m")
    feed.dbt("build", "--select", "m")
    assert newest(feed, "m") == 2
    body = "return orders.group_by('customer_id').agg(pl.lit(orders.height).alias('n'))"
    feed.write(
        "models/m.py", ODD.format(config=f"{CONFIG}, affected_by={{'orders': 'customer_id'}}", body=body)
    )
    feed.dbt("build", "--select", "m", "--full-refresh")
    orders(feed, (1, 4, 9, 100.0))
    feed.dbt("build", "--select", "m", ok=False)
    assert "FAIL" in feed.log
    assert newest(feed, "m") == 3


@pytest.mark.parametrize(
    ("body", "by", "code"),
    case_rows(
        [
            ("return pl.DataFrame({'customer_id': [orders['customer_id'].max(), 77], 'n': [1, orders.height]})",
             "{'orders': 'customer_id'}", "TS2012"),
            ("return orders.select(pl.col('customer_id').cast(pl.String), 'id').unique('customer_id')",
             "{'orders': 'customer_id'}", "TS2013"),
            ("return orders.select('id')", "{'orders': 'customer_id'}", "TS2013"),
            ("return session.sql('select customer_id, id from demo.orders')", "{'orders': 'customer_id'}", "TS2015"),
            ("return session.table(str(dbt.this))", "{'orders': 'customer_id'}", "TS1896"),
            ("return orders", "{'customers': 'id'}", "TS1872"),
            ("return orders", "{'orders': 'rand()'}", "TS1871"),
        ],
        4,
    ),
)  # fmt: skip
def test_code_that_does_not_obey_is_refused(feed: Shop, body: str, by: str, code: str) -> None:
    """Rows of other keys, another type of the key, tables by the session, unknown inputs: an error, no commit."""
    feed.write("models/m.py", ODD.format(config=f"{CONFIG}, affected_by={by}", body=body))
    if code == "TS2012":
        feed.dbt("run", "--select", "m")
        orders(feed, (1, 3, 9, 100.0))
    before = feed.engine.find_table("demo.m")
    feed.dbt("run", "--select", "m", ok=False)
    assert code in feed.log
    after = feed.engine.find_table("demo.m")
    assert (after and after.latest_snapshot_id()) == (before and before.latest_snapshot_id())


def test_changed_keys_without_affected_by_is_refused(feed: Shop) -> None:
    """Nothing says then which keys a change affects."""
    feed.write("models/m.py", ODD.format(config=CONFIG, body="return orders"))
    feed.dbt("run", "--select", "m", ok=False)
    assert "TS1893" in feed.log


def test_rows_with_columns_of_their_own_run_over_all_rows(feed: Shop) -> None:
    """Few rows may have other types than all: they do not replace the table."""
    body = (
        "n = pl.col('id').sum()\n    n = n if orders.height > 12 else n.cast(pl.Float64)\n"
        "    return orders.group_by('customer_id').agg(n.alias('n'))"
    )
    text = ODD.format(config="{config}", body=body)
    write(feed, text, "affected_by={'orders': 'customer_id'}")
    run(feed)
    orders(feed, (1, 2, 9, 100.0))
    run(feed)
    assert feed.rows("select count(*) from demo.m") == [(5,)]
    assert feed.response("m")["fallback"] == "the columns of its rows are not those of its table"


def test_random_changes_equal_a_full_run(feed: Shop, tmp_path: Path) -> None:
    """Rounds of puts and deletes in both inputs: the table is what its code gives over all rows."""
    rng = random.Random(20261130)
    run(feed)
    for _ in range(examples(2, 40)):
        for _ in range(rng.randint(1, 3)):
            orders(
                feed,
                *(
                    (rng.randint(1, 40), rng.randint(1, 9), rng.randint(0, 3), rng.randint(0, 9) / 2)
                    for _ in range(rng.randint(1, 6))
                ),
            )
        if rng.random() < 0.5:
            feed.engine.sql(f"delete from demo.orders where id % {rng.randint(3, 9)} = 1")
        if rng.random() < 0.5:
            customers(feed, (rng.randint(1, 9), f"n{rng.random()}"))
        run(feed)


def test_a_row_whose_text_stays_the_same_has_changed(feed: Shop) -> None:
    """Values that move between columns give the same text of the row; the key is affected all the same."""
    halves = (
        "{{{{ config(materialized='view') }}}} select id as customer_id, split_part(name, '|', 1) as a, "
        "split_part(name, '|', 2) as b from {{{{ source('raw', 'customers') }}}}"
    ).format()
    feed.write("models/halves.sql", halves)
    body = 'return dbt.ref("halves").select("customer_id", "a", "b")'
    text = ODD.replace('    orders = dbt.source("raw", "orders")\n', "")
    write(feed, text.format(config="{config}", body=body), "affected_by={'halves': 'customer_id'}")
    customers(feed, (1, "x, y|z"), (2, "u|v"))
    run(feed)
    customers(feed, (1, "x|y, z"))
    run(feed)
    assert feed.response("m")["evaluated"] == "affected keys"
    assert feed.rows("select a, b from demo.m where customer_id = 1") == [("x", "y, z")]
