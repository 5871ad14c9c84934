"""What `--on-red dead_letter` quarantines, and what it must not: inputs, parents, columns, tests that cannot run."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.continuous.quarantine_table import Quarantined, quarantine_failed
from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_run_stream import Dies
from tablestore_engine.api import Engine, TableSpec, WriteSpec

ADDED = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
STREAMING = "{{ config(materialized='streaming') }} "
NOT_NULL = "models: [{name: copy, columns: [{name: v, data_tests: [not_null]}]}]"


def put(shop: Shop, table: str, key: int, v: str | None) -> None:
    """Somebody's row."""
    shop.engine.write(f"demo.{table}", pa.table({"id": [key], "v": pa.array([v], pa.string())}), ADDED)


def begin(shop: Shop, query: str, tests: str = NOT_NULL, **models: str) -> None:
    """A project of streams of the tables `a` and `b`, whose first rows are published."""
    shop.write("models/s.yml", "sources: [{name: raw, schema: demo, tables: [{name: a}, {name: b}]}]")
    shop.write("models/t.yml", tests)
    for name, sql in {"copy": query, **models}.items():
        shop.write(f"models/{name}.sql", sql)
    put(shop, "a", 1, "a")
    put(shop, "b", 2, "b")
    build(shop, ok=True)


def build(shop: Shop, *, ok: bool = False) -> Any:
    """The model, with its parents and tests."""
    done = shop.dbt("build", "--select", "+copy", ok=ok)
    return done.result.results  # type: ignore[union-attr]  # dbt's


def quarantine(shop: Shop) -> list[dict[str, object]]:
    """What was quarantined, by id."""
    found = shop.engine.find_table("demo.copy__dead_letter")
    rows = [] if found is None else found.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.nightly  # by day tests/unit/adapter/test_quarantine_rule.py
def test_a_test_that_cannot_run_puts_nothing_aside(shop: Shop) -> None:
    """Its error is a failed iteration; beside a failed test too; the rows of that one are quarantined."""
    begin(shop, STREAMING + "select id, v from {{ stream(source('raw', 'a')) }}")
    put(shop, "a", 3, "good")
    shop.write("tests/broken.sql", "select * from {{ ref('copy') }} where no_such_column = 1")
    assert quarantine_failed(shop.engine, build(shop)) == Quarantined()
    assert quarantine(shop) == []
    put(shop, "a", 4, None)
    done = quarantine_failed(shop.engine, build(shop))
    assert [test.split(".")[2] for test in done.tests] == ["not_null_copy_v"]
    assert [(row["id"], row["dead_letter_tests"]) for row in quarantine(shop)] == [
        (3, "not_null_copy_v"),
        (4, "not_null_copy_v"),
    ]


@pytest.mark.nightly  # by day tests/unit/adapter/test_quarantine_rule.py
def test_rows_of_a_parent_that_waits_are_not_put_aside(shop: Shop) -> None:
    """A test of both tables is red: its parent never goes out, so the child stays where it is, and it ends."""
    related = "relationships: {arguments: {to: ref('parent'), field: ok}}"
    begin(
        shop,
        "{{ config(materialized='streaming', unique_key='id') }} "
        "select id, v, _row_kind, _snapshot_id from {{ stream(ref('parent')) }}",
        f"models: [{{name: copy, columns: [{{name: id, data_tests: [{related}]}}]}}]",
        parent="{{ config(materialized='incremental', unique_key='id') }} "
        "select id, v, if(v = 'bad', -1, id) as ok from {{ source('raw', 'a') }}",
    )
    before = shop.engine.table("demo.copy").positions()
    put(shop, "a", 3, "bad")
    for _ in range(2):
        assert quarantine_failed(shop.engine, build(shop)) == Quarantined()
    assert quarantine(shop) == []
    assert shop.engine.table("demo.copy").positions() == before


def test_each_range_of_several_inputs_is_put_aside_once(shop: Shop) -> None:
    """Killed between both commits: the next round has read another input as well, and finds what is there."""
    begin(
        shop,
        STREAMING + "select id, v from {{ stream(source('raw', 'a')) }} union all "
        "select id, v from {{ stream(source('raw', 'b')) }}",
    )
    put(shop, "a", 3, None)
    with pytest.raises(KeyboardInterrupt):
        quarantine_failed(cast("Engine", Dies(shop.engine)), build(shop))
    put(shop, "b", 4, "b4")
    assert "stay in demo.copy__dead_letter" in quarantine_failed(shop.engine, build(shop)).lines[0]
    assert [row["id"] for row in quarantine(shop)] == [3]
    build(shop, ok=True)
    assert shop.rows("select id from demo.copy order by id") == [(1,), (2,), (4,)]
    put(shop, "b", 5, None)
    quarantine_failed(shop.engine, build(shop))
    assert [row["id"] for row in quarantine(shop)] == [3, 5]


@pytest.mark.nightly  # by day ranges below; tests/unit/adapter/test_quarantine_rule.py
def test_letters_have_the_columns_of_the_rows(shop: Shop) -> None:
    """A new column comes with its values; of one that the model drops the rows of before keep theirs."""
    query = (
        "{{{{ config(materialized='streaming', on_schema_change='sync_all_columns') }}}} "
        "select {} from {{{{ stream(source('raw', 'a')) }}}}"
    )
    begin(shop, query.format("id, v, 'k' as kept"))
    for key, columns in enumerate(
        ("id, v, 'k' as kept", "id, v, cast(id * 10 as int) as w", "id, v, id * 10 as w"), 3
    ):
        shop.write("models/copy.sql", query.format(columns))
        put(shop, "a", key, None)
        quarantine_failed(shop.engine, build(shop))
    assert [(row["id"], row["kept"], row["w"]) for row in quarantine(shop)] == [
        (3, "k", None),
        (4, None, 40),
        (5, None, 50),
    ]
    put(shop, "a", 6, "good")
    build(shop, ok=True)
    assert shop.rows("select id, w from demo.copy order by id") == [(1, None), (6, 60)]
