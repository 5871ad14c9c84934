"""ALTER TABLE as a pure change of the schema.

CHANGE     what ALTER TABLE may change
INVARIANT  rows that are stored mean the same afterwards: no default for old rows, no new NOT NULL, layout stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.capability import check_readable, check_writable, list_refusals
from tablestore_engine.format.column_default import check_defaults, literal_default, option_key, take_options
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.file_index_columns import check_file_indexes
from tablestore_engine.format.nested_columns import (
    add_nested,
    describe_nested,
    drop_nested,
    has_nested,
    relax_nested,
    rename_nested,
    retype_nested,
)
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import (
    add_column,
    describe_column,
    drop_column,
    relax_column,
    rename_column,
    retype_column,
    set_options,
)
from tablestore_engine.lsm.merge_options import check_merge_options
from tablestore_engine.options import OPTIONS, check_options, current_names, stored_text
from tablestore_engine.sql.statement import (
    AddColumns,
    AlterAction,
    AlterColumn,
    DropColumns,
    RenameColumn,
    SetProperties,
    UnsetProperties,
)
from tablestore_engine.store.expiry.partition_time import check_rule
from tablestore_engine.store.expiry.record_time import check_record_rule
from tablestore_engine.store.table_traits import TableTraits, has_log
from tablestore_engine.warehouse.write.target_schema import check_layout_options

_LAYOUT_KEYS = ("primary-key", "partition")  # how other engines write them


def alter_schema(schema: TableSchema, action: AlterAction, columns: tuple[DataField, ...]) -> TableSchema:
    """ALTER TABLE as a pure change of the schema. Raises TS1061, TS111x, TS1125, TS1153, TS1340, TS1376, TS1574,
    option errors.
    """
    changed = _altered(schema, action, columns)
    check_defaults(changed, schema)
    return changed


def _altered(schema: TableSchema, action: AlterAction, columns: tuple[DataField, ...]) -> TableSchema:
    action = _as_spelled(action, schema)
    match action:
        case AddColumns():
            return _add_columns(schema, action, columns)
        case DropColumns(names=names, nested=nested, if_exists=if_exists):
            for path in nested:
                if not if_exists or has_nested(schema, path):
                    schema = _read_by_options(drop_nested(schema, path))
            for name in names:
                if not if_exists or name in schema.field_names:
                    schema = drop_column(schema, name)
            return schema
        case RenameColumn(old=old, new=new, parents=parents):
            if parents:
                return _read_by_options(rename_nested(schema, (*parents, old), new))
            return rename_column(schema, old, new)
        case AlterColumn():
            return _alter_column(schema, action, columns)
        case SetProperties(properties=pairs):
            return _set_options(schema, dict(pairs))
        case UnsetProperties(keys=keys, if_exists=if_exists):
            return _unset_options(schema, keys, if_exists=if_exists)
        case _:
            raise FixRequest("TS1021", "ALTER TABLE cannot do this", why=str(action), fix="see docs/sql.md")


def _read_by_options(schema: TableSchema) -> TableSchema:
    """The schema, unless an option of its merge engine names a nested column that is gone. Raises FixRequest TS1672."""
    check_merge_options(schema)
    return schema


def _add_columns(schema: TableSchema, action: AddColumns, columns: tuple[DataField, ...]) -> TableSchema:
    _refuse_defaults(columns)
    for field, parents in zip(columns, [one.parents for one in action.columns] or repeat(()), strict=False):
        if parents:
            schema = add_nested(schema, (*parents, field.name), field)
        else:
            schema = add_column(schema, field.name, field.type, description=field.description)
    return schema


def _refuse_defaults(columns: tuple[DataField, ...]) -> None:
    """A default is a rule for rows to come: those that are stored would show NULL, in every reader."""
    for field in columns:
        if field.default_value is not None:
            raise Unsupported(
                "TS1061",
                f"column {field.name!r} cannot be added with a default",
                why=f"rows that are stored would hold NULL, not {field.default_value}",
                fix="add the column without DEFAULT, then UPDATE the rows; or build the table again with the column",
            )


def _as_spelled(action: AlterAction, schema: TableSchema) -> AlterAction:
    """The action with column names as the table writes them: SQL's names have no case."""
    spelled = {name.lower(): name for name in schema.field_names}
    match action:
        case RenameColumn(parents=(_, *_)) | AlterColumn(parents=(_, *_)):
            return action
        case DropColumns():
            return replace(action, names=tuple(spelled.get(name.lower(), name) for name in action.names))
        case RenameColumn():
            return replace(action, old=spelled.get(action.old.lower(), action.old))
        case AlterColumn():
            return replace(action, column=spelled.get(action.column.lower(), action.column))
        case _:
            return action


