"""What a sink leaves in files, and what becomes of it: cleared behind a commit, found when nobody comes back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.datasource.source_options import parse_address, parse_write
from tablestore_engine.datasource.spark_source import TablestoreStreamWriter, TablestoreWriter
from tablestore_engine.datasource.staged_write import StagedMessage, TableWrite
from tablestore_engine.errors import FixData, FixRequest, NotFound
from tests.unit.datasource.query_world import struct
from tests.unit.store.expiry_world import newest

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])

WANTED = "id bigint, _row_kind string, v string"


def target(root: Path, wanted: str = WANTED, **options: str) -> tuple[Engine, TableWrite]:
    """demo.t, keyed, and a write of (id, _row_kind, v), or of other columns."""
    engine = Engine(str(root))
    engine.create_database("demo")
    engine.create_table("demo.t", SCHEMA, primary_key=("id",))
    said = {"warehouse": str(root), "table": "demo.t", **options}
    return engine, TableWrite(parse_address(said), parse_write(said), struct(wanted), replaces=False)


def task(write: TableWrite, query: str, batch: int, *rows: tuple[int, str | None, str]) -> StagedMessage:
    """What a task of a stream does once it knows its batch."""
    names = ("id", "_row_kind", "v")
    batches = [pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True))]) for row in rows]
    return StagedMessage(query, write.stage(write.folder(query, str(batch)), batches))


def staged(root: Path) -> list[str]:
    """Files that lie there."""
    return sorted(path.parent.name for path in (root / ".tablestore/staged").rglob("*.arrow"))


def test_a_commit_clears_its_own_files_and_earlier_batches(tmp_path: Path) -> None:
    """A task that ran twice left another file: it is there until the next batch, whose driver may still be killed."""
    engine, write = target(tmp_path)
    task(write, "q", 0, (1, "+I", "left by an attempt that did not win"))
    TablestoreStreamWriter(write).commit([task(write, "q", 0, (1, "+I", "a"), (2, "+I", "b"))], 0)
    assert staged(tmp_path) == ["0"]
    TablestoreStreamWriter(write).commit([task(write, "q", 1, (2, "-D", "b")), task(write, "q", 1)], 1)
    assert staged(tmp_path) == []
    assert not (tmp_path / ".tablestore/staged/q").exists()
    assert engine.table("demo.t").scan().to_arrow().to_pylist() == [{"id": 1, "v": "a"}]


def test_a_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    """Known by query and number, whatever its rows are now; another query's batch of that number is another one."""
    engine, write = target(tmp_path)
    for query, value in (("q", "a"), ("q", "other"), ("r", "new")):
        TablestoreStreamWriter(write).commit([task(write, query, 0, (1, "+I", value))], 0)
    table = engine.table("demo.t")
    assert [(one.commit_user, one.commit_identifier) for one in table.snapshots()] == [("q", 0), ("r", 0)]
    assert table.scan().to_arrow().column("v").to_pylist() == ["new"]


def test_a_batch_whose_snapshot_has_expired_is_done(tmp_path: Path) -> None:
    """It was committed, and is not committed again, nor does the query stand still for ever."""
    engine, write = target(tmp_path)
    TablestoreStreamWriter(write).commit([task(write, "q", 0, (1, "+I", "a"))], 0)
    TablestoreStreamWriter(write).commit([task(write, "r", 0, (1, "+I", "b"))], 0)
    engine.table("demo.t").store.expire(newest(1))
    TablestoreStreamWriter(write).commit([task(write, "q", 0, (1, "+I", "a"))], 0)
    table = engine.table("demo.t")
    assert table.snapshot_ids() == (2,)
    assert table.scan().to_arrow().column("v").to_pylist() == ["b"]


def test_nothing_to_write_is_no_snapshot(tmp_path: Path) -> None:
    """No rows, no task, or tasks that failed."""
    engine, write = target(tmp_path)
    writer = TablestoreStreamWriter(write)
    for messages in ([], [None], [task(write, "q", 0)]):
        writer.commit(messages, 0)
    assert engine.table("demo.t").latest_snapshot_id() is None
    assert staged(tmp_path) == []


