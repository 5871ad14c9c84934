"""Two states of a table that are compared: published snapshots by their ids or tags, a staged one as `@staged`.

Steps      names → ids and the branch → changes of the main line up to the base of the staged snapshot → its own changes
           where changelogs do not have these changes → the rows of both states are compared
INVARIANT  a staged snapshot is compared with its base and with what came before. What was published after its base is
           no part of its history: unless that changed no row, the comparison is refused (TS1545).
Rows       are compared when a changelog between the states is gone (a tag keeps the files of its snapshot alone), or
           does not say what a key was before (`changelog-producer` none and input, and tables whose readers merge)
INVARIANT  each row is `-D` or `+I`, and no row is both: equal rows of both states cancel (store.difference).
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.difference import Difference
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.metadata.commit_history import rows_version
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.stream.change_source import result_schema, told_rows

if TYPE_CHECKING:
    from tablestore_engine.store.stage.stage_rebase import StagedSnapshot
    from tablestore_engine.warehouse.net_changes import ChangeCounts, NetChange
    from tablestore_engine.warehouse.net_ends import NetEnds


def tells_both_rows(store: TableStore, first: int, last: int) -> bool:
    """Whether changelogs have the row before and the row after of each change of the snapshots (first, last] that a
    reader sees.
    """
    schema = store.schema
    return not schema.is_keyed or (TableTraits(schema).has_inbox and store.context.tells_all(first, last))


@dataclass(frozen=True)
class OneState:
    """One snapshot and the store that knows its schema: of the table, or of a branch. None: no rows."""

    store: TableStore
    snapshot: Snapshot | None

    def files(self) -> tuple[StoredFile, ...]:
        return () if self.snapshot is None else self.store.plan_scan(self.snapshot).files


@dataclass(frozen=True)
class StateDifference:
    """Changes have the columns of the store of `after`."""

    before: OneState
    after: OneState

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """As read_change_batches, with the snapshot id of `after`. Files that both states share are not opened."""
        store = self.after.store
        schema = store.schema
        gone, came = self._unshared()
        difference = Difference(FileReader(store.fileio, schema), gone, came, schema.primary_keys)
        target = result_schema(schema, columns)
        number = 0 if self.after.snapshot is None else self.after.snapshot.id
        for _, rows in difference.read():
            kinds = rows.column(ROW_KIND_COLUMN).combine_chunks()
            ids = pa.array(np.full(rows.num_rows, number), pa.int64())
            yield from told_rows(rows.select(target.names[:-2]), kinds, ids, target).to_batches()

    def count_read(self) -> int:
        """How many stored rows `read` opens."""
        return sum(one.meta.row_count for files in self._unshared() for one in files)

    def _unshared(self) -> tuple[list[StoredFile], list[StoredFile]]:
        old, new = self.before.files(), self.after.files()
        shared = {_visible(one) for one in old} & {_visible(one) for one in new}
        gone, came = ([one for one in files if _visible(one) not in shared] for files in (old, new))
        return gone, came


def _visible(file: StoredFile) -> tuple[str, int, str, bytes]:
    """Equal for files with the same visible rows."""
    dead = b"" if file.deleted is None else file.deleted.serialize()
    return file.partition_path, file.bucket, file.meta.file_name, dead


STAGED = "@staged"
SnapshotName = int | str  # an id, a tag, `@staged`, or `@staged:NAME`


def pick_staged(
    store: TableStore, name: SnapshotName, find_beside: Callable[[], TableStore | None]
) -> StagedSnapshot | None:
    """The staged snapshot that is meant, None for an id or a tag. `find_beside`: the table that replaces this one.

    Raises FixRequest TS1544 for several, TS1547 for one that is a table of its own, NotFound TS1546 for none.
    """
    if isinstance(name, int) or name.partition(":")[0] != STAGED:
        return None
    there, wanted = store.staging.list_all(), name.partition(":")[2]
    found = [one for one in there if wanted in ("", one.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise FixRequest(
            "TS1544",
            f"{STAGED} of {store.location} is one of {len(found)} staged snapshots",
            why=f"staged: {', '.join(one.name for one in there)}",
            fix=f"name one of them: {STAGED}:{found[-1].name}",
        )
    beside = find_beside()
    if beside is not None and any(wanted in ("", one.name) for one in beside.staging.list_all()):
        raise _is_beside(store, beside)
    raise NotFound(
        "TS1546",
        f"{store.location} has no staged snapshot{f' {wanted}' if wanted else ''}",
        why=f"staged: {', '.join(one.name for one in there) or 'none'}",
        fix="it may be published or dropped already: list them with tablestore staged",
    )


def _is_beside(store: TableStore, beside: TableStore) -> FixRequest:
    newest = beside.staging.list_all()[-1].name
    return FixRequest(
        "TS1547",
        f"staged snapshot {newest} of {store.location} cannot be compared with published snapshots",
        why="it is a table of its own, with another key, partitions or layout, and has no changelog from the old rows",
        fix=f"query both with tablestore sql: `<schema>__at_branch_{newest}`.`<table>` has the staged rows",
    )


@dataclass(frozen=True)
class ComparedStates:
    """The changes in (low, high], of which those after `base` are in the branch `stage`; without it all are published.

    `first` and `second` are the ids as they were asked for: second may be the earlier state. `tags`: the names of both,
    "" without one. `files`: the two states whose rows are compared; None: changelogs have the changes. `is_kept`: the
    snapshot of a tag is no longer in the line of snapshots, so no changelog begins or ends there.
    """

    store: TableStore
    first: int
    second: int
    low: int
    high: int
    stage: StagedSnapshot | None = None
    tags: tuple[str, str] = ("", "")
    files: StateDifference | None = None
    is_kept: bool = False

    @property
    def is_swapped(self) -> bool:
        """Whether the way back is asked for."""
        return self.first != self.low

    def title(self) -> str:
        """`snapshot 1 to 2`; a staged one as `2 (@staged)`, a tagged one as `1 (tag t1)`."""
        names = [
            f"{one} ({STAGED})"
            if self.stage is not None and one == self.high
            else f"{one} (tag {tag})"
            if tag
            else str(one)
            for one, tag in zip((self.first, self.second), self.tags, strict=True)
        ]
        return f"snapshot {' to '.join(names)}"

    @property
    def seen(self) -> TableStore:
        """The table with the columns that the changes have."""
        return self.store if self.stage is None else self.store.on_staged(self.stage.name)

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All changes in their order; `columns`: some of the table's. Raises as read_change_batches."""
        from tablestore_engine.warehouse.snapshot_diff import read_change_batches

        if self.files is not None:
            yield from self.files.read(columns)
            return
        if self.stage is None:
            yield from read_change_batches(self.store, self.low, self.high, columns)
            return
        base, seen, shape = self.stage.base_id or 0, self.seen, None
        own = read_change_batches(seen, base, self.high, columns)
        if self.low < base:
            held = list(own)  # the columns of the result are those of the staged snapshot
            shape = held[0].schema if held else None
            names = (
                None if columns is None else [one for one in columns if one in self.store.schema.field_names]
            )
            for batch in read_change_batches(self.store, self.low, base, names):
                yield batch if shape is None else _in_shape(batch, shape)
            own = iter(held)
        yield from own

    def read_changelog(self) -> Iterator[pa.RecordBatch]:
        """Each change as changelogs have it, also where they lack the rows before; net changes when `is_kept`.

        Raises FixRequest TS1016 for the way back, and as read_change_batches.
        """
        from tablestore_engine.warehouse.snapshot_diff import check_forward, read_change_batches

        if self.stage is None and not self.is_kept:
            return read_change_batches(self.store, self.first, self.second)
        check_forward(self.first, self.second)
        return self.read()

    def count(self) -> ChangeCounts:
        """Keys inserted, updated and deleted on the way from the first state to the second."""
        from tablestore_engine.warehouse.net_changes import ChangeCounts, count_net_changes

        counts = count_net_changes(self._ends())
        return ChangeCounts(counts.deleted, counts.updated, counts.inserted) if self.is_swapped else counts

    def samples(self, limit: int) -> tuple[NetChange, ...]:
        """Rows of `limit` keys of each kind on that way, in the order of the changes."""
        from tablestore_engine.warehouse.net_changes import pick_samples

        found = pick_samples(self._ends(), limit)
        return tuple(one.swapped() for one in found) if self.is_swapped else found

    def _ends(self) -> NetEnds:
        from tablestore_engine.warehouse.net_ends import NetEnds

        schema = self.seen.schema
        return NetEnds(self.read, schema.field_names, schema.primary_keys)


