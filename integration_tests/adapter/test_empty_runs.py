"""`--empty` on tables that exist: rows that a node does not read are neither deleted nor ended."""

from __future__ import annotations

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec

SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: items, config: {event_time: at}}]}]"
SNAPSHOT = (
    "{% snapshot SNAP %} {{ config(unique_key='id', strategy='check', check_cols=['n'], hard_deletes='KIND') }}"
    " select id, n from {{ source('raw', 'items') }} {% endsnapshot %}"
)
INCREMENTAL = """
{{{{ config(materialized='incremental', {config}) }}}} select id, n, at from {{{{ source('raw', 'items') }}}}
"""
MICROBATCH = "incremental_strategy='microbatch', event_time='at', begin='2026-01-01', batch_size='day'"
MODELS = {
    "batched": MICROBATCH,
    "partitioned": "incremental_strategy='insert_overwrite', partition_by='n'",
    "deleted": "incremental_strategy='delete+insert', unique_key='id'",
    "limited": "incremental_strategy='delete+insert', unique_key='id', incremental_predicates=['id > 0']",
}
WINDOW = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-03")


@pytest.fixture
def items(shop: Shop) -> Shop:
    """A source of two rows."""
    moment = pa.array([1_767_261_600_000_000, 1_767_348_000_000_000], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": [1, 2], "n": ["a", "b"], "at": moment})
    shop.engine.write("demo.items", rows, WriteSpec(table=TableSpec(primary_key=("id",))))
    shop.write("models/sources.yml", SOURCES)
    return shop


def _warnings(shop: Shop, text: str) -> int:
    return sum(text in line for line in shop.shown)


@pytest.mark.nightly  # by day the other empty runs of this file
def test_empty_keeps_rows_of_models_that_replace(items: Shop) -> None:
    """microbatch, insert_overwrite and delete+insert: the same rows, no snapshot, one warning per node."""
    for name, config in MODELS.items():
        items.write(f"models/{name}.sql", INCREMENTAL.format(config=config))
    items.dbt("build", "--select", *MODELS, *WINDOW)
    before = {name: items.engine.table(f"demo.{name}").snapshot_ids() for name in MODELS}
    items.dbt("build", "--empty", "--select", *MODELS, *WINDOW)
    for name in MODELS:
        assert items.rows(f"select id, n from demo.{name} order by id") == [(1, "a"), (2, "b")]
        assert items.engine.table(f"demo.{name}").snapshot_ids() == before[name]
    counts = {name: _warnings(items, f"model {name}: --empty keeps all rows") for name in MODELS}
    assert counts == {"batched": 1, "partitioned": 1, "deleted": 1, "limited": 0}


def test_empty_ends_no_row_of_a_snapshot(items: Shop) -> None:
    """hard_deletes of both kinds; a later run without --empty applies them again."""
    for kind in ("invalidate", "new_record"):
        items.write(f"snapshots/{kind}.sql", SNAPSHOT.replace("SNAP", kind).replace("KIND", kind))
    items.dbt("snapshot")
    items.dbt("build", "--empty", "--select", "invalidate", "new_record")
    for kind in ("invalidate", "new_record"):
        current = f"select id from demo.{kind} where dbt_valid_to is null order by id"
        assert items.rows(current) == [(1,), (2,)]
        assert _warnings(items, f"snapshot {kind}: --empty keeps all current rows") == 1
    moment = pa.array([None], pa.timestamp("us", "UTC"))
    gone = pa.table({"id": [2], "n": ["b"], "at": moment, "_ROW_KIND": pa.array([3], pa.int8())})
    items.engine.write("demo.items", gone, WriteSpec(table=TableSpec(primary_key=("id",))))
    items.dbt("snapshot")
    assert items.rows("select id from demo.invalidate where dbt_valid_to is null") == [(1,)]
    assert items.rows("select dbt_is_deleted from demo.new_record where id = 2 and dbt_valid_to is null") == [
        ("True",)
    ]


def test_empty_passes_equals_full_refresh_with_a_warning(items: Shop) -> None:
    """Nothing can be compared: the SQL that dbt has compiled reads no rows."""
    config = "incremental_strategy='changed_keys', unique_key='id'"
    items.write("models/followed.sql", INCREMENTAL.format(config=config))
    items.write("models/followed.yml", "models: [{name: followed, data_tests: [equals_full_refresh]}]")
    items.dbt("build", "--select", "followed")
    items.dbt("build", "--empty", "--select", "followed")
    assert _warnings(items, "compared nothing") == 1
    assert items.rows("select id from demo.followed order by id") == [(1,), (2,)]
    items.dbt("build", "--select", "followed")
