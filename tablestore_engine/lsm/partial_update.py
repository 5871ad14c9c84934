"""Merge engine partial-update: of each column of a key the newest value that is not NULL.

CHANGE     the merge engine partial-update (options partial-update.remove-record-on-delete,
           partial-update.remove-record-on-sequence-group)
Steps      versions that remove the row before them → columns without group: the last value since → sequence groups
PAIMON     without an option for them retractions are an error. A -D that removes the row leaves its values to later
           versions; a row without any addition is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.lsm.combined_rows import combined, groups_of, is_delete
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged
from tablestore_engine.lsm.merge_ties import tied_rows
from tablestore_engine.lsm.sequence_groups import GroupVersions, SequenceGroup, group_values
from tablestore_engine.lsm.version_groups import NO_ROW, VersionGroups, pick_values


@dataclass(frozen=True)
class PartialUpdate:
    """`columns`: without key and group. `removing`: the group whose -D removes the row."""

    columns: tuple[str, ...]
    groups: tuple[SequenceGroup, ...] = ()
    removing: SequenceGroup | None = None
    removes_on_delete: bool = False
    newest_wins: bool = False
    keeps_stored: bool = False
    takes_retractions: bool = True
    combines: bool = True

    @property
    def merges_lone(self) -> bool:
        """Columns of a group are NULL where its sequence fields are."""
        return bool(self.groups)

    def merge(self, versions: Versions) -> Merged:
        """The newest version of each key with the values of all. Raises FixData TS1659, TS1660, TS1668."""
        rows = versions.rows
        assert rows is not None
        every = groups_of(versions)
        if not len(every.rows):
            return combined(versions, {}, None)
        resets = self._resets(versions, every)
        since = _since_reset(every, resets)
        made = {name: _newest_value(rows.column(name), since) for name in self.columns}
        for group in self.groups:
            made |= group_values(group, rows, since)
        was_added = np.logical_or.reduceat(~every.retracts, every.starts)
        return combined(versions, made, resets[every.ends] | ~was_added)

    def find_ties(self, versions: Versions) -> Index:
        """Keys whose row would be another one if rows that nothing orders came the other way round."""
        names = [*self.columns, *(name for group in self.groups for name in (*group.fields, *group.columns))]
        return tied_rows(self, versions, names)

    def _resets(self, versions: Versions, groups: VersionGroups) -> Mask:
        """By place, which versions remove the row. Raises FixData TS1668."""
        none = np.zeros(len(groups.rows), dtype=np.bool_)
        if not groups.retracts.any():
            return none
        if self.removes_on_delete:
            return is_delete(versions, groups.rows)
        if not self.groups:
            raise FixData(
                "TS1668",
                "the merge engine partial-update does not take rows that retract (-U, -D)",
                why="the table has neither sequence groups nor an option that says what they mean; Paimon fails too",
                fix="create the table with 'ignore-delete' = 'true', with 'partial-update.remove-record-on-delete' = "
                "'true' or with sequence groups; to delete rows use DELETE",
            )
        if self.removing is None:
            return none
        assert versions.rows is not None
        _, newest = self.removing.find_newest(versions.rows, groups)
        return newest & is_delete(versions, groups.rows)


def _since_reset(groups: VersionGroups, resets: Mask) -> GroupVersions:
    """Each key from its last reset on, or all of it."""
    places = np.arange(len(groups.rows))
    last = np.maximum.reduceat(np.where(resets, places, -1), groups.starts)
    start = np.repeat(np.where(last >= 0, last, groups.starts), groups.sizes)
    kept = places >= start
    begins = (places == start) & groups.retracts
    return GroupVersions(groups.only(kept), begins[kept], resets[kept])


def _newest_value(values: pa.ChunkedArray, since: GroupVersions) -> pa.ChunkedArray:
    counted = since.groups.only(~since.groups.retracts | since.begins).valid(values)
    found = counted.row_of_each(counted.ends) if len(counted.rows) else np.full(counted.count, NO_ROW)
    return pick_values(values, found)
