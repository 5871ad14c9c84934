"""count(*), min and max from metadata equal those of all rows, or Spark is asked."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine, Table, TableVersion
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.catalog.resolved_names import Overrides
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.schema_change import add_column, retype_column
from tablestore_engine.sql.aggregate_query import read_aggregates
from tablestore_engine.warehouse.statements import aggregate_answer
from tablestore_engine.warehouse.statements.data_test_answer import answer_without_spark
from tests.doses import cases

SHAPE = pa.schema(
    {
        "id": pa.int64(),
        "p": pa.int32(),
        "n": pa.int32(),
        "day": pa.date32(),
        "t": pa.string(),
        "f": pa.float64(),
    }
)
COLUMNS = ("id", "p", "n", "day")


def drawn(draw: random.Random, ids: range, schema: pa.Schema) -> pa.Table:
    """Rows with NULLs; some files have nothing else in a column."""
    nulls = {name: draw.choice([0.0, 0.2, 1.0]) for name in schema.names}
    rows = [
        {
            "id": number,
            "p": draw.randint(0, 2),
            "n": draw.choice([-(2**31), -1, 0, 5, 2**31 - 1]),
            "day": dt.date(1969, 12, 25) + dt.timedelta(days=draw.randint(0, 20)),
            "t": draw.choice(["a", "b"]),
            "f": draw.choice([0.0, float("nan")]),
        }
        for number in ids
    ]
    kept = [{k: v for k, v in row.items() if k in ("id", "p") or draw.random() >= nulls[k]} for row in rows]
    return pa.Table.from_pylist(kept, schema)


def ask(engine: Engine, text: str, **given: Any) -> tuple[Any, ...] | None:
    """The row without Spark; None: Spark is asked."""
    found = answer_without_spark(engine._warehouse, text, Overrides(**given))
    return None if found is None else found.rows[0]


def check(engine: Engine, table: Table, snapshot: int | None = None) -> int:
    """How many of the aggregates metadata answers, each as all rows give it."""
    rows = table.scan(snapshot=snapshot).to_arrow()
    states = {} if snapshot is None else {("d", "t"): TableVersion(snapshot=snapshot)}
    assert ask(engine, "select count(*) from d.t", states=states) == (rows.num_rows,)
    answered = 0
    for name in COLUMNS:
        for function in ("min", "max"):
            got = ask(engine, f"select {function}({name}), count(*) as n from d.t", states=states)
            answered += got is not None
            wanted = pc.min_max(rows[name])[function].as_py() if name in rows.column_names else None
            assert got in (None, (wanted, rows.num_rows)), (name, function)
    return answered


@pytest.mark.parametrize("seed", cases(range(60), 4))
def test_random_tables_answer_as_all_their_rows_do(tmp_path: Path, seed: int) -> None:
    """Upserts, deletes, compactions, partitions, added and widened columns, also at past states."""
    draw = random.Random(seed)
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    key = draw.choice([("id", "p"), ()])
    table = engine.create_table(
        "d.t",
        SHAPE,
        primary_key=key,
        partition_by=draw.choice([(), ("p",)]),
        options={"bucket": "2"} if key else {},
    )
    answered, changes = [check(engine, table)], 0
    for step in range(7):
        act = draw.choice(["write", "write", "delete", "compact", "add", "widen", "replace"])
        if act == "delete":
            table.delete(draw.choice(["id < 7", "n = 5", "p = 1"]))
        elif act == "compact":
            table.compact(full=True)
        elif act in ("add", "widen") and changes < 2:
            changes += 1
            name = f"more{step}"
            wide = retype_column(table.schema, "n", DataType("BIGINT")) if act == "widen" else None
            table.store.alter(
                lambda schema, wide=wide, name=name: wide or add_column(schema, name, DataType("INT"))
            )
        else:
            rows = drawn(draw, range(step * 5, step * 5 + draw.randint(1, 12)), table.schema.arrow_schema())
            table.overwrite(rows) if act == "replace" else table.write(rows)
        answered.append(check(engine, table))
    for number in table.snapshot_ids()[::3]:
        check(engine, table, number)
    assert max(answered) == 2 * len(COLUMNS)


def test_bounds_of_files_with_deleted_rows_are_sparks(tmp_path: Path) -> None:
    """The largest value is deleted: its bound still stands in the metadata, and is no answer; the count is."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE, primary_key="id")
    table.upsert(drawn(random.Random(1), range(10), SHAPE))
    assert ask(engine, "select max(id) from d.t") == (9,)
    table.delete("id = 9")
    assert ask(engine, "select max(id) from d.t") is None
    assert ask(engine, "select count(*) from d.t") == (9,)
    table.compact(full=True)
    assert ask(engine, "select max(id) as top, min(id), count(*) from d.t ;") == (8, 0, 9)


def test_what_is_not_proven_is_left_to_spark(tmp_path: Path) -> None:
    """Other types, names in another case, unknown columns, views and any other text."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE, primary_key="id")
    table.upsert(drawn(random.Random(1), range(10), SHAPE))
    engine.create_view("d.v", "select * from d.t")
    texts = (
        "select max(t) from d.t", "select min(f) from d.t", "select max(ID) from d.t", "select max(nothing) from d.t",
        "select count(*) from d.v", "select count(*) from d.t where id = 1", "select count(*) from d.t limit 0",
        "select count(*) from d.t t", "select count(*) from d.t group by id", "select count(distinct id) from d.t",
        "select count(*) + 1 from d.t", "select distinct count(*) from d.t", "select max(id), id from d.t",
        "select count(*) from d.t, d.t", "select count(*) from t", "select max(current_date) from d.t",
        "select /*+ x */ count(*) from d.t", "select count(*) over () from d.t",
        "select count(*) filter (where true) from d.t",
        "select count(*) from d.t union all select 1", "select count(*) from d.nothing", "select count(*)", "select",
        "select count(*) from d.t version as of 1",
    )  # fmt: skip
    for text in texts:
        assert ask(engine, text) is None, text


def test_what_was_read_is_noted_with_an_answer(tmp_path: Path) -> None:
    """A test of dbt knows which state of the table was counted; a text without an answer notes nothing."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    engine.create_table("d.t", SHAPE, primary_key="id").upsert(drawn(random.Random(1), range(3), SHAPE))
    log = ReadLog()
    ask(engine, "select max(t) from d.t", reads=log)
    assert log.reads() == ()
    ask(engine, "select count(*) from d.t", reads=log)
    assert [(one.table, one.snapshot) for one in log.reads()] == [("d.t", 1)]


def test_names_are_sparks() -> None:
    """Without an alias Spark calls count(*) `count(1)`; a quoted name stays as it is."""
    found = read_aggregates("SELECT COUNT(*), Max(`a b`), min(n) AS `x`\n-- all\nFROM `d`.t")
    assert found is not None
    assert (found.database, found.table) == ("d", "t")
    assert [one.name for one in found.aggregates] == ["count(1)", "max(a b)", "x"]


def test_a_planted_bound_of_another_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison of the random tables fails when deleted rows are not looked at."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE, primary_key="id")
    table.upsert(drawn(random.Random(1), range(10), SHAPE))
    table.delete("id = 9")
    real = aggregate_answer._bound

    def planted(one: Any, files: Any, schema: Any) -> Any:
        return real(one, [replace(file, deleted=None) for file in files], schema)

    monkeypatch.setattr(aggregate_answer, "_bound", planted)
    with pytest.raises(AssertionError):
        check(engine, table)
