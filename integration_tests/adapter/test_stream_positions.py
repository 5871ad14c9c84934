"""Where models that follow begin and go on: no row twice, none lost, whoever else writes, however a model was made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import Engine, TableSpec, WriteReport, WriteSpec
from tablestore_engine.spi import PositionStep
from tests.doses import case_rows, cases

KEYLESS = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: ev}, {name: other}]}]"
STREAM = "{{ config(materialized='streaming') }} select id, v from {{ stream(source('raw', 'ev')) }}"
BOTH = STREAM + " union all select id, v from {{ stream(source('raw', 'other')) }}"
TABLE = "{{ config(materialized='table') }} select id, v from {{ source('raw', 'ev') }}"
Rows = list[tuple[object, ...]]
Act = Callable[[], None]


def nothing() -> None:
    """Nobody else does anything."""


@pytest.fixture
def events(shop: Shop) -> Shop:
    """A shop with two tables that others add rows to."""
    shop.write("models/ev.yml", SOURCES)
    add(shop, (1, "a"), (2, "b"))
    add(shop, (10, "x"), table="other")
    return shop


def add(shop: Shop, *pairs: tuple[int, str], table: str = "ev", spec: WriteSpec = KEYLESS) -> None:
    """Somebody's commit."""
    rows = pa.table({"id": [one for one, _ in pairs], "v": [v for _, v in pairs]})
    shop.engine.write(f"demo.{table}", rows, spec)


def run(shop: Shop, text: str, *more: str, ok: bool = True) -> Rows:
    """`dbt run` of the model `m` with that text; its rows."""
    shop.write("models/m.sql", text)
    shop.dbt("run", "--select", "m", *more, ok=ok)
    return rows(shop)


def rows(shop: Shop) -> Rows:
    """Of the model."""
    return shop.rows("select id, v from demo.m order by id, v") if "m" in shop.tables() else []


def test_rows_taken_back_of_a_table_without_a_key(events: Shop) -> None:
    """A delete of a keyless input is no new row: TS1845, nothing is written."""
    assert run(events, STREAM) == [(1, "a"), (2, "b")]
    events.engine.sql("delete from demo.ev where id = 1")
    assert run(events, STREAM, ok=False) == [(1, "a"), (2, "b")]
    assert "TS1845" in events.log


def test_another_process_makes_the_table_first(events: Shop) -> None:
    """Two first runs at once: one of them gets TS1471, no row comes twice."""
    events.write("models/m.sql", STREAM)
    made = threading.Event()

    def make(line: str) -> None:
        """Somebody else's first run, between the look at what is there and the write."""
        if "START sql streaming model demo.m" in line and not made.is_set():
            made.set()
            source = events.engine.table("demo.ev")
            step = source.plan_changes(None).step
            assert step is not None
            spec = WriteSpec(positions={source.source: PositionStep(None, step.after)}, table=KEYLESS.table)
            events.engine.write("demo.m", source.scan().to_arrow(), spec)

    events.on_line = make
    assert run(events, STREAM, ok=False) == [(1, "a"), (2, "b")]
    assert made.is_set()
    assert "TS1471" in events.log
    events.on_line = lambda _: None
    assert run(events, STREAM) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    "first", cases([TABLE, TABLE.replace("'table'", "'incremental'")], 1), ids=["table", "incremental"]
)
def test_a_table_that_was_made_in_another_way(events: Shop, first: str) -> None:
    """Its rows would come twice: TS1841, and a full refresh is the way."""
    run(events, first)
    assert run(events, STREAM, ok=False) == [(1, "a"), (2, "b")]
    assert "TS1841" in events.log
    changes = "{{ config(materialized='incremental', incremental_strategy='append') }} "
    changes += "select id, v from {{ changes(source('raw', 'ev')) }}"
    assert run(events, changes, ok=False) == [(1, "a"), (2, "b")]
    assert "TS1841" in events.log
    assert run(events, STREAM, "--full-refresh") == [(1, "a"), (2, "b")]
    add(events, (3, "c"))
    assert run(events, STREAM) == [(1, "a"), (2, "b"), (3, "c")]


def test_rows_that_were_replaced_meanwhile(events: Shop) -> None:
    """streaming → table → streaming: the table's run took the place away together with the rows."""
    run(events, STREAM)
    add(events, (3, "c"))
    run(events, TABLE)
    assert events.engine.table("demo.m").positions() == {}
    assert run(events, STREAM, ok=False) == [(1, "a"), (2, "b"), (3, "c")]
    assert "TS1841" in events.log


def test_an_input_that_a_full_refresh_left_out(events: Shop) -> None:
    """Read again later it begins with all its rows: what an earlier table had read of it counts no more."""
    assert len(run(events, BOTH)) == 3
    assert len(run(events, STREAM, "--full-refresh")) == 2
    assert run(events, BOTH) == [(1, "a"), (2, "b"), (10, "x")]


