"""Sequence groups of the merge engine partial-update: columns that follow a sequence of their own.

CHANGE     which rows count for the columns of a sequence group
Rule       a version whose sequence fields are all NULL is none for its group. Another one is newer or equal to those
           before it, or late; NULL is the smallest value.
PAIMON     of the newest version NULL counts too, a retraction leaves NULL. Aggregates take late versions as if they
           came first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.aggregate_function import AggregateFunction, no_retraction
from tablestore_engine.lsm.aggregate_picks import First
from tablestore_engine.lsm.key_order import (
    Index,
    Mask,
    fixed_words,
    order_frame,
    order_permutation,
    starts_of_groups,
)
from tablestore_engine.lsm.version_groups import NO_ROW, VersionGroups, pick_values


@dataclass(frozen=True)
class SequenceGroup:
    """`fields` order the versions for `columns`, of which some have `functions`; retractions leave `ignoring` alone."""

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    functions: Mapping[str, AggregateFunction] = field(default_factory=dict)
    ignoring: frozenset[str] = frozenset()

    def find_newest(self, rows: pa.Table, groups: VersionGroups) -> tuple[Mask, Mask]:
        """By place: which versions are of the group, and which of those are not late."""
        named = np.zeros(len(groups.rows), dtype=np.bool_)
        for name in self.fields:
            column = rows.column(name)
            named |= np.asarray(column.is_valid())[groups.rows] if column.null_count else True
        newest = np.zeros(len(groups.rows), dtype=np.bool_)
        mine = groups.only(named)
        ranks = self._ranks(rows, mine)
        by_key = mine.keys * (int(ranks.max(initial=0)) + 1) + ranks
        newest[named] = np.maximum.accumulate(by_key) == by_key
        return named, newest

    def _ranks(self, rows: pa.Table, groups: VersionGroups) -> Index:
        """Of each version among all of these, from 0; equal ones for equal fields. Small whole numbers are ranks."""
        frame = order_frame([groups.values(rows.column(name)) for name in self.fields])
        words = fixed_words(frame)
        if words is not None and len(words):
            least, most = int(words.min()), int(words.max())
            if most - least < 2**62 // (groups.count + 1):
                return np.asarray(words.astype(np.int64) - least)
        order = order_permutation(frame)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.cumsum(starts_of_groups(frame[order])) - 1
        return ranks


@dataclass(frozen=True)
class GroupVersions:
    """What counts for a group: `groups` from the last reset of each key on.

    begins   places of versions whose values the row has as they are: a reset, or a retraction that came first
    resets   which of these are resets; another one retracts, too
    """

    groups: VersionGroups
    begins: Mask
    resets: Mask


def group_values(group: SequenceGroup, rows: pa.Table, versions: GroupVersions) -> dict[str, pa.ChunkedArray]:
    """One value for each key, of each column of the group. Raises FixData TS1660."""
    groups = versions.groups
    named, newest = group.find_newest(rows, groups)
    places = np.arange(len(groups.rows))
    last = np.maximum.reduceat(np.where(newest | versions.begins, places, -1), groups.starts)
    last_newest = np.maximum.reduceat(np.where(newest, places, -1), groups.starts)
    last = np.where(last_newest >= 0, last_newest, last)
    found = np.full(groups.count, NO_ROW, dtype=np.int64)
    there = last >= 0
    found[groups.present[there]] = groups.rows[last[there]]
    plain, away = found.copy(), there & (last_newest >= 0)
    away[away] = (groups.retracts & ~versions.resets)[last_newest[away]]
    plain[groups.present[away]] = NO_ROW
    made = {name: pick_values(rows.column(name), found) for name in group.fields}
    for name in group.columns:
        if name not in group.functions:
            made[name] = pick_values(rows.column(name), plain)
    counted = _counted(versions, named, newest) if group.functions else groups
    for name, function in group.functions.items():
        made[name] = _aggregated(name, function, rows.column(name), counted, ignores=name in group.ignoring)
    return made


def _counted(versions: GroupVersions, named: Mask, newest: Mask) -> VersionGroups:
    """Versions of the group; one that begins a row adds its value, and if it is no reset retracts it then."""
    groups = versions.groups
    twice = versions.begins & ~versions.resets & named
    repeated = np.repeat(np.arange(len(groups.rows)), np.where(twice, 2, 1))
    is_first = np.append(True, repeated[1:] != repeated[:-1])
    retracts = groups.retracts[repeated] & ~(versions.begins[repeated] & is_first)
    late = (named & ~newest & ~groups.retracts)[repeated]
    whole = VersionGroups(groups.rows[repeated], groups.keys[repeated], groups.count, retracts, late)
    return whole.only((named | versions.begins)[repeated])


def _aggregated(
    name: str, function: AggregateFunction, values: pa.ChunkedArray, groups: VersionGroups, *, ignores: bool
) -> pa.ChunkedArray:
    if groups.retracts.any():
        if isinstance(function, First) or not (ignores or function.retracts):
            raise no_retraction(name)
        if ignores:
            groups = groups.only(~groups.retracts)
    if function.appends_late and not ignores:
        groups = replace(groups, late=None)
    return function.aggregate(values, groups)