def _alter_column(schema: TableSchema, action: AlterColumn, columns: tuple[DataField, ...]) -> TableSchema:
    if action.default is not None:
        return _set_default(schema, action)
    if action.parents:
        return _alter_nested(schema, action, columns)
    if action.type_text is not None:
        old = schema.field(action.column)
        return retype_column(schema, action.column, columns[0].type.with_nullable(old.type.nullable))
    if action.nullable:
        return relax_column(schema, action.column)
    if action.nullable is False:
        raise _not_null(action)
    return describe_column(schema, action.column, action.comment)


def _alter_nested(schema: TableSchema, action: AlterColumn, columns: tuple[DataField, ...]) -> TableSchema:
    path = (*action.parents, action.column)
    if action.type_text is not None:
        return retype_nested(schema, path, columns[0].type)
    if action.nullable:
        return relax_nested(schema, path)
    if action.nullable is False:
        raise _not_null(action)
    return describe_nested(schema, path, action.comment)


def _set_default(schema: TableSchema, action: AlterColumn) -> TableSchema:
    """Raises FixRequest TS1153, and TS1113 for a column that the table lacks."""
    name = ".".join((*action.parents, action.column))
    text = literal_default(action.default, name) if action.default else ""
    if not action.parents:
        schema.field(name)
    key = option_key(name)
    return take_options(set_options(schema, {key: text}), (key,))


def _not_null(action: AlterColumn) -> FixRequest:
    return FixRequest(
        "TS1020",
        f"column {'.'.join((*action.parents, action.column))} cannot become NOT NULL",
        why="stored rows may hold NULL",
        fix="build the table again with the constraint (dbt run --full-refresh)",
    )


def _set_options(schema: TableSchema, changes: dict[str, str | None]) -> TableSchema:
    wanted = {key: value for key, value in changes.items() if value is not None}
    check_options(wanted, stored=schema.options)
    changes = current_names(changes)
    for key, value in changes.items():
        known = OPTIONS.get(key)
        if known is not None and not known.mutable and stored_text(schema.options, key) != value:
            if key != "changelog-producer" or not schema.is_keyed:
                raise _fixed_option(schema, key, value)
            _check_producer(schema, value)
    changed = take_options(set_options(schema, changes), changes)
    check_rule(changed, wanted)
    check_record_rule(changed, wanted)
    _check_still_writable(schema, changed)
    check_merge_options(changed)
    check_file_indexes(changed)
    check_layout_options(changed)
    return changed


def _check_producer(schema: TableSchema, value: str | None) -> None:
    """Each snapshot is read by the producer of its own schema, so it may change; a log needs lookup, and tables whose
    readers merge are changed by the engine that writes them. Raises FixRequest TS1022.
    """
    if not TableTraits(schema).has_inbox:
        why = "this engine does not write the table, so the changelog comes from another one"
        fix = "convert the table: `tablestore convert`, or change the option in the engine that writes it"
    elif has_log(schema.options) and value != "lookup":
        why = "the table has a log, which needs the complete changelog of 'lookup'"
        fix = "build a table without a log (dbt run --full-refresh)"
    else:
        return
    raise FixRequest("TS1022", "option 'changelog-producer' cannot change", why=why, fix=fix)


def _fixed_option(schema: TableSchema, key: str, value: str | None) -> FixRequest:
    if key == "deletion-vectors.enabled" and str(value).lower() == "true" and schema.primary_keys:
        return FixRequest(
            "TS1022",
            f"option {key!r} of a table that merges on read cannot change",
            why="rows of a keyed table without deletion vectors are merged when they are read",
            fix="run `tablestore convert` for the table, which merges its rows and then sets the option",
        )
    return FixRequest(
        "TS1022",
        f"option {key!r} cannot change",
        why=f"it is {schema.options.get(key)!r}; rows already lie that way",
        fix="build a new table with the other value",
    )


def _unset_options(schema: TableSchema, keys: Sequence[str], *, if_exists: bool) -> TableSchema:
    """Without options of these keys; one that the table lacks is refused, as by Spark. Raises FixRequest TS1141, and
    Unsupported TS1573 for keys and partition columns, which are no options.
    """
    missing = [key for key in keys if key not in schema.options]
    check_options({key: "none" for key in missing if key in _LAYOUT_KEYS})
    if missing and not if_exists:
        raise FixRequest(
            "TS1141",
            f"option {missing[0]!r} cannot be unset",
            why=f"the table does not have it; its options are {', '.join(sorted(schema.options))}",
            fix="correct the key, or write UNSET TBLPROPERTIES IF EXISTS (…)",
        )
    return _set_options(schema, dict.fromkeys(keys))


def _check_still_writable(schema: TableSchema, changed: TableSchema) -> None:
    """No option may ask for a feature that keeps us from the table. Raises Unsupported TS1126, TS1127."""
    known = {capability.feature for capability, _ in list_refusals(schema, write=True)}
    if any(capability.feature not in known for capability, _ in list_refusals(changed, write=True)):
        check_writable(changed)
    known = {capability.feature for capability, _ in list_refusals(schema, write=False)}
    if any(capability.feature not in known for capability, _ in list_refusals(changed, write=False)):
        check_readable(changed)
