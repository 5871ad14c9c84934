"""The options of partial-update as an engine: sequence groups, their aggregate functions, and what removes a row.

CHANGE     how sequence groups are written in options (option fields.<column>.sequence-group)
INVARIANT  what Paimon refuses is refused (TS1658); what cannot be merged as Paimon does is Unsupported (TS1667).
CHANGE     the merge engine partial-update (options partial-update.remove-record-on-delete,
           partial-update.remove-record-on-sequence-group)
Steps      versions that remove the row before them → columns without group: the last value since → sequence groups
PAIMON     without an option for them retractions are an error. A -D that removes the row leaves its values to later
           versions; a row without any addition is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.aggregate_function import AggregateFunction
from tablestore_engine.lsm.aggregate_picks import First, Last
from tablestore_engine.lsm.aggregate_registry import make_function
from tablestore_engine.lsm.combined_rows import combined, groups_of, is_delete
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged
from tablestore_engine.lsm.merge_ties import tied_rows
from tablestore_engine.lsm.option_errors import not_exact, refused_option
from tablestore_engine.lsm.sequence_groups import GroupVersions, SequenceGroup, group_values
from tablestore_engine.lsm.version_groups import NO_ROW, VersionGroups, pick_values
from tablestore_engine.options import FieldOptions, OptionSet


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
