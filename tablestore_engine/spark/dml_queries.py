"""INSERT, UPDATE, DELETE and MERGE as queries whose rows (with row kinds) are the change.

INVARIANT  an UPDATE or MERGE that would change a key is refused by the row (TS1518): an upsert of the new key would
           leave the old one behind.
INVARIANT  conditions are three-valued: NULL is not true, so the row stays as it is.
INVARIANT  fields of structs are matched (spark/struct_values.py) before the cast, which goes by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema, split_names
from tablestore_engine.spark.spark_types import has_spark_type, spark_ddl
from tablestore_engine.spark.struct_values import ValueTypes, checked_cast
from tablestore_engine.sql.scanner import quote_name, quote_string
from tablestore_engine.sql.statement import Delete, Merge, MergeClause, Update

_SOURCE_MARK = "__ts_source"
_PUT, _CHANGE, _DELETE = 0, 2, 3


def assigned(expression: str, field: DataField, given: ValueTypes) -> str:
    """The expression cast to the column; what cannot be cast raises instead of becoming NULL."""
    if not field.type.is_atomic:
        return f"cast({given.matched(expression, field)} as {spark_ddl(field.type)})"
    return checked_cast(expression, spark_ddl(field.type), field.name)


def insert_query(
    query: str,
    columns: Sequence[str],
    schema: TableSchema,
    *,
    given: Sequence[str],
    constants: Mapping[str, str],
    types: ValueTypes,
) -> str:
    """All columns of the table from a query with `columns`, which stand for the table's columns `given`.

    Static partition values come as `constants` (SQL text); columns not given are NULL or their default. `types`: of the
    query's columns, called as insert_names says.
    """
    if len(columns) != len(given):
        raise FixRequest(
            "TS1519",
            "the INSERT does not match the table",
            why=f"expected {len(given)} columns ({', '.join(given)}), the query gives {len(columns)}",
            fix="name the columns: INSERT INTO t (a, b) SELECT …",
        )
    names = insert_names(columns)
    values = dict(zip((name.lower() for name in given), names, strict=True))
    values.update({name.lower(): text for name, text in constants.items()})
    parts = [
        f"{assigned(values[f.name.lower()], f, types) if f.name.lower() in values else _default(f)}"
        f" as {quote_name(f.name)}"
        for f in schema.fields
        if f.name.lower() in values or f.default_value or has_spark_type(f.type)  # a missing column is NULL
    ]
    return f"select {', '.join(parts)} from ({query}) as q({', '.join(names)})"


def insert_names(columns: Sequence[str]) -> list[str]:
    """What `columns` of an INSERT are called in its query: names may be there twice."""
    return [f"c{i}" for i in range(len(columns))]


def _default(field: DataField) -> str:
    return (
        assigned(field.default_value, field, ValueTypes(by_name=False))
        if field.default_value
        else f"cast(null as {spark_ddl(field.type)})"
    )


def update_values(statement: Update, schema: TableSchema) -> tuple[list[str], str]:
    """The expressions for nested columns, and the relation that they are over."""
    return _nested_texts(statement.assignments, schema), _relation(statement)


def merge_values(statement: Merge, schema: TableSchema) -> tuple[list[str], str]:
    """The expressions for nested columns, and the relation that they are over."""
    alias = quote_name(_source_alias(statement))
    texts: list[str] = []
    for clause in statement.clauses:
        star = [(name, f"{alias}.{quote_name(name)}") for name in schema.field_names] if clause.star else []
        texts += _nested_texts(star or clause.assignments, schema)
    source = f"(select * from {statement.source}) as {alias}"
    return list(dict.fromkeys(texts)), f"{source} left join {_relation(statement)} on {statement.condition}"


def _nested_texts(assignments: Iterable[tuple[str, str]], schema: TableSchema) -> list[str]:
    nested = {field.name.lower() for field in schema.fields if not field.type.is_atomic}
    return [text for name, text in assignments if name.lower() in nested]


def update_query(statement: Update, schema: TableSchema, types: ValueTypes, *, keep_others: bool) -> str:
    """The changed rows; with `keep_others` (append-only tables) all rows, changed or not."""
    check_columns([name for name, _ in statement.assignments], schema)
    alias = statement.alias or statement.name.table
    values = {name.lower(): text for name, text in statement.assignments}
    condition = statement.condition or "true"
    parts: list[str] = []
    for field in schema.fields:
        old = f"{quote_name(alias)}.{quote_name(field.name)}"
        text = values.get(field.name.lower())
        new = old if text is None else _new_value(text, field, old, schema, types)
        parts.append(
            f"{f'if({condition}, {new}, {old})' if keep_others and text else new} as {quote_name(field.name)}"
        )
    head = f"select {', '.join(parts)}"
    tail = f"from {_relation(statement)}"
    if keep_others:
        return f"{head} {tail}"
    return f"{head}, {_kind(_CHANGE)} as {ROW_KIND_COLUMN} {tail} where {condition}"


def delete_query(statement: Delete, schema: TableSchema) -> str:
    """The rows that go, as deletes. Columns that Spark cannot read are left out, unless the write needs them."""
    needed = {*schema.primary_keys, *split_names(schema.options.get("sequence.field", ""))}
    columns = ", ".join(
        quote_name(field.name)
        for field in schema.fields
        if has_spark_type(field.type) or field.name in needed
    )
    where = f" where {statement.condition}" if statement.condition else ""
    return f"select {columns}, {_kind(_DELETE)} as {ROW_KIND_COLUMN} from {_relation(statement)}{where}"


def keep_query(statement: Delete, schema: TableSchema) -> str:
    """The rows that stay (append-only tables are overwritten with them)."""
    columns = ", ".join(quote_name(field.name) for field in schema.fields)
    return f"select {columns} from {_relation(statement)} where not coalesce(({statement.condition or 'true'}), false)"


def merge_query(
    statement: Merge, schema: TableSchema, source_columns: Sequence[str], types: ValueTypes
) -> str:
    """One row for each key that the MERGE touches, with its kind."""
    target = quote_name(statement.alias or statement.name.table)
    alias = _source_alias(statement)
    whens = [_when(clause, target, schema) for clause in statement.clauses]
    kinds = {"insert": _PUT, "update": _CHANGE, "delete": _DELETE}
    kind = " ".join(
        f"when {when} then {kinds[c.action]}" for when, c in zip(whens, statement.clauses, strict=True)
    )
    columns: list[str] = []
    for field in schema.fields:
        cases = " ".join(
            f"when {when} then {_merged_value(clause, field, (target, alias), schema, source_columns, types)}"
            for when, clause in zip(whens, statement.clauses, strict=True)
        )
        columns.append(f"case {cases} end as {quote_name(field.name)}")
    join = "full" if any(c.match == "not_matched_by_source" for c in statement.clauses) else "left"
    source = f"(select *, true as {_SOURCE_MARK} from {statement.source}) as {quote_name(alias)}"
    return (
        f"select * from (select {', '.join(columns)}, cast(case {kind} end as tinyint) as {ROW_KIND_COLUMN}"
        f" from {source} {join} join {_relation(statement)} on {statement.condition})"
        f" where {ROW_KIND_COLUMN} is not null"
    )


def _when(clause: MergeClause, target: str, schema: TableSchema) -> str:
    """The condition of one WHEN: keys are never NULL, so a key column tells whether the target row exists."""
    key = f"{target}.{quote_name(schema.primary_keys[0])}"
    parts = {
        "matched": f"{_SOURCE_MARK} and {key} is not null",
        "not_matched": f"{_SOURCE_MARK} and {key} is null",
        "not_matched_by_source": f"{_SOURCE_MARK} is null",
    }
    return parts[clause.match] + (f" and ({clause.condition})" if clause.condition else "")


def _merged_value(
    clause: MergeClause,
    field: DataField,
    aliases: tuple[str, str],
    schema: TableSchema,
    source: Sequence[str],
    types: ValueTypes,
) -> str:
    target, alias = aliases
    old = f"{target}.{quote_name(field.name)}"
    if clause.action == "delete":
        return old
    if clause.star:
        if field.name.lower() not in {name.lower() for name in source}:
            raise _unknown_column(field.name, source)
        text: str | None = f"{quote_name(alias)}.{quote_name(field.name)}"
    else:
        check_columns([name for name, _ in clause.assignments], schema)
        text = {name.lower(): text for name, text in clause.assignments}.get(field.name.lower())
    if clause.action == "insert":
        return _default(field) if text is None else assigned(text, field, types)
    return old if text is None else _new_value(text, field, old, schema, types)


def _new_value(text: str, field: DataField, old: str, schema: TableSchema, types: ValueTypes) -> str:
    """An assignment; to a key column it must give the old value."""
    value = assigned(text, field, types)
    if field.name not in schema.primary_keys:
        return value
    told = quote_string(f"TS1518 key column {field.name} cannot be changed by UPDATE or MERGE")
    return f"if(({value}) <=> {old}, {old}, raise_error({told}))"


def check_columns(names: Sequence[str], schema: TableSchema) -> None:
    """Every assigned column exists."""
    known = {name.lower() for name in schema.field_names}
    for name in names:
        if name.lower() not in known:
            raise _unknown_column(name, schema.field_names)


def _unknown_column(name: str, columns: Sequence[str]) -> FixRequest:
    return FixRequest(
        "TS1521",
        f"column {name!r} is not there",
        why=f"the columns are {', '.join(columns)}",
        fix="correct the name of the column",
    )


def _kind(value: int) -> str:
    return f"cast({value} as tinyint)"


def _relation(statement: Update | Delete | Merge) -> str:
    name = statement.name
    full = (
        f"{quote_name(name.database)}.{quote_name(name.table)}" if name.database else quote_name(name.table)
    )
    return f"{full} as {quote_name(statement.alias)}" if statement.alias else full


def _source_alias(statement: Merge) -> str:
    return statement.source_alias or statement.source.rpartition(".")[2].strip("`() ") or "source"
