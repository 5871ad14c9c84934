"""Models over changes of more than one input: what keeps them right from run to run."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec

SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: a}, {name: b}]}]"
KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
ADDED = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
A, B = "{{ stream(source('raw', 'a')) }}", "{{ stream(source('raw', 'b')) }}"


@pytest.fixture
def pair(shop: Shop) -> Shop:
    """A shop with two inputs."""
    shop.write("models/pair.yml", SOURCES)
    return shop


def put(shop: Shop, table: str, rows: pa.Table, spec: WriteSpec = ADDED) -> None:
    """Somebody's commit."""
    shop.engine.write(f"demo.{table}", rows, spec)


def test_kinds_of_two_inputs_have_no_order(pair: Shop) -> None:
    """A key that is deleted in one and put in the other: numbers of snapshots of two tables say nothing. Refused before
    anything is made, for streams and for changes; a table beside a stream is none of that, nor a model without a key.
    """
    for name in ("a", "b"):
        put(pair, name, pa.table({"id": [1], "v": [name]}), KEYED)
    items = "id, v, _row_kind, _snapshot_id"
    both = f"select {items} from {A} union all select {items} from {B}"
    head = "{{ config(materialized='streaming', unique_key='id') }} "
    pair.write("models/both.sql", head + both)
    incremental = "{{ config(materialized='incremental', unique_key='id') }} "
    pair.write("models/changed.sql", incremental + both.replace("stream(", "changes("))
    pair.dbt("run", "--select", "both", "changed", ok=False)
    for name, called in (("both", "both"), ("changed", "demo.changed")):
        told = f"TS1836 model {called} gives rows with _row_kind of more than one input: demo.a, demo.b"
        assert told in pair.log
        assert pair.engine.find_table(f"demo.{name}") is None
    pair.write("models/both.sql", head.replace(", unique_key='id'", "") + both)
    one = f"select s.id, b.v, s._row_kind, s._snapshot_id from {A} s join {{{{ source('raw', 'b') }}}} b on b.id = s.id"
    pair.write("models/changed.sql", head + one)
    pair.dbt("run", "--select", "both", "changed")
    assert sorted(pair.rows("select id, v from demo.both")) == [(1, "a"), (1, "b")]
    assert pair.rows("select id, v from demo.changed") == [(1, "b")]


@pytest.mark.nightly  # by day names of a query in test_stream_positions.py
def test_a_cte_with_the_name_of_a_stream(pair: Shop) -> None:
    """The text's own `a` is the CTE; the stream is the stream wherever it stands, with its columns written in any way.
    A totals row of a watermarked stream without an alias too.
    """
    put(pair, "a", moments((1, 1), (2, 2), (3, -1)))
    pair.write(
        "models/counted.sql",
        f"""{{{{ config(materialized='streaming', unique_key='k') }}}}
        with a as (select * from {A} where id > 1), every as (select a.id, {A}.at from {A}),
        late as (select id from {A} watermark at delay of interval 1 hour where at < '2026-01-01'),
        both as (
            select 'some' as k, id from a union all select 'all' as k, id from every
            union all select 'late' as k, id from late
        )
        select k, count(*) as n from both group by k""",
    )
    pair.dbt("run", "--select", "counted")
    assert dict(pair.rows("select k, n from demo.counted")) == {"some": 2, "all": 3, "late": 1}


@pytest.mark.nightly
def test_a_column_in_the_place_of_another(pair: Shop) -> None:
    """q goes and r of its type comes: what is remembered of q is no r (TS1457). A full refresh goes on; a column more
    that the query does not read changes nothing.
    """
    put(pair, "a", pa.table({"id": [1], "p": ["P1"], "q": ["Q1"]}))
    put(pair, "b", pa.table({"id": [77]}))
    pair.write(
        "models/met.sql",
        f"""{{{{ config(materialized='streaming', on_schema_change='append_new_columns') }}}}
        select a.* except(_row_kind, _snapshot_id) from {A} a join {B} b on a.id = b.id""",
    )
    pair.dbt("run", "--select", "met")
    pair.engine.sql("alter table demo.b add column note string")
    put(pair, "b", pa.table({"id": [78]}))
    pair.dbt("run", "--select", "met")
    pair.engine.sql("alter table demo.a drop column q")
    pair.engine.sql("alter table demo.a add column r string")
    put(pair, "b", pa.table({"id": [1]}))
    pair.dbt("run", "--select", "met", ok=False)
    assert "TS1457" in pair.log
    assert "q has gone and r, of the same type, is new" in pair.log
    pair.dbt("run", "--select", "met", "--full-refresh")
    assert pair.rows("select id, p, r from demo.met") == [(1, "P1", None)]


@pytest.mark.nightly
def test_watermarks_of_inputs_that_come_in_turn(pair: Shop) -> None:
    """No run has rows of both inputs: the least of their watermarks moves all the same, rows without a partner come
    out, what nobody waits for is forgotten, and a late row is late.
    """
    put(pair, "a", moments((1, 1)))
    put(pair, "b", moments((50, 1)))
    ends = "watermark at delay of interval 1 second"
    pair.write(
        "models/met.sql",
        f"""{{{{ config(materialized='streaming') }}}}
        with x as (select * from {A} {ends}), y as (select * from {B} {ends})
        select x.id, y.id as other from x
        left join y on x.id = y.id and y.at >= x.at and y.at <= x.at + interval 5 seconds""",
    )
    pair.dbt("run", "--select", "met")
    for name, row in (("a", (100, 1000)), ("b", (200, 1000)), ("a", (101, 2000)), ("b", (201, 2000))):
        put(pair, name, moments(row))
        pair.dbt("run", "--select", "met")
    assert sorted(pair.rows("select id, other from demo.met")) == [(1, None), (100, None)]
    assert pair.response("met")["state_rows"] == 2
    put(pair, "a", moments((9, 3)))
    pair.dbt("run", "--select", "met")
    assert "1 group late" in pair.log


def moments(*rows: tuple[int, int]) -> pa.Table:
    """(id, seconds of the year)."""
    at = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds) for _, seconds in rows]
    return pa.table({"id": [one for one, _ in rows], "at": pa.array(at, pa.timestamp("us", "UTC"))})