def compare_states(
    store: TableStore,
    first: SnapshotName,
    second: SnapshotName | None,
    find_beside: Callable[[], TableStore | None] = lambda: None,
) -> ComparedStates:
    """`second` None: the newest snapshot. A staged one alone is compared with its base.

    Raises FixRequest TS1545, NotFound TS1321 for a tag, and as pick_staged.
    """
    from_stage = pick_staged(store, first, find_beside)
    to_stage = None if second is None else pick_staged(store, second, find_beside)
    if from_stage is not None and to_stage is not None:
        raise _no_history(from_stage, f"staged snapshot {to_stage.name}")
    staged = from_stage or to_stage
    if staged is None:
        start = _find_end(store, first)
        newest = _End(store.snapshots.find_latest_id() or start.id)
        return _published(store, start, newest if second is None else _find_end(store, second))
    if second is None:
        return _staged(store, staged, _End(staged.base_id or 0), is_back=False)
    other = _find_end(store, second if from_stage is not None else first)
    return _staged(store, staged, other, is_back=from_stage is not None)


@dataclass(frozen=True)
class _End:
    """A published state. `kept`: the snapshot of a tag that is no longer (or never was) in the line of snapshots."""

    id: int
    tag: str = ""
    kept: Snapshot | None = None

    def state(self, store: TableStore) -> OneState:
        """Raises NotFound TS1302."""
        if self.kept is not None or not self.id:
            return OneState(store, self.kept)
        return OneState(store, store.snapshots.get(self.id))