@pytest.mark.nightly  # by day an input that a full refresh left out, below
def test_an_input_that_was_left_and_comes_again(events: Shop) -> None:
    """Its rows are there already: TS1841 instead of all of them once more; a full refresh sets it right."""
    run(events, BOTH)
    assert len(run(events, STREAM)) == 3
    add(events, (11, "y"), table="other")
    assert len(run(events, BOTH, ok=False)) == 3
    assert "TS1841" in events.log
    assert run(events, BOTH, "--full-refresh") == [(1, "a"), (2, "b"), (10, "x"), (11, "y")]
    add(events, (3, "c"))
    assert len(run(events, BOTH)) == 5


@contextmanager
def beside_writes(shop: Shop, before: Act = nothing, behind: Act = nothing) -> Iterator[None]:
    """What somebody else does right before or behind each write of the model, when it knows what it read."""
    kind = type(shop.engine)
    write = kind.write

    def writing(self: Engine, name: str, *given: Any, **named: Any) -> WriteReport:
        if name == "demo.m":
            kind.write = write  # type: ignore[method-assign]  # what the others do is no write of the model
            before()
            report = write(self, name, *given, **named)
            behind()
            kind.write = writing  # type: ignore[method-assign]  # the next one
            return report
        return write(self, name, *given, **named)

    kind.write = writing  # type: ignore[method-assign]  # until the block ends
    try:
        yield
    finally:
        kind.write = write  # type: ignore[method-assign]  # as it was


def test_a_full_refresh_by_other_sql_meanwhile(events: Shop) -> None:
    """A run that began with the SQL before is too late, though the input's position is where it was: TS1471."""
    run(events, STREAM)
    add(events, (3, "c"))

    def refresh() -> None:
        """What a full refresh leaves, from another process."""
        positions = events.engine.table("demo.m").positions()
        ends = {name: "another" if name == "query" else at for name, at in positions.items()}
        steps = {name: PositionStep(None, at, is_reset=True) for name, at in ends.items()}
        events.engine.write("demo.m", pa.table({"id": [7], "v": ["new"]}), WriteSpec(positions=steps))

    with beside_writes(events, before=refresh):
        events.dbt("run", "--select", "m", ok=False)
    assert "TS1471" in events.log
    assert (3, "c") not in rows(events)


def test_a_run_ends_while_others_go_on_writing(events: Shop) -> None:
    """Its end is the newest snapshot of when it began to read; what comes behind is the next run's."""
    steps = STREAM.replace("'streaming'", "'streaming', max_snapshots_per_batch=1")
    run(events, steps)
    for number in (3, 4, 5):
        add(events, (number, "c"))
    late = iter(range(100, 120))
    with beside_writes(events, behind=lambda: add(events, (next(late), "late"))):
        found = run(events, steps)
    assert [one for one, _ in found] == [1, 2, 3, 4, 5]


@pytest.mark.nightly  # by day adapter/test_empty_runs.py
def test_empty_runs_of_sql_that_remembers_rows(events: Shop) -> None:
    """`--empty` changes the text of the query, not the query: it moves no place and is no other SQL."""
    totals = "{{ config(materialized='streaming', unique_key='v') }} select v, count(*) as id "
    totals += "from {{ stream(source('raw', 'ev')) }} group by v"
    before = run(events, totals)
    assert run(events, totals, "--empty") == before
    add(events, (3, "b"))
    assert run(events, totals) == [(1, "a"), (2, "b")]


def test_a_key_without_a_changelog_is_not_followed(shop: Shop) -> None:
    """stream() and changes() refuse it before anything is made: updates would count as new rows."""
    silent = WriteSpec(table=TableSpec(primary_key=("id",), options={"changelog-producer": "none"}))
    shop.write("models/ev.yml", SOURCES)
    add(shop, (1, "a"), spec=silent)
    for kind, macro in (("streaming", "stream"), ("incremental", "changes")):
        config = f"{{{{ config(materialized='{kind}') }}}}"
        assert run(shop, f"{config} select id, v from {{{{ {macro}(source('raw', 'ev')) }}}}", ok=False) == []
        assert "TS1481" in shop.log


@pytest.mark.nightly  # by day test_stateful_streaming.py: other SQL
def test_totals_of_a_model_that_remembered_nothing(events: Shop) -> None:
    """changes() → SQL that remembers rows: totals without the rows before would be wrong, so it is another query."""
    text = "{{ config(materialized='@', unique_key='v') }} select v, count(*) as id from "
    text += "{{ #(source('raw', 'ev')) }} group by v"
    changes = text.replace("@", "incremental").replace("#", "changes").replace("count(*)", "count(_row_kind)")
    assert run(events, changes) == [(1, "a"), (1, "b")]
    add(events, (3, "a"))
    streaming = text.replace("@", "streaming").replace("#", "stream")
    run(events, streaming, ok=False)
    assert "TS1860" in events.log
    assert run(events, streaming, "--full-refresh") == [(1, "b"), (2, "a")]
    assert events.response("m")["rows_read"] == 3


