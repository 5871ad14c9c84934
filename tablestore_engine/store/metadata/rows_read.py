"""Commits whose rows follow from rows that the writer has read in the table: they count on these rows alone.

Property   `tablestore.rows-read`  commit_history.rows_version of the state that was read
INVARIANT  looked at for each base of the claim: a commit of rows in between is never built on. Compactions are none.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.errors import RetryError
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.metadata.commit_history import rows_version
from tablestore_engine.store.metadata.snapshots import SnapshotStore

ROWS_READ = "tablestore.rows-read"


def check_rows_read(snapshots: SnapshotStore, base: Snapshot | None, properties: Mapping[str, str]) -> None:
    """Raises RetryError TS1489 where the base has other rows than the writer has read."""
    read = properties.get(ROWS_READ)
    if read is None:
        return
    found = rows_version(snapshots, base)
    if found != read:
        raise RetryError(
            "TS1489",
            f"another writer has changed rows of {snapshots.layout.root} during this run",
            why=f"the rows of this run follow from those of commit {read}, and the newest ones are of commit {found}",
            fix="nothing was committed: run it again",
        )
