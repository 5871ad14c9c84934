"""Row kinds from a column (rowkind.field), ignored -U rows, and older names of options."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixData, FixRequest, Table, TableSpec, Unsupported, WriteSpec
from tablestore_engine.format.capability import check_readable, check_writable
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import new_schema
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteRequest
from tests.unit.store.table_world import as_table, changes, changes_of, make_table, put, row, rows_of

FIELD = {"rowkind.field": "name"}
SCHEMA = pa.schema({"id": pa.int64(), "op": pa.string(), "n": pa.int32()})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Its column op has kinds."""
    engine = Engine(str(tmp_path))
    return engine.create_table("demo.t", SCHEMA, primary_key=["id"], options={"rowkind.field": "OP"})


def _ops(*ops: str | None) -> list[dict[str, object]]:
    return [{"id": at, "op": op, "n": at} for at, op in enumerate(ops)]


def _ids(table: Table) -> list[tuple[int, str]]:
    return sorted((one["id"], one["op"]) for one in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("buckets", ["1", "3", "-1"])
def test_the_column_says_what_a_row_does(tmp_path: Path, buckets: str) -> None:
    """Puts and deletes of stored and of unknown keys, with their changelog; the text is stored."""
    store = make_table(tmp_path, options={**FIELD, "bucket": buckets})
    put(store, row(1, "+I"), row(2, "+U"), row(3, "-D"))
    report = put(store, row(1, "-D"), row(2, "+U", 5), row(4, "-D"), row(5, "+I"))
    assert rows_of(store) == [row(2, "+U", 5), row(5, "+I")]
    assert report.snapshot_id is not None
    assert changes_of(store, report.snapshot_id) == changes(
        ("-D", row(1, "+I")), ("-U", row(2, "+U")), ("+U", row(2, "+U", 5)), ("+I", row(5, "+I"))
    )
    assert store.verify() == ()


@pytest.mark.parametrize("bad", [None, "", "+i", "I", "DELETE", " +I"])
def test_another_text_is_refused(table: Table, bad: str | None) -> None:
    """TS1156, also for NULL; nothing of the batch is written."""
    with pytest.raises(FixData, match="TS1156 column 'op' has 1 value"):
        table.upsert(_ops("+I", bad, "-D"))
    assert table.scan().to_arrow().num_rows == 0


def test_statements_and_filters_do_not_ask_the_column(table: Table) -> None:
    """A deleted row goes though its column says +I; keys and filters alike. An overwrite with -D lacks the row."""
    table.upsert(_ops("+I", "+U", "+I", "-D"))
    table.delete([{"id": 0}])
    table.delete("n = 1")
    assert _ids(table) == [(2, "+I")]
    table.overwrite(_ops("+I", "-D"))
    assert _ids(table) == [(0, "+I")]


def test_kinds_said_twice_are_refused(table: Table) -> None:
    """TS1155: which of them counts would be a guess."""
    with pytest.raises(FixRequest, match="TS1155"):
        table.upsert([{"id": 1, "op": "+I", "n": 1, "_ROW_KIND": 0}])


@pytest.mark.parametrize(("column", "keys"), [("gone", ["id"]), ("n", ["id"]), ("op", [])])
def test_a_column_that_has_no_kinds_makes_no_table(tmp_path: Path, column: str, keys: list[str]) -> None:
    """Without a column, a text or a key: TS1155, TS1087. Such a table of another engine is read, and not written."""
    with pytest.raises(FixRequest, match=r"TS1155|TS1087"):
        Engine(str(tmp_path)).create_table(
            "demo.t", SCHEMA, primary_key=keys, options={"rowkind.field": column}
        )
    theirs = new_schema(SCHEMA, primary_keys=keys, options={"bucket": "-1", "rowkind.field": column})
    check_readable(theirs)
    with pytest.raises(Unsupported, match="TS1127"):
        check_writable(theirs)


def _retracted(store: TableStore, kind: RowKind) -> None:
    rows = as_table([row(1, "a", 3)], store.schema)
    store.write(WriteRequest(rows, kinds=pa.array([int(kind)], pa.int8())))


@pytest.mark.parametrize("producer", ["lookup", "input"])
def test_ignored_rows_before_an_update_change_nothing(tmp_path: Path, producer: str) -> None:
    """-U is left out when it is written, of the changelog too; -D is not."""
    options = {"ignore-update-before": "true", "changelog-producer": producer}
    store = make_table(tmp_path, options=options)
    put(store, row(1, "a", 3))
    _retracted(store, RowKind.UPDATE_BEFORE)
    assert rows_of(store) == [row(1, "a", 3)]
    assert all(not changes_of(store, one) for one in store.snapshots.list_ids()[1:])
    _retracted(store, RowKind.DELETE)
    assert rows_of(store) == []


def test_older_names_mean_the_same(tmp_path: Path) -> None:
    """On tables of other engines, as Paimon looks for them: the name of today counts first. A new table stores it."""
    older = {"partial-update.ignore-delete": "true"}
    ignoring = make_table(tmp_path / "a", options=older)
    put(ignoring, row(1, "a", 3))
    _retracted(ignoring, RowKind.DELETE)
    assert rows_of(ignoring) == [row(1, "a", 3)]
    both = make_table(tmp_path / "b", options={**older, "ignore-delete": "false"})
    put(both, row(1, "a", 3))
    _retracted(both, RowKind.DELETE)
    assert rows_of(both) == []
    engine = Engine(str(tmp_path))
    spec = WriteSpec(TableSpec(primary_key=("id",), options={"first-row.ignore-delete": "true"}))
    engine.write("demo.t", [{"id": 1}], spec)
    engine.write("demo.t", [{"id": 2}], spec)
    stored = engine.table("demo.t").schema.options
    assert stored["ignore-delete"] == "true"
    assert "first-row.ignore-delete" not in stored
