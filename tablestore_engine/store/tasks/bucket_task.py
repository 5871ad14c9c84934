"""One piece of work on one bucket as a value: what is done, to which stored files, with which rows.

INVARIANT  frozen and picklable: no file system, no clock, no ids, no cache. What a task does depends on the task and on
           the immutable files that it names, so it may run in a thread, in a Spark task, twice, or never.
INVARIANT  a task has the state of its bucket at one snapshot; its change is right on snapshots with the same state only
           (ConflictScope). Its vectors are those of all files: the change has to name the whole map.
INVARIANT  rows are those of routing.route_rows: of this bucket, with the table's columns, checked. Nobody checks again.
WHY        Upsert and Replace are not one: a key finds the stored row, without a key only the whole row does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.table_traits import TableTraits

if TYPE_CHECKING:
    from tablestore_engine.format.cluster_order import ClusterOrder
    from tablestore_engine.lsm.compaction_strategy import CompactionUnit
    from tablestore_engine.store.files.bucket_state import BucketState
    from tablestore_engine.store.rows.row_filter import RowFilter


@dataclass(frozen=True)
class TaskTable:
    """`traits` hold the schema that is written, which may not be committed yet, and the options of this write."""

    layout: TableLayout
    traits: TableTraits

    @property
    def schema(self) -> TableSchema:
        return self.traits.schema


class _CarriesRows:
    """Pickles `rows` as a stream: Arrow would send the whole batch along of which they are a slice.

    Arrays of numpy are equal as a whole, so that the task is a value.
    """

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(
            np.array_equal(a, b) if any(isinstance(one, np.ndarray) for one in (a, b)) else a == b
            for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment] # as all that carries rows

    def __getstate__(self) -> dict[str, object]:
        state = dict(vars(self))
        rows = state["rows"]
        if isinstance(rows, pa.Table):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as stream:
                stream.write_table(rows)
            state["rows"] = sink.getvalue().to_pybytes()
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        rows = state["rows"]
        if isinstance(rows, bytes):
            state = {**state, "rows": pa.ipc.open_stream(rows).read_all()}
        vars(self).update(state)


@dataclass(frozen=True, eq=False)
class Upsert(_CarriesRows):
    """`kinds`: int8 RowKind per row, None when all rows are put. `rows` None: none came, only `picks` acts.

    level   where the new run goes: below all others, above level 0
    picks   a difference: of these stored rows those whose keys do not come are deleted, identical ones stay untouched,
            and the sequence field does not protect them
    """

    table: TaskTable
    state: BucketState
    level: int
    rows: pa.Table | None = None
    kinds: npt.NDArray[np.int8] | None = None
    picks: RowFilter | None = None


@dataclass(frozen=True, eq=False)
class Append(_CarriesRows):
    """`state` says which bucket; it names no files, since none matters. `rows` keep their order."""

    table: TaskTable
    state: BucketState
    rows: pa.Table
    first_sequence: int


@dataclass(frozen=True, eq=False)
class Replace(_CarriesRows):
    """Of the picked rows those that equal a new one stay, one for one; `first_sequence`: of rows that are new."""

    table: TaskTable
    state: BucketState
    picks: RowFilter
    rows: pa.Table | None
    first_sequence: int


@dataclass(frozen=True)
class CompactRuns:
    """`unit` names files of `state`, and the level of the run that takes their place."""

    table: TaskTable
    state: BucketState
    unit: CompactionUnit


@dataclass(frozen=True)
class CompactLevelZero:
    """All level 0 files of `state`, onto the free `level`. They win over stored rows unless the sequence field says
    otherwise: they were committed later.
    """

    table: TaskTable
    state: BucketState
    level: int


@dataclass(frozen=True)
class CompactSmallFiles:
    """Each of `groups`, files of `state` in their order, becomes one file (or several of the target size)."""

    table: TaskTable
    state: BucketState
    groups: tuple[tuple[str, ...], ...]

    @property
    def file_names(self) -> frozenset[str]:
        return frozenset(name for group in self.groups for name in group)


@dataclass(frozen=True)
class ClusterFiles:
    """`file_names` of `state`, whose rows become one run on `level`, sorted by `order`."""

    table: TaskTable
    state: BucketState
    file_names: tuple[str, ...]
    order: ClusterOrder
    level: int


@dataclass(frozen=True)
class RestoreBucket:
    """The visible rows of `files`, which the bucket had in another snapshot, in place of those of `state`.

    `level`, `first_sequence`: of rows that come back; a keyed table needs the first, an append-only one the second.
    """

    table: TaskTable
    state: BucketState
    files: tuple[StoredFile, ...]
    level: int
    first_sequence: int


@dataclass(frozen=True)
class Rescale:
    """Those of the visible rows of `files` that belong into the bucket of `state`, which has no files yet.

    `table` has the new bucket count; `level`: of a keyed table's run.
    """

    table: TaskTable
    state: BucketState
    files: tuple[StoredFile, ...]
    level: int


BucketTask = (
    Upsert
    | Append
    | Replace
    | CompactRuns
    | CompactLevelZero
    | CompactSmallFiles
    | ClusterFiles
    | RestoreBucket
    | Rescale
)
