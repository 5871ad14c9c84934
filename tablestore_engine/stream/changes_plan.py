"""The changes of a range of snapshots: which files to read, and which rows only a comparison gives.

catalog/changes_table.py gives them a name, spark/change_views.py reads them.

CHANGE     the files of a range of changes
INVARIANT  the same range is the same changes for ever: snapshots are immutable. One that is gone is an error (TS1472).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tablestore_engine.errors import NotFound
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.sql.table_version import ChangesBetween
from tablestore_engine.store.changelog import ChangelogBatch, ChangelogReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.table_store import TableStore


@dataclass(frozen=True)
class ChangesOfOne:
    """`files` None: only `read` gives the rows. `read`: in the columns of a schema; `schema`: that of the snapshot."""

    snapshot_id: int
    schema: TableSchema
    files: tuple[StoredFile, ...] | None
    read: Callable[[TableSchema], Iterator[ChangelogBatch]]


@dataclass(frozen=True)
class ChangesPlan:
    """`base`: its rows come as inserts of `base_id`. `schema`: the columns of the table, without the two of changes."""

    schema: TableSchema
    steps: tuple[ChangesOfOne, ...]
    base: ScanPlan | None = None
    base_id: int = 0


def plan_changes_between(
    store: TableStore, end: TableStore, between: ChangesBetween, schema: TableSchema
) -> ChangesPlan:
    """`end`: the store with the last snapshot, main's or a staged one's; `schema`: of that state.

    Raises NotFound TS1472 (a snapshot is gone), TS1302.
    """
    last = end.latest() if between.until is None else end.snapshots.get(between.until)
    if last is None:
        return ChangesPlan(schema, ())
    if between.since is None:
        return ChangesPlan(schema, (), end.plan_native_scan(last, schema=schema), last.id)
    on_main = last.id if end is store else last.id - 1
    steps = [_of_one(store, _get(store, number)) for number in range(between.since + 1, on_main + 1)]
    if end is not store:
        steps.append(_of_one(end, last))
    return ChangesPlan(schema, tuple(steps))


def _of_one(store: TableStore, snapshot: Snapshot) -> ChangesOfOne:
    reader = ChangelogReader(store.context)
    own = store.context.schemas.get(snapshot.schema_id)
    return ChangesOfOne(snapshot.id, own, reader.files(snapshot), partial(reader.read, snapshot))


def _get(store: TableStore, number: int) -> Snapshot:
    found = store.snapshots.find(number)
    if found is None:
        raise NotFound(
            "TS1472",
            f"changes of {store.location} after snapshot {number - 1} are gone",
            why=f"snapshot {number} has expired, or was rolled back",
            fix="build what reads them again (a full refresh); a consumer keeps snapshots that are still needed",
        )
    return found
