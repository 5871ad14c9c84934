"""Tables of the merge engine first-row: the first row of a key stays until an overwrite or a delete takes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tablestore_engine.warehouse.write.target_schema import plan_target
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec
from tests.unit.store.table_world import (
    as_table,
    changes,
    changes_of,
    delete,
    make_table,
    overwrite,
    put,
    row,
    rows_of,
)

FIRST_ROW = {"merge-engine": "first-row", "deletion-vectors.enabled": "false"}


def _table(root: Path, **options: str) -> TableStore:
    return make_table(root, options={**FIRST_ROW, **{key.replace("_", "-"): v for key, v in options.items()}})


def test_upsert_of_a_stored_key_changes_nothing(tmp_path: Path) -> None:
    """New keys are inserted, stored ones are left as they are: no file, no change, no vector of them."""
    store = _table(tmp_path)
    put(store, row(1, "a"), row(2, "a"))
    report = put(store, row(2, "b"), row(3, "b"))
    assert report.snapshot_id is not None
    assert rows_of(store) == [row(1, "a"), row(2, "a"), row(3, "b")]
    assert changes_of(store, report.snapshot_id) == changes(("+I", row(3, "b")))
    assert put(store, row(3, "c")).is_empty
    assert store.latest().index_manifest is None  # type: ignore[union-attr]
    assert store.verify() == ()


def test_retraction_is_refused_or_ignored(tmp_path: Path) -> None:
    """-D is refused before anything changes; with ignore-delete it is left out of the batch."""
    store = _table(tmp_path / "strict")
    put(store, row(1))
    with pytest.raises(FixData, match="TS1657"):
        delete(store, row(1))
    ignoring = _table(tmp_path / "ignoring", ignore_delete="true")
    kinds = pa.array([RowKind.DELETE, RowKind.UPDATE_BEFORE, RowKind.INSERT], pa.int8())
    put(ignoring, row(1))
    ignoring.write(WriteRequest(as_table([row(1), row(2), row(3)], ignoring.schema), kinds=kinds))
    assert rows_of(ignoring) == [row(1), row(3)]
    assert rows_of(store) == [row(1)]


def test_rows_leave_by_overwrite_replace_and_restore(tmp_path: Path) -> None:
    """Whatever takes rows away writes their files again; each changelog is complete, and the past stays readable."""
    store = _table(tmp_path)
    put(store, row(1, "a"), row(2, "a"), row(3, "a"))
    put(store, row(4, "a"))
    gone = as_table([row(2)], store.schema).select(["id"])
    report = store.write(WriteRequest(None, mode=WriteMode.REPLACE, replaces=SameKeys(("id",), gone)))
    assert report.snapshot_id is not None
    assert changes_of(store, report.snapshot_id) == changes(("-D", row(2, "a")))
    assert store.snapshots.get(report.snapshot_id).commit_kind is CommitKind.OVERWRITE
    assert rows_of(store) == [row(1, "a"), row(3, "a"), row(4, "a")]
    put(store, row(2, "late"))
    report = overwrite(store, row(1, "new"), row(3, "a"))
    assert report.snapshot_id is not None
    assert rows_of(store) == [row(1, "new"), row(3, "a")]
    taken = (("-U", row(1, "a")), ("+U", row(1, "new")), ("-D", row(2, "late")), ("-D", row(4, "a")))
    assert changes_of(store, report.snapshot_id) == changes(*taken)
    store.restore(store.snapshots.get(1))
    assert rows_of(store) == [row(1, "a"), row(2, "a"), row(3, "a")] == rows_of(store, 1)
    store.rescale(3)
    store.compact(full=True)
    assert rows_of(store) == [row(1, "a"), row(2, "a"), row(3, "a")]
    assert store.verify() == ()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"sequence.field": "n"}, "TS1658"),
        ({"deletion-vectors.enabled": "true"}, "TS1658"),
        ({}, None),
        ({"ignore-delete": "true"}, None),
    ],
)
def test_options_that_do_not_go_with_first_row_are_refused(
    options: Mapping[str, str], code: str | None
) -> None:
    """At creation, before there is a table; what is accepted gets a table without deletion vectors."""
    columns = [DataField(0, "id", parse_type("BIGINT NOT NULL")), DataField(1, "n", parse_type("INT"))]
    spec = TableSpec(primary_key=("id",), options={"merge-engine": "first-row", **options})

    def plan() -> Mapping[str, str]:
        made = plan_target(None, columns, spec, OnSchemaChange.FAIL, table="demo.t", new_uuid="u")
        return made.schema.options

    if code is None:
        assert plan()["deletion-vectors.enabled"] == "false"
        return
    with pytest.raises(FixRequest, match=code):
        plan()