@pytest.mark.nightly  # by day the temporary function below
def test_a_function_of_the_header_is_a_part_of_the_query(events: Shop) -> None:
    """Totals made by another function cannot be gone on with: TS1860."""
    text = "{{ config(materialized='streaming', unique_key='v', sql_header='create or replace temporary function "
    text += "twice(x bigint) returns bigint return @ * x') }} select v, sum(twice(id)) as id from "
    text += "{{ stream(source('raw', 'ev')) }} group by v"
    assert run(events, text.replace("@", "2")) == [(2, "a"), (4, "b")]
    add(events, (3, "b"))
    run(events, text.replace("@", "3"), ok=False)
    assert "TS1860" in events.log
    assert run(events, text.replace("@", "2")) == [(2, "a"), (10, "b")]


def test_a_temporary_function_is_a_part_of_the_query(events: Shop) -> None:
    """A hook makes the function before each run: with another body, totals cannot be gone on with (TS1860)."""
    project = events.folder / "dbt_project.yml"
    before = project.read_text()
    function = "create or replace temporary function times(x bigint) returns bigint return @ * x"
    text = "{{ config(materialized='streaming', unique_key='v') }} select v, sum(times(id)) as id from "
    text += "{{ stream(source('raw', 'ev')) }} group by v"
    project.write_text(f"{before}\non-run-start: '{function.replace('@', '2')}'\n")
    assert run(events, text) == [(2, "a"), (4, "b")]
    add(events, (3, "b"))
    project.write_text(f"{before}\non-run-start: '{function.replace('@', '3')}'\n")
    run(events, text, ok=False)
    assert "TS1860" in events.log


@pytest.mark.nightly  # by day a temporary function is a part of the query
@pytest.mark.parametrize(
    ("start", "value"),
    case_rows(
        [
            ("create or replace temporary view lookup as select @ as f", "(select max(f) from lookup)"),
            ("declare or replace variable factor int default @", "factor"),
            ("create or replace view demo.lookup as select @ as f", "(select max(f) from demo.lookup)"),
            ("set path = system.builtin, system.session, spark_catalog.demo@", "2"),
        ],
        1,
    ),
)
def test_what_a_name_of_the_query_means_is_a_part_of_it(events: Shop, start: str, value: str) -> None:
    """With another temporary view, variable, view or path the SQL is another one (TS1846), though its text is the same;
    taken back, the run resumes.
    """
    project = events.folder / "dbt_project.yml"
    before = project.read_text()
    text = "{{ config(materialized='streaming', unique_key='id', on_configuration_change='fail') }} "
    text += f"select id, {value} as v from {{{{ stream(source('raw', 'ev')) }}}}"
    starts = ["set spark.sql.path.enabled = true", *(start.replace("@", one) for one in "23")]
    try:
        project.write_text(f"{before}\non-run-start: ['{starts[0]}', '{starts[1]}']\n")
        assert run(events, text) == [(1, 2), (2, 2)]
        add(events, (3, "b"))
        project.write_text(f"{before}\non-run-start: ['{starts[0]}', '{starts[2]}']\n")
        run(events, text, ok=False)
        assert "TS1846" in events.log
        project.write_text(f"{before}\non-run-start: ['{starts[0]}', '{starts[1]}']\n")
        assert run(events, text) == [(1, 2), (2, 2), (3, 2)]
    finally:
        for statement in ("set path = default_path", "set spark.sql.path.enabled = false"):
            events.engine.sql(statement)


@pytest.mark.parametrize(
    "join", cases([" join {{ source('raw', 'ev') }} o on o.id = e.id and o.v = e.v", ""], 1)
)
def test_key_in_several_snapshots_of_a_range_keeps_the_row_of_the_latest(events: Shop, join: str) -> None:
    """In the first run and in a later one; twice in one snapshot it is an error and nothing is written (TS1601)."""
    text = "{{ config(materialized='streaming', unique_key='id') }} select e.id, e.v from "
    text += "{{ stream(source('raw', 'ev')) }} e" + join
    add(events, (1, "b"), (3, "c"))
    add(events, (1, "c"))
    assert run(events, text) == [(1, "c"), (2, "b"), (3, "c")]
    for one in "zyx":
        add(events, (2, one))
    assert run(events, text) == [(1, "c"), (2, "x"), (3, "c")]
    add(events, (4, "d"), (4, "e"))
    add(events, (1, "d"))
    run(events, text, ok=False)
    assert "TS1601" in events.log
    assert rows(events) == [(1, "c"), (2, "x"), (3, "c")]
