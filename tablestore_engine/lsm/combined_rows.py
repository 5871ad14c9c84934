"""Between versions of keys and aggregates of them: which keys have several versions, and the rows that result.

INVARIANT  a lone version is its own outcome unless the merge settles its key (merge_engine).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged
from tablestore_engine.lsm.version_groups import VersionGroups, pick_values


def are_several(versions: Versions) -> Mask:
    """By key, whether it is merged: it has more than one version, or no other will come."""
    starts = np.flatnonzero(versions.starts)
    return (np.diff(np.append(starts, len(versions.order))) > 1) | np.bool_(versions.settles)


def groups_of(versions: Versions) -> VersionGroups:
    """The versions of keys that have several, numbered from 0."""
    several = are_several(versions)
    key_of = np.cumsum(versions.starts) - 1
    places = np.flatnonzero(several[key_of])
    number = np.cumsum(several) - 1
    rows = versions.order[places]
    return VersionGroups(rows, number[key_of[places]], int(several.sum()), versions.retracts[rows])


def is_delete(versions: Versions, rows: Index) -> Mask:
    """Which of these rows are -D; the other retractions are -U."""
    gone = versions.retracts[rows]
    return gone if versions.update_befores is None else gone & ~versions.update_befores[rows]


def without_earlier(groups: VersionGroups, versions: Versions) -> tuple[VersionGroups, Mask]:
    """Each key from its last -D on, which counts as an addition; and, by key, whether nothing came after it."""
    deletes = is_delete(versions, groups.rows)
    if not deletes.any():
        return groups, np.zeros(groups.count, dtype=np.bool_)
    places = np.arange(len(groups.rows))
    last = np.maximum.reduceat(np.where(deletes, places, -1), groups.starts)
    kept = places >= np.repeat(last, groups.sizes)
    retracts = groups.retracts & ~deletes
    left = VersionGroups(groups.rows[kept], groups.keys[kept], groups.count, retracts[kept])
    return left, last == groups.ends


def combined(versions: Versions, made: Mapping[str, pa.ChunkedArray], removed: Mask | None) -> Merged:
    """The newest version of each key, with the `made` values where it has several; `removed`: of those, which go.

    Raises FixData TS1666 for NULL where the table has none.
    """
    assert versions.rows is not None
    several, winners = are_several(versions), versions.order[versions.ends]
    deletes = versions.retracts[winners]
    deletes[several] = False if removed is None else removed
    at = winners.copy()
    columns = {}
    for name, values in made.items():
        whole = versions.rows.column(name)
        at[several] = len(whole) + np.arange(len(values))
        columns[name] = values if several.all() else pick_values(_stacked(whole, values), at)
        if values.null_count and not versions.rows.schema.field(name).nullable:
            _check_not_null(name, columns[name], deletes)
    return Merged(winners, deletes, columns)


def _stacked(whole: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([*whole.chunks, *values.chunks], type=whole.type)


def _check_not_null(name: str, values: pa.ChunkedArray, deletes: Mask) -> None:
    if bool((np.asarray(values.is_null()) & ~deletes).any()):
        raise FixData(
            "TS1666",
            f"column {name} would become NULL",
            why="it is NOT NULL, and a retraction took its value back",
            fix=f"set 'fields.{name}.ignore-retract' = 'true', or let the column have NULL",
        )
