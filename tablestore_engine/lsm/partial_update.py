"""Merge engine partial-update: columns, sequence groups with their aggregate functions, and what removes a row.

CHANGE     how sequence groups are written in options (option fields.<column>.sequence-group)
INVARIANT  what Paimon refuses is refused (TS1658); what cannot be merged as Paimon does is Unsupported (TS1667).
CHANGE     the merge engine partial-update (options partial-update.remove-record-on-delete,
           partial-update.remove-record-on-sequence-group)
Steps      versions that remove the row before them → columns without group: the last value since → sequence groups
PAIMON     without an option for them retractions are an error. A -D that removes the row leaves its values to later
           versions; a row without any addition is none.
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

from tablestore_engine.errors import FixData
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.aggregate_function import AggregateFunction, no_retraction
from tablestore_engine.lsm.aggregate_picks import First, Last
from tablestore_engine.lsm.aggregate_registry import make_function
from tablestore_engine.lsm.combined_rows import combined, groups_of, is_delete
from tablestore_engine.lsm.key_order import (
    Index,
    Mask,
    fixed_words,
    order_frame,
    order_permutation,
    starts_of_groups,
)
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged
from tablestore_engine.lsm.merge_ties import tied_rows
from tablestore_engine.lsm.option_errors import not_exact, refused_option
from tablestore_engine.lsm.version_groups import NO_ROW, VersionGroups, pick_values
from tablestore_engine.options import FieldOptions, OptionSet


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


_ON_DELETE = "partial-update.remove-record-on-delete"
_ON_GROUP = "partial-update.remove-record-on-sequence-group"


def make_partial_update(schema: TableSchema) -> PartialUpdate:
    """The engine of a table. Raises FixRequest TS1658, TS1662, TS1665, TS1672; Unsupported TS1661, TS1667."""
    options, fields = OptionSet(schema.options), FieldOptions(schema.options)
    functions = _functions(schema, fields)
    groups, seen = [], dict.fromkeys((*schema.primary_keys, *schema.partition_keys), "the key")
    for key, parsed in fields.keys("sequence-group").items():
        columns = tuple(part.strip() for part in schema.options[key].split(","))
        for name in (*parsed.columns, *columns):
            if name not in {field.name for field in schema.fields}:
                raise refused_option(key, f"there is no column {name!r}")
            if name in seen:
                raise refused_option(key, f"column {name} is in {seen[name]} already")
            seen[name] = key
        mine = {name: functions[name] for name in columns if name in functions}
        ignoring = frozenset(name for name in columns if fields.ignores_retract(name))
        groups.append(SequenceGroup(parsed.columns, columns, mine, ignoring))
    _check_functions(functions, groups)
    removes = options.boolean(_ON_DELETE)
    removing = _removing(options, groups)
    _check_contradictions(options, groups, removes=removes, removing=removing)
    free = tuple(field.name for field in schema.fields if field.name not in seen)
    return PartialUpdate(free, tuple(groups), removing, removes)


def _functions(schema: TableSchema, fields: FieldOptions) -> Mapping[str, AggregateFunction]:
    named = {
        field.name: fields.function(field.name)
        for field in schema.fields
        if field.name not in (*schema.primary_keys, *schema.partition_keys)
    }
    sequence = {name for parsed in fields.keys("sequence-group").values() for name in parsed.columns}
    return {
        name: make_function(function, schema.field(name), fields)
        for name, function in named.items()
        if function is not None and name not in sequence
    }


def _check_functions(functions: Mapping[str, AggregateFunction], groups: list[SequenceGroup]) -> None:
    grouped = {name for group in groups for name in group.columns}
    for name, function in functions.items():
        if name not in grouped and function != Last(skips_null=True):
            raise refused_option(
                f"fields.{name}.aggregate-function",
                "partial-update aggregates columns of sequence groups only",
                "put the column into a sequence group, or use merge-engine aggregation",
            )
        if name in grouped and function == First(skips_null=True):
            raise not_exact(
                f"first_non_null_value in a sequence group (column {name})",
                why="late rows with NULL make the result NULL in Paimon",
                fix="use first_value, or leave the column out of the group",
            )


def _removing(options: OptionSet, groups: list[SequenceGroup]) -> SequenceGroup | None:
    wanted = set(options.columns(_ON_GROUP))
    found = [group for group in groups if wanted & set(group.fields)]
    unknown = wanted - {name for group in groups for name in group.fields}
    if unknown:
        raise refused_option(_ON_GROUP, f"no sequence group is ordered by {', '.join(sorted(unknown))}")
    if len(found) > 1:
        raise not_exact(
            f"{_ON_GROUP} with fields of several sequence groups",
            why="which deletes count would depend on the order of all groups together",
            fix="name the fields of one group",
        )
    return found[0] if found else None


def _check_contradictions(
    options: OptionSet, groups: list[SequenceGroup], *, removes: bool, removing: SequenceGroup | None
) -> None:
    if removes and groups:
        raise refused_option(_ON_DELETE, "the table has sequence groups, and Paimon refuses both together")
    if options.boolean("ignore-delete") and (removes or removing):
        raise refused_option("ignore-delete", "another option says that deletes remove rows")
