"""What a table of changes is read from (catalog/changed_rows.py makes it, spark/change_views.py reads it).

Names      ChangesPlan       all rows of one state as inserts, then the changes of snapshots
           ChangesOfOne      of one snapshot: files, or rows that only a comparison gives
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.changelog import ChangelogBatch
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan


@dataclass(frozen=True)
class ChangesOfOne:
    """`files` None: the rows come from `read`, in the columns of `schema`."""

    snapshot_id: int
    schema: TableSchema
    files: tuple[StoredFile, ...] | None
    read: Callable[[], Iterator[ChangelogBatch]]


@dataclass(frozen=True)
class ChangesPlan:
    """`base`: its rows come as inserts of `base_id`. `schema`: the columns of the table, without the two of changes."""

    schema: TableSchema
    steps: tuple[ChangesOfOne, ...]
    base: ScanPlan | None = None
    base_id: int = 0