def _find_end(store: TableStore, name: SnapshotName) -> _End:
    """Raises NotFound TS1321."""
    if isinstance(name, int):
        return _End(name)
    snapshot = store.tags.get(name).snapshot
    is_there = store.snapshots.find(snapshot.id) == snapshot
    return _End(snapshot.id, name, None if is_there else snapshot)


def _published(store: TableStore, first: _End, second: _End) -> ComparedStates:

    low, high = sorted((first, second), key=lambda one: one.id)
    files, is_kept = None, first.kept is not None or second.kept is not None
    if is_kept or not tells_both_rows(store, low.id, high.id):
        files = StateDifference(low.state(store), high.state(store))
    tags = (first.tag, second.tag)
    return ComparedStates(
        store, first.id, second.id, low.id, high.id, tags=tags, files=files, is_kept=is_kept
    )


def _staged(store: TableStore, staged: StagedSnapshot, other: _End, *, is_back: bool) -> ComparedStates:
    """`is_back`: from the staged snapshot to the other one."""
    low, high = _low_end(store, staged, other.id), staged.snapshot.id
    found = ComparedStates(
        store, low, high, low, high, staged, ("", other.tag) if is_back else (other.tag, "")
    )
    if other.kept is not None or not tells_both_rows(found.seen, low, high):
        start = other if other.id == low else _End(low)
        after = OneState(found.seen, staged.snapshot)
        found = replace(
            found, files=StateDifference(start.state(store), after), is_kept=other.kept is not None
        )
    return replace(found, first=high, second=low) if is_back else found


def _low_end(store: TableStore, staged: StagedSnapshot, number: int) -> int:
    """The published snapshot, or the base where it has the same rows. Raises FixRequest TS1545."""
    if number <= (staged.base_id or 0):
        return number
    other = store.snapshots.get(number)
    if rows_version(store.snapshots, other) != rows_version(store.snapshots, staged.base):
        raise _no_history(staged, f"snapshot {number}")
    return staged.base_id or 0


def _no_history(staged: StagedSnapshot, other: str) -> FixRequest:
    base = staged.base_id
    return FixRequest(
        "TS1545",
        f"staged snapshot {staged.name} cannot be compared with {other}",
        why=f"it was planned on {'an empty table' if base is None else f'snapshot {base}'}, and {other} has rows that "
        "are no part of its history",
        fix="compare it with its base: tablestore diff <table> @staged; if another writer has committed since, build "
        "the model again",
    )


def _in_shape(batch: pa.RecordBatch, shape: pa.Schema) -> pa.RecordBatch:
    """The same rows with NULL in the columns that the staged snapshot adds, and in its types."""
    columns = [
        batch.column(one.name).cast(one.type)
        if one.name in batch.schema.names
        else pa.nulls(batch.num_rows, one.type)
        for one in shape
    ]
    return pa.RecordBatch.from_arrays(columns, names=shape.names)