def test_abort_deletes_nothing(tmp_path: Path) -> None:
    """Whoever commits may still be reading."""
    _, write = target(tmp_path)
    message = task(write, "q", 0, (1, "+I", "a"))
    TablestoreStreamWriter(write).abort([message, None], 0)
    TablestoreWriter(write).abort([message, None])
    assert staged(tmp_path) == ["0"]


def test_rows_that_nobody_commits_are_leftovers(tmp_path: Path) -> None:
    """tablestore orphans finds the folder of a query that never came back, once it is old."""
    engine, write = target(tmp_path)
    task(write, "q", 0, (1, "+I", "a"))
    assert engine.orphans.folders(grace_ms=60_000, delete=False) == ()
    for path in (tmp_path / ".tablestore/staged").rglob("*"):
        os.utime(path, (0, 0))
    (found,) = engine.orphans.folders(grace_ms=60_000, delete=True)
    assert found.what == "rows of a query that were never committed"
    assert staged(tmp_path) == []


@pytest.mark.parametrize("kind", ["I", "", None])
def test_a_kind_that_is_none_is_no_insert(tmp_path: Path, kind: str | None) -> None:
    """TS1452, in the task."""
    _, write = target(tmp_path)
    with pytest.raises(FixData) as error:
        task(write, "q", 0, (1, kind, "a"))
    assert error.value.code == "TS1452"
    assert staged(tmp_path) == []


def test_a_table_that_was_dropped_is_not_made_again(tmp_path: Path) -> None:
    """TS1451."""
    engine, write = target(tmp_path)
    message = task(write, "q", 0, (1, "+I", "a"))
    engine.drop_table("demo.t")
    with pytest.raises(NotFound) as error:
        TablestoreStreamWriter(write).commit([message], 0)
    assert error.value.code == "TS1451"


@pytest.mark.parametrize(
    ("wanted", "option", "rows"),
    [
        ("id bigint", {"missingColumns": "null"}, [{"id": 1, "v": None}]),
        ("id bigint, v string, n int", {"onSchemaChange": "ignore"}, [{"id": 1, "v": "b"}]),
        (
            "id bigint, v string, n int",
            {"onSchemaChange": "append_new_columns"},
            [{"id": 1, "v": "b", "n": 5}],
        ),
    ],
)
def test_options_are_those_of_a_write(
    tmp_path: Path, wanted: str, option: dict[str, str], rows: list[dict[str, object]]
) -> None:
    """Columns that lack and columns that are new are refused, unless the option says otherwise."""
    values = {"id": 1, "v": "b", "n": 5}
    for place, said in (("without", {}), ("with", option)):
        engine, write = target(tmp_path / place, wanted, **said)
        batch = pa.RecordBatch.from_pylist([{name: values[name] for name in write.columns.names}])
        message = StagedMessage("q", write.stage(write.folder("q", "0"), [batch]))
        if not said:
            with pytest.raises(FixRequest):
                TablestoreStreamWriter(write).commit([message], 0)
            assert engine.table("demo.t").latest_snapshot_id() is None
            continue
        TablestoreStreamWriter(write).commit([message], 0)
        assert engine.table("demo.t").scan().to_arrow().to_pylist() == rows


def test_rows_of_one_key_need_an_order(tmp_path: Path) -> None:
    """TS1601, or the last one with duplicates=last."""
    engine, write = target(tmp_path)
    rows = ((1, "+I", "a"), (1, "+U", "b"))
    with pytest.raises(FixData) as error:
        TablestoreStreamWriter(write).commit([task(write, "q", 0, *rows)], 0)
    assert error.value.code == "TS1601"
    write = replace(write, options=replace(write.options, duplicates="last"))
    TablestoreStreamWriter(write).commit([task(write, "q", 0, *rows)], 0)
    assert engine.table("demo.t").scan().to_arrow().to_pylist() == [{"id": 1, "v": "b"}]
