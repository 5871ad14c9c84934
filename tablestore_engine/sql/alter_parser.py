"""ALTER TABLE | VIEW and COMMENT ON."""

from __future__ import annotations

from tablestore_engine.sql.cursor import Cursor
from tablestore_engine.sql.statement import (
    AddColumns,
    Alter,
    AlterAction,
    AlterColumn,
    CommentOn,
    DropColumns,
    DropPartitions,
    RenameColumn,
    RenameTo,
    SetProperties,
    TableName,
    UnsetProperties,
)

_COMPARISONS = ("<=", ">=", "<>", "!=", "==", "=", "<", ">")
_FILTERS = {"==": "=", "<>": "!="}


def parse_alter(cursor: Cursor) -> Alter:
    """ALTER TABLE | VIEW name with exactly one action."""
    cursor.expect("ALTER")
    kind = cursor.accept_any("TABLE", "VIEW")
    if kind is None:
        cursor.fail("TABLE or VIEW")
    name = cursor.table_name()
    return Alter(kind.lower(), name, _action(cursor))


def _action(cursor: Cursor) -> AlterAction:
    if cursor.accept("RENAME", "TO"):
        return RenameTo(cursor.table_name())
    if cursor.accept("RENAME", "COLUMN"):
        *parents, old = cursor.parts()
        cursor.expect("TO")
        return RenameColumn(old, cursor.name(), tuple(parents))
    if cursor.accept("ADD"):
        return _add_columns(cursor)
    if cursor.accept("DROP"):
        if cursor.sees("PARTITION") or cursor.sees("PARTITION", ahead=2):
            return _drop_partitions(cursor)
        return _drop_columns(cursor)
    if cursor.accept_any("ALTER", "CHANGE"):
        cursor.accept("COLUMN")
        return _alter_column(cursor)
    if cursor.accept("SET", "TBLPROPERTIES"):
        return SetProperties(cursor.properties())
    if not cursor.accept("UNSET", "TBLPROPERTIES"):
        cursor.fail("RENAME TO, RENAME COLUMN, ADD, DROP, ALTER COLUMN, SET or UNSET TBLPROPERTIES")
    return _unset(cursor)


def _add_columns(cursor: Cursor) -> AddColumns:
    if not cursor.accept_any("COLUMN", "COLUMNS"):
        cursor.fail("COLUMN or COLUMNS")
    wrapped = cursor.accept("(")
    columns = [cursor.column(is_nested=True)]
    while cursor.accept(","):
        columns.append(cursor.column(is_nested=True))
    if wrapped:
        cursor.expect(")")
    if cursor.sees("FIRST", "AFTER"):
        cursor.fail("no position (new columns come last)")
    return AddColumns(tuple(columns))


def _drop_partitions(cursor: Cursor) -> DropPartitions:
    """[IF EXISTS] PARTITION (column op value, …) [, PARTITION …] [PURGE]."""
    if_exists = cursor.accept("IF", "EXISTS")
    found = [_partition_filter(cursor)]
    while cursor.accept(","):
        found.append(_partition_filter(cursor))
    cursor.accept("PURGE")
    return DropPartitions(tuple(found), if_exists)


def _partition_filter(cursor: Cursor) -> str:
    cursor.expect("PARTITION")
    cursor.expect("(")
    parts = [_comparison(cursor)]
    while cursor.accept(","):
        parts.append(_comparison(cursor))
    cursor.expect(")")
    return " and ".join(parts)


def _comparison(cursor: Cursor) -> str:
    """`column op value` as a filter says it: `= NULL` names the partition of NULL, as in Spark."""
    name = "`" + cursor.name().replace("`", "``") + "`"
    operator = next((one for one in _COMPARISONS if cursor.accept(one)), None)
    if operator is None:
        cursor.fail(f"one of {' '.join(_COMPARISONS)}")
    first = cursor.peek()
    if cursor.accept("NULL"):
        if operator not in ("=", "=="):
            cursor.fail("= NULL", first)
        return f"{name} is null"
    while not cursor.done and not cursor.sees_operator(",", ")"):
        cursor.at += 1
    value = cursor.slice(first, cursor.peek())
    if not value:
        cursor.fail("a value")
    return f"{name} {_FILTERS.get(operator, operator)} {value}"


def _drop_columns(cursor: Cursor) -> DropColumns:
    if not cursor.accept_any("COLUMN", "COLUMNS"):
        cursor.fail("COLUMN or COLUMNS")
    if_exists = cursor.accept("IF", "EXISTS")
    wrapped = cursor.accept("(")
    paths = [cursor.parts()]
    while cursor.accept(","):
        paths.append(cursor.parts())
    if wrapped:
        cursor.expect(")")
    names = tuple(path[0] for path in paths if len(path) == 1)
    return DropColumns(names, if_exists, tuple(path for path in paths if len(path) > 1))


def _alter_column(cursor: Cursor) -> AlterColumn:
    *before, column = cursor.parts()
    parents = tuple(before)
    if cursor.accept("TYPE"):
        return AlterColumn(column, type_text=cursor.text_until("COMMENT", types=True), parents=parents)
    if cursor.accept("COMMENT"):
        return AlterColumn(column, comment=cursor.string(), parents=parents)
    if cursor.accept("SET", "DEFAULT"):
        text = cursor.text_until().strip()
        return AlterColumn(column, default="" if text.upper() == "NULL" else text, parents=parents)
    if cursor.accept("DROP", "DEFAULT"):
        return AlterColumn(column, default="", parents=parents)
    if cursor.accept("SET", "NOT", "NULL"):
        return AlterColumn(column, nullable=False, parents=parents)
    if not cursor.accept("DROP", "NOT", "NULL"):
        cursor.fail("TYPE, COMMENT, SET or DROP NOT NULL, SET or DROP DEFAULT")
    return AlterColumn(column, nullable=True, parents=parents)


def _unset(cursor: Cursor) -> UnsetProperties:
    if_exists = cursor.accept("IF", "EXISTS")
    cursor.expect("(")
    keys = [cursor.property_key()]
    while cursor.accept(","):
        keys.append(cursor.property_key())
    cursor.expect(")")
    return UnsetProperties(tuple(keys), if_exists)


def parse_comment_on(cursor: Cursor) -> CommentOn:
    """COMMENT ON TABLE | SCHEMA name IS text | NULL."""
    cursor.expect("COMMENT", "ON")
    kind = cursor.accept_any("TABLE", "SCHEMA", "DATABASE", "NAMESPACE")
    if kind is None:
        cursor.fail("TABLE or SCHEMA")
    name = cursor.table_name() if kind == "TABLE" else TableName(None, cursor.name())
    cursor.expect("IS")
    comment = None if cursor.accept("NULL") else cursor.string()
    return CommentOn("table" if kind == "TABLE" else "schema", name, comment)
