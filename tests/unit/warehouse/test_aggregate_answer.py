"""count, min, max and sum equal those of all rows, or Spark is asked."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
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


def check(engine: Engine, table: Table, snapshot: int | None = None) -> None:
    """Each aggregate is as all rows give it."""
    rows = table.scan(snapshot=snapshot).to_arrow()
    states = {} if snapshot is None else {("d", "t"): TableVersion(snapshot=snapshot)}
    assert ask(engine, "select count(*) from d.t", states=states) == (rows.num_rows,)
    for name in (name for name in COLUMNS if name in rows.column_names):
        values = [value for value in rows[name].to_pylist() if value is not None]
        wanted = {"min": min(values, default=None), "max": max(values, default=None), "count": len(values)}
        if name != "day":
            wanted["sum"] = sum(values) if values else None
        for function, value in wanted.items():
            text = f"select {function}({name}), count(*) as n from d.t"
            assert ask(engine, text, states=states) == (value, rows.num_rows), (name, function)
        together = f"select {', '.join(f'{function}({name})' for function in wanted)}, count(t) from d.t"
        texts = rows["t"].drop_null() if "t" in rows.column_names else []
        assert ask(engine, together, states=states) == (*wanted.values(), len(texts))


@pytest.mark.parametrize("seed", cases(range(60), 3))
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
    changes = 0
    check(engine, table)
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
        check(engine, table)
    for number in table.snapshot_ids()[::3]:
        check(engine, table, number)


def test_bounds_of_files_with_deleted_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest value is deleted: its bound still stands in the metadata, and is no answer."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE, primary_key="id")
    table.upsert(drawn(random.Random(1), range(10), SHAPE))
    assert ask(engine, "select max(id) from d.t") == (9,)
    table.delete("id = 9")
    assert ask(engine, "select max(id) from d.t") == (8,)
    assert ask(engine, "select count(*) from d.t") == (9,)
    for limit, is_answered in ((9, True), (8, False)):
        monkeypatch.setattr(aggregate_answer, "ROWS_MAX", limit)
        assert (ask(engine, "select max(id) from d.t") is not None) is is_answered
    table.compact(full=True)
    assert ask(engine, "select max(id) as top, min(id), count(*) from d.t ;") == (8, 0, 9)


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([2**62, 2**62 - 1], (2**63 - 1,)),
        ([2**62, 2**62], None),  # beyond 64 bits
        ([2**63 - 1, 1, -5], None),  # the sum fits; that of the first two does not
        ([-(2**63)], None),
        ([-(2**62), -(2**62) + 1], (-(2**63) + 1,)),
        ([None, None], (None,)),
        ([], (None,)),
    ],
)
def test_sums_that_may_leave_64_bits_are_sparks(
    tmp_path: Path, values: list[int | None], answer: tuple[int | None] | None
) -> None:
    """Spark raises where a sum of some of the rows overflows, which depends on their order."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", pa.schema({"n": pa.int64()}))
    for one in values:
        table.write(pa.table({"n": pa.array([one], pa.int64())}))
    assert ask(engine, "select sum(n) from d.t") == answer


def test_a_file_that_is_gone_is_left_to_spark(tmp_path: Path) -> None:
    """It reads the same file, and reports it; a count of metadata does not need the file."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE)
    table.write(drawn(random.Random(1), range(10), SHAPE))
    for file in tmp_path.rglob("data-*.parquet"):
        file.unlink()
    assert ask(engine, "select sum(id) from d.t") is None
    assert ask(engine, "select count(*) from d.t") == (10,)


def test_what_is_not_proven_is_left_to_spark(tmp_path: Path) -> None:
    """Other types, names in another case, unknown columns, views and any other text."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE, primary_key="id")
    table.upsert(drawn(random.Random(1), range(10), SHAPE))
    engine.create_view("d.v", "select * from d.t")
    texts = (
        "select max(t) from d.t", "select min(f) from d.t", "select max(ID) from d.t", "select max(nothing) from d.t",
        "select sum(day) from d.t", "select sum(f) from d.t", "select sum(*) from d.t",
        "select sum(distinct id) from d.t", "select count(*) from d.`t$snapshots`", "select count(*) from session.t",
        "select count(*), from d.t", "select sum(ñ) from d.t",
        "select sum(id) filter (where id > 1) from d.t", "select sum(id + 1) from d.t", "select count(ID) from d.t",
        "select sum(1) from d.t", "select avg(id) from d.t", "select count(id, p) from d.t",
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
