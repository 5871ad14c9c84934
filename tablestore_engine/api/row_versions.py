"""Which commit made the rows of a snapshot: the version that the publishing gate compares.

Names      rows_version     a snapshot -> `user:identifier`; folds and statistics keep the version of what they fold
           was_published    whether a commit that was read while it was staged has become one of the table's
           ReadLog          what one or several statements have read, by plain names and at versions they name
WHY        a staged snapshot that is put on a folded base is published with another id and uuid, with the same rows.
"""

from __future__ import annotations

from tablestore_engine.api.gate import NOTHING, TableRead
from tablestore_engine.api.versions import split_database
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.spark.source import ResolvedTable
from tablestore_engine.store.commit_history import find_row_commit
from tablestore_engine.store.staging import STAGED_PREFIX
from tablestore_engine.store.table_store import TableStore


def rows_version(store: TableStore, snapshot: Snapshot | None) -> str:
    """`user:identifier` of the newest commit up to this one that changed rows; NOTHING without a snapshot."""
    found = find_row_commit(store.snapshots, snapshot)
    return NOTHING if found is None else commit_of(found)


def commit_of(snapshot: Snapshot) -> str:
    """`user:identifier`."""
    return f"{snapshot.commit_user}:{snapshot.commit_identifier}"


def was_published(store: TableStore, read: TableRead) -> bool:
    """Looks at the snapshots from the id it was staged as: publishing never gives a lower one."""
    latest = store.snapshots.find_latest_id() or 0
    for number in range(latest, max(read.snapshot, 1) - 1, -1):
        found = store.snapshots.find(number)
        if found is not None and commit_of(found) == read.version:
            return True
    return False


class ReadLog:
    """Filled by the statements that it is handed to, one after the other."""

    def __init__(self) -> None:
        self._seen: set[TableRead] = set()
        self._constants: set[TableRead] = set()

    def note(self, database: str, name: str, state: ResolvedTable, is_constant: bool = False) -> None:
        """A name was read; `demo__at_snapshot_5`.orders names a constant of demo.orders, as VERSION AS OF does."""
        database, version = split_database(database)
        _, branch, label, _, _ = state.version.rsplit("@", maxsplit=4)
        stage = branch.removeprefix(STAGED_PREFIX) if branch.startswith(STAGED_PREFIX) else None
        snapshot = int(label.removeprefix("s")) if label != "empty" else 0
        seen = self._constants if is_constant or version is not None else self._seen
        seen.add(TableRead(f"{database}.{name}", state.commit, snapshot, stage))

    def add(self, other: ReadLog) -> None:
        """What another one has seen, too."""
        self._seen |= other._seen
        self._constants |= other._constants

    def reads(self) -> tuple[TableRead, ...]:
        """By plain names so far, sorted; a table that moved between two statements is there twice."""
        return _sorted(self._seen)

    def constants(self) -> tuple[TableRead, ...]:
        """At versions that the text names: the same rows whenever it runs."""
        return _sorted(self._constants)


def _sorted(reads: set[TableRead]) -> tuple[TableRead, ...]:
    return tuple(sorted(reads, key=lambda one: (one.table, one.version)))
