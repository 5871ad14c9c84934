"""The options of partial-update as an engine: sequence groups, their aggregate functions, and what removes a row.

CHANGE     how sequence groups are written in options (option fields.<column>.sequence-group)
INVARIANT  what Paimon refuses is refused (TS1658); what cannot be merged as Paimon does is Unsupported (TS1667).
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.aggregate_function import AggregateFunction
from tablestore_engine.lsm.aggregate_picks import First, Last
from tablestore_engine.lsm.aggregate_registry import make_function
from tablestore_engine.lsm.option_errors import not_exact, refused_option
from tablestore_engine.lsm.partial_update import PartialUpdate
from tablestore_engine.lsm.sequence_groups import SequenceGroup
from tablestore_engine.options import FieldOptions, OptionSet

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
