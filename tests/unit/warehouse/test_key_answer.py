"""Queries of keys give the rows that all rows of the state have, or Spark is asked."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableVersion
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.catalog.resolved_names import Overrides
from tablestore_engine.warehouse.statements.data_test_answer import answer_without_spark
from tests.doses import cases

SHAPE = pa.schema({"id": pa.int16(), "t": pa.string(), "p": pa.int32(), "n": pa.float64(), "w": pa.binary()})


def ask(engine: Engine, text: str, **given: Any) -> list[tuple[Any, ...]] | None:
    """The rows without Spark; None: Spark is asked."""
    found = answer_without_spark(engine._warehouse, text, Overrides(**given))
    return None if found is None else sorted(found.rows, key=repr)


def drawn(draw: random.Random, count: int) -> pa.Table:
    """Rows with NULLs beside the key, each key once."""
    keys = {
        (draw.randint(-3, 12), draw.choice(["", "a", "a ", "B"]), draw.randint(0, 2)) for _ in range(count)
    }
    rows = [
        {
            "id": key[0],
            "t": key[1],
            "p": key[2],
            "n": draw.choice([None, 0.5]),
            "w": draw.choice([None, b"x"]),
        }
        for key in keys
    ]
    return pa.Table.from_pylist(rows, SHAPE)


@pytest.mark.parametrize("seed", cases(range(40), 2))
def test_random_tables_answer_as_all_their_rows_do(tmp_path: Path, seed: int) -> None:
    """Upserts, deletes and compactions, with and without partitions, now and at a past state."""
    draw = random.Random(seed)
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    parts = draw.choice([(), ("p",)])
    table = engine.create_table(
        "d.t", SHAPE, primary_key=("id", "t", "p"), partition_by=parts, options={"bucket": "2"}
    )
    for _ in range(5):
        table.upsert(drawn(draw, draw.randint(1, 30)))
        table.delete(draw.choice(["id < 0", "t = 'a'", "n = 0.5"]))
        table.compact(full=True) if draw.random() < 0.3 else None
        number = draw.choice(table.snapshot_ids())
        for state in (None, number):
            ids, texts = draw.sample(range(-3, 13), 2), draw.choice([("a",), ("", "a "), ("B",)])
            listed = ", ".join(f"'{one}'" for one in texts)
            text = f"select n, id, w, id from d.t where t in ({listed}) and id in ({ids[0]}, {ids[1]})"
            text += "" if parts else " and p in (0, 1, 2)"
            rows = table.scan(snapshot=state).to_arrow().to_pylist()
            wanted = [row for row in rows if row["id"] in ids and row["t"] in texts]
            states = {} if state is None else {("d", "t"): TableVersion(snapshot=state)}
            found = ask(engine, text, states=states)
            assert found == sorted([(one["n"], one["id"], one["w"], one["id"]) for one in wanted], key=repr)


@pytest.mark.parametrize(
    "condition",
    ["id = 40000 and t = 'a'", "id = 1", "t = 'a'", "id = 1 and t = 1", "id = 1 and T = 'a'",
     "id = 1 and t = 'a' and n = 1"],
)  # fmt: skip
def test_what_is_not_proven_is_left_to_spark(tmp_path: Path, condition: str) -> None:
    """Numbers beyond the type, parts of the key, other types, names in another letter case; nothing is noted."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    engine.create_table("d.t", SHAPE, primary_key=("id", "t", "p")).upsert(drawn(random.Random(1), 9))
    log = ReadLog()
    assert ask(engine, "select n from d.t where p = 0 and id = 1 and t = 'a'", reads=log) is not None
    assert [(one.table, one.snapshot) for one in log.reads()] == [("d.t", 1)]
    log = ReadLog()
    assert ask(engine, f"select n from d.t where p = 0 and {condition}", reads=log) is None
    assert log.reads() == ()


@pytest.mark.parametrize(
    "options",
    [
        {"deletion-vectors.merge-on-read": "true"},
        {"record-level.expire-time": "1 h", "record-level.time-field": "p"},
    ],
)
def test_rows_that_are_not_shown_as_files_have_them_are_left_to_spark(
    tmp_path: Path, options: dict[str, str]
) -> None:
    """Such as are merged when they are read, and rows with an age."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    table = engine.create_table("d.t", SHAPE, primary_key=("id", "t"), options={"bucket": "1"})
    assert ask(engine, "select n from d.t where id = 1 and t = 'a'") == []
    table.store.alter(lambda schema: replace(schema, options={**schema.options, **options}))
    assert ask(engine, "select n from d.t where id = 1 and t = 'a'") is None
