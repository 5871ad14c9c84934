"""The schema that a write needs: of a new table, or the existing one changed as the caller allows.

CHANGE     which schema a write needs (model config on_schema_change); where an added log starts (options
           tablestore.log-start, tablestore.log-start-snapshot)
Steps      1 no table: assign ids, add the defaults of our tables   2 keys and partitions must agree
           3 columns by on_schema_change   4 options: mutable ones follow the spec, layout stays
INVARIANT  a column keeps its id while its name and meaning stay; ids are never used twice.
INVARIANT  nothing is written here: an error leaves the table as it was (P7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.column_default import check_defaults, take_options
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.evolution_cast import is_widening
from tablestore_engine.format.file_index_columns import check_file_indexes
from tablestore_engine.format.nested_columns import add_nested
from tablestore_engine.format.nested_fields import field_differences
from tablestore_engine.format.schema import TableSchema, assign_type_ids, new_schema
from tablestore_engine.format.schema_change import (
    add_column,
    drop_column,
    relax_column,
    rename_column,
    retype_column,
)
from tablestore_engine.format.schema_check import check_collations, check_schema
from tablestore_engine.iceberg.schema_mapping import check_iceberg
from tablestore_engine.lsm.merge_options import check_merge_options, engine_defaults
from tablestore_engine.options import (
    GIVEN_ONCE,
    OPTIONS,
    Option,
    OptionSet,
    OptionType,
    Scope,
    check_options,
    current_names,
)
from tablestore_engine.store.expiry.partition_time import check_rule
from tablestore_engine.store.expiry.record_time import check_record_rule
from tablestore_engine.store.retention import DONE_BY_COMMITS
from tablestore_engine.store.table_traits import has_log
from tablestore_engine.warehouse.write.row_columns import with_types
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec

KEYED_DEFAULTS: Mapping[str, str] = {
    "bucket": "1",
    "merge-engine": "deduplicate",
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "write-only": "true",
    "num-levels": "20",
}
APPEND_DEFAULTS: Mapping[str, str] = {"bucket": "-1", "deletion-vectors.enabled": "true"}


@dataclass(frozen=True)
class TargetPlan:
    """`schema` has the id of the current one when it is unchanged, the next id when `is_changed`.

    `gains_log`: it has a log system and the table, which exists, has none yet.
    """

    schema: TableSchema
    is_new: bool
    is_changed: bool
    gains_log: bool = False


def plan_target(
    current: TableSchema | None,
    columns: Sequence[DataField],
    spec: TableSpec,
    on_schema_change: OnSchemaChange,
    *,
    table: str,
    new_uuid: str,
) -> TargetPlan:
    """Raises FixRequest TS1010-TS1013, TS1026, TS1027, TS1087, TS1340, TS1376, TS11xx (columns, types, options)."""
    check_options(spec.options, stored={} if current is None else current.options)
    if current is None or on_schema_change is OnSchemaChange.REPLACE:
        check_collations(columns)
    columns = with_types(columns, current, on_schema_change)
    known = columns if current is None else [*current.fields, *columns]
    spec = replace(spec, options=spelled_options(current_names(spec.options), known, table))
    if current is None:
        first = take_options(_first_schema(columns, spec, new_uuid), spec.options)
        check_defaults(first)
        check_rule(first, spec.options)
        check_record_rule(first, spec.options)
        check_merge_options(first)
        check_file_indexes(first)
        check_layout_options(first)
        check_schema(first)
        check_iceberg(first)
        return TargetPlan(first, is_new=True, is_changed=True)
    _check_same_keys(current, spec, table)
    changed = _with_columns(current, columns, on_schema_change, table)
    changed = take_options(_with_options(changed, spec, table), spec.options)
    check_defaults(changed, current)
    check_rule(changed, spec.options)
    check_record_rule(changed, spec.options)
    changed = _with_comments(changed, spec)
    if on_schema_change is OnSchemaChange.REPLACE:
        changed = _in_order(changed, columns)
        changed = _with_not_null(changed, [_known(name, columns) for name in spec.not_null])
    if replace(changed, id=current.id) == current:
        return TargetPlan(current, is_new=False, is_changed=False)
    check_merge_options(changed)
    check_file_indexes(changed)
    check_layout_options(changed)
    check_schema(changed, lambda: (current,))
    check_iceberg(changed, lambda: (current,))
    gains_log = not has_log(current.options) and has_log(changed.options)
    return TargetPlan(replace(changed, id=current.id + 1), is_new=False, is_changed=True, gains_log=gains_log)


def check_layout_options(schema: TableSchema) -> None:
    """Rules of clustering and of done partitions, loaded for the few tables that have them (decision 0137).

    Raises FixRequest TS1213, TS1214, TS1217.
    """
    if any(key.startswith(("clustering.", "sink.clustering.")) for key in schema.options):
        from tablestore_engine.format.cluster_order import check_clustering  # noqa: PLC0415

        check_clustering(schema)
    if schema.options.keys() & {*DONE_BY_COMMITS, "partition.mark-done-action"}:
        from tablestore_engine.store.expiry.done_rule import check_done_rule  # noqa: PLC0415

        check_done_rule(schema)


def spelled_options(
    options: Mapping[str, str], columns: Sequence[DataField], table: str
) -> Mapping[str, str]:
    """With the columns that options name as the table writes them. Raises FixRequest TS1087 for one that it lacks."""
    have, spelled = {field.name for field in columns}, dict(options)
    known = {field.name.lower(): field.name for field in reversed(columns)}
    for key, text in options.items():
        option = OPTIONS.get(key)
        if option is None or option.type is not OptionType.COLUMNS:
            continue
        names = OptionSet({key: text}).columns(key)
        for name in names:
            if name.lower() not in known:
                raise FixRequest(
                    "TS1087",
                    f"option {key!r} names column {name!r}, which {table} does not have",
                    why=f"its columns are {', '.join(sorted(have))}",
                    fix=f"correct {key!r}: columns of the table, separated by commas",
                )
        if not have.issuperset(names):
            spelled[key] = ",".join(name if name in have else known[name.lower()] for name in names)
    return spelled


def _first_schema(columns: Sequence[DataField], spec: TableSpec, new_uuid: str) -> TableSchema:
    defaults = KEYED_DEFAULTS if spec.primary_key else APPEND_DEFAULTS
    options = {**defaults, **(engine_defaults(spec.options) if spec.primary_key else {}), **spec.options}
    options.setdefault("tablestore.table-uuid", new_uuid)
    named = {_known(name, columns).lower() for name in spec.not_null}
    fields = [
        replace(
            field,
            type=field.type.with_nullable(field.name.lower() not in named),
            description=_comment_of(field.name, spec) or field.description,
        )
        for field in columns
    ]
    return new_schema(
        fields,
        partition_keys=_spelled(spec.partition_by, columns),
        primary_keys=_spelled(spec.primary_key, columns),
        options=options,
        comment=spec.comment,
    )


def _spelled(names: Sequence[str], columns: Sequence[DataField]) -> list[str]:
    """Names as the columns write them; SQL does not mind case."""
    known = {field.name.lower(): field.name for field in columns}
    return [known.get(name.lower(), name) for name in names]


def _known(name: str, columns: Sequence[DataField]) -> str:
    """The name of a column that has to exist. Raises FixRequest TS1027."""
    if name.lower() not in {field.name.lower() for field in columns}:
        raise FixRequest(
            "TS1027",
            f"column {name!r} cannot be NOT NULL",
            why=f"it does not exist; the columns are {', '.join(field.name for field in columns)}",
            fix="correct the name of the column",
        )
    return name


def _check_same_keys(current: TableSchema, spec: TableSpec, table: str) -> None:
    for what, wanted, present in (
        ("primary key", spec.primary_key, current.primary_keys),
        ("partitions", spec.partition_by, current.partition_keys),
    ):
        if wanted and [name.lower() for name in wanted] != [name.lower() for name in present]:
            raise FixRequest(
                "TS1010",
                f"the {what} of {table} cannot change",
                why=f"the table has {list(present)}, the write asks for {list(wanted)}",
                fix="keep them, or drop the table and build it again",
            )


def _with_columns(
    current: TableSchema, columns: Sequence[DataField], on_change: OnSchemaChange, table: str
) -> TableSchema:
    have = {field.name.lower(): field for field in current.fields}
    given = {field.name.lower(): field for field in columns}
    added = [field for field in columns if field.name.lower() not in have]
    removed = [field for field in current.fields if field.name.lower() not in given]
    retyped = [
        (have[name], field)
        for name, field in given.items()
        if name in have and _differs(have[name].type, field.type)
    ]
    if on_change in (OnSchemaChange.IGNORE, OnSchemaChange.SAME_COLUMNS):
        return current
    if on_change is OnSchemaChange.FAIL:
        if added or removed or retyped:
            raise FixRequest(
                "TS1011",
                f"the columns of {table} and of the write differ",
                why=f"new {_names(added)}, missing {_names(removed)}, other types {_names([f for f, _ in retyped])}",
                fix="set on_schema_change to append_new_columns or sync_all_columns, or change the query",
            )
        return current
    changed = current
    for field in added:
        changed = add_column(
            changed, field.name, field.type.with_nullable(True), description=field.description
        )
    if on_change is OnSchemaChange.APPEND_NEW_COLUMNS:
        return _with_nested(changed, retyped)
    for field in removed:
        changed = drop_column(changed, field.name)
    for old, new in retyped:
        changed = _retyped(changed, old, new, on_change)
    return changed


def _with_nested(schema: TableSchema, retyped: Sequence[tuple[DataField, DataField]]) -> TableSchema:
    """With the fields that structs of the rows have besides, in (column of the table, of the rows)."""
    for old, new in retyped:
        for found in field_differences(old.type, new.type, (old.name,)):
            if found.added is not None:
                field = DataField(0, found.path[-1], found.added.all_nullable())
                schema = add_nested(schema, found.path, field)
    return schema


def _retyped(schema: TableSchema, old: DataField, new: DataField, on_change: OnSchemaChange) -> TableSchema:
    """Widen in place; a full refresh may also give the name to a new column of another type."""
    wanted = new.type.with_nullable(old.type.nullable)
    if (
        on_change is OnSchemaChange.REPLACE
        and not _can_widen(old.type, wanted)
        and not _is_key(schema, old.name)
    ):
        # in this order, because a table's only column cannot be dropped
        added = add_column(
            schema, f"{old.name}__new", new.type.with_nullable(True), description=old.description
        )
        return rename_column(drop_column(added, old.name), f"{old.name}__new", old.name)
    if _can_widen(wanted, old.type) and on_change is not OnSchemaChange.REPLACE:
        return schema  # the query's values fit the wider column
    return retype_column(schema, old.name, wanted)


def _can_widen(old: DataType, new: DataType) -> bool:
    return old.is_atomic and new.is_atomic and is_widening(old, new)


def _is_key(schema: TableSchema, name: str) -> bool:
    return name in {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}


def _differs(have: DataType, given: DataType) -> bool:
    """Whether two types differ apart from NOT NULL; children of a given ROW have no ids of the table yet."""
    return _without_ids(have) != _without_ids(given)


def _without_ids(type_: DataType) -> DataType:
    return assign_type_ids(type_.all_nullable(), highest=0)[0]


def _names(fields: Sequence[DataField]) -> str:
    return "[" + ", ".join(field.name for field in fields) + "]"


def _with_options(schema: TableSchema, spec: TableSpec, table: str) -> TableSchema:
    options = dict(schema.options)
    for key, value in spec.options.items():
        known = OPTIONS.get(key)
        if options.get(key) == value or key in GIVEN_ONCE:
            continue
        if known is not None and not known.mutable and not _may_begin(known, schema):
            present = OptionSet(options).find(known.key)
            if present == value:
                continue
            raise FixRequest(
                "TS1012",
                f"option {key!r} of {table} cannot change",
                why=f"the table has {present!r}, the write asks for {value!r}; rows already lie that way",
                fix="keep it, or drop the table and build it again",
            )
        options[key] = value
    return replace(schema, options=options)


def _may_begin(option: Option, schema: TableSchema) -> bool:
    """A table without a log may get one; any other immutable option counts as set from the beginning, by default."""
    return option.scope is Scope.LOG and not has_log(schema.options)


@dataclass(frozen=True)
class AddedLog:
    """Of a table that exists already: snapshots up to `after` count as published; `options` that it keeps."""

    after: int
    options: Mapping[str, str]


def plan_log_start(options: Mapping[str, str], snapshot_ids: Sequence[int], table: str) -> AddedLog:
    """By `tablestore.log-start` of the table's `options`; from snapshot 1 on none may be missing unless it says so.

    `snapshot_ids`: those that exist; () for a table without any. Raises FixRequest TS1083.
    """
    newest = max(snapshot_ids, default=0)
    start = OptionSet(options).text("tablestore.log-start")
    if start == "latest":
        return AddedLog(newest, {})
    if start == "latest-full" and newest:
        return AddedLog(newest - 1, {"tablestore.log-start-snapshot": str(newest)})
    gone = sorted(set(range(1, newest + 1)) - set(snapshot_ids))
    if gone:
        many = f"{len(gone)} of {newest} snapshots do" if len(gone) > 1 else f"1 of {newest} snapshots does"
        raise FixRequest(
            "TS1083",
            f"{table} cannot get a log that begins with all its snapshots; nothing was changed",
            why=f"{many} not exist any more (the first that is missing is {gone[0]}): expired or deleted",
            fix="set 'tablestore.log-start' = 'latest-full' (the log begins with the rows of today) or 'latest' (with "
            "what comes next)",
        )
    return AddedLog(0, {})


def _with_comments(schema: TableSchema, spec: TableSpec) -> TableSchema:
    fields = tuple(
        replace(field, description=_comment_of(field.name, spec) or field.description)
        for field in schema.fields
    )
    return replace(schema, fields=fields, comment=spec.comment or schema.comment)


def _comment_of(name: str, spec: TableSpec) -> str | None:
    by_name = {key.lower(): text for key, text in spec.column_comments.items()}
    return by_name.get(name.lower())


def _in_order(schema: TableSchema, columns: Sequence[DataField]) -> TableSchema:
    """Columns in the order of the query."""
    place = {field.name.lower(): index for index, field in enumerate(columns)}
    return replace(schema, fields=tuple(sorted(schema.fields, key=lambda field: place[field.name.lower()])))


def _with_not_null(schema: TableSchema, not_null: Sequence[str]) -> TableSchema:
    """A full refresh writes all rows anew, so NOT NULL may come and go; keys are always NOT NULL."""
    named = {name.lower() for name in not_null}
    changed = schema
    for field in schema.fields:
        is_required = field.name.lower() in named or field.name in schema.primary_keys
        if field.type.nullable and is_required:
            fields = tuple(
                replace(one, type=one.type.with_nullable(False)) if one.id == field.id else one
                for one in changed.fields
            )
            changed = replace(changed, fields=fields)
        elif not field.type.nullable and not is_required:
            changed = relax_column(changed, field.name)
    return changed
