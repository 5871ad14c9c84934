"""INSERT, UPDATE, DELETE and MERGE as frames whose rows (with row kinds) are the change.

INVARIANT  an UPDATE or MERGE that would change a key is refused by the row (TS1518): an upsert of the new key would
           leave the old one behind.
INVARIANT  conditions are three-valued: NULL is not true, so the row stays as it is.
INVARIANT  fields of structs are matched (spark/struct_values.py) before the cast, which goes by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - pyspark's own name for it
from pyspark.sql import types as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.column_default import default_value
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema, split_names
from tablestore_engine.spark.parsed_changes import Assignment, Clause, ParsedChange
from tablestore_engine.spark.struct_values import Value, assigned
from tablestore_engine.spark.type_ddl import has_spark_type, spark_ddl

_SOURCE_MARK = "__ts_source"
_PUT, _CHANGE, _DELETE = 0, 2, 3
_KINDS = {"insert": _PUT, "update": _CHANGE, "delete": _DELETE}


def inserted_rows(
    frame: DataFrame,
    schema: TableSchema,
    *,
    given: Sequence[str],
    constants: Mapping[str, str],
    by_name: bool,
) -> DataFrame:
    """All columns of the table from a frame whose columns stand, by position, for the table's columns `given`.

    Static partition values come as `constants` (SQL text); columns not given are NULL, which the
    write makes their default.
    """
    if len(frame.columns) != len(given):
        raise FixRequest(
            "TS1519",
            "the INSERT does not match the table",
            why=f"expected {len(given)} columns ({', '.join(given)}), the query gives {len(frame.columns)}",
            fix="name the columns: INSERT INTO t (a, b) SELECT …",
        )
    names = [f"c{at}" for at in range(len(given))]
    values = {
        column: Value(F.col(name), field.dataType, frame.sparkSession)
        for column, name, field in zip(given, names, frame.schema.fields, strict=True)
    }
    values |= {column: Value(F.expr(text), st.NullType()) for column, text in constants.items()}
    return frame.toDF(*names).select(
        *(
            (assigned(values[f.name], f, by_name=by_name) if f.name in values else _null(f)).alias(f.name)
            for f in schema.fields
            if f.name in values or has_spark_type(f.type)  # a missing column is NULL
        )
    )


def _filled(new: Column, field: DataField) -> Column:
    """A value of an UPDATE without a key, where the write fills nothing: it gets rows that stay as they are, too."""
    default = default_value(field)
    if default is None:
        return new
    return F.coalesce(new, F.lit(str(default.as_py())).cast(spark_ddl(field.type)))


def _null(field: DataField) -> Column:
    return F.lit(None).cast(spark_ddl(field.type))


def updated_rows(change: ParsedChange, schema: TableSchema, *, keep_others: bool) -> DataFrame:
    """The changed rows; with `keep_others` (append-only tables) all rows, changed or not."""
    (clause,) = change.clauses
    named = {one.path[0] for one in clause.assignments}
    parts: list[Column] = []
    for field in schema.fields:
        old = change.columns[field.name]
        new = _new_value(clause, field, old, schema) if field.name in named else old
        if keep_others and field.name in named:
            new = _filled(new, field)
        if keep_others and field.name in named and clause.condition is not None:
            new = F.when(clause.condition, new).otherwise(old)
        parts.append(new.alias(field.name))
    if keep_others:
        return change.target.select(*parts)
    rows = change.target if clause.condition is None else change.target.where(clause.condition)
    return rows.select(*parts, _kind(_CHANGE))


def deleted_rows(change: ParsedChange, schema: TableSchema) -> DataFrame:
    """The rows that go, as deletes. Columns that Spark cannot read are left out, unless the write needs them."""
    needed = {*schema.primary_keys, *split_names(schema.options.get("sequence.field", ""))}
    columns = [
        change.columns[field.name].alias(field.name)
        for field in schema.fields
        if has_spark_type(field.type) or field.name in needed
    ]
    return change.target.where(_condition(change)).select(*columns, _kind(_DELETE))


def kept_rows(change: ParsedChange, schema: TableSchema) -> DataFrame:
    """The rows that stay after a DELETE (append-only tables are overwritten with them)."""
    columns = [change.columns[field.name].alias(field.name) for field in schema.fields]
    return change.target.where(~F.coalesce(_condition(change), F.lit(False))).select(*columns)


def _condition(change: ParsedChange) -> Column:
    (clause,) = change.clauses
    return F.lit(True) if clause.condition is None else clause.condition


def merged_rows(change: ParsedChange, schema: TableSchema) -> DataFrame:
    """One row for each key that the MERGE touches, with its kind."""
    assert change.source is not None
    assert change.on is not None
    whens = [_when(clause, change.columns[schema.primary_keys[0]]) for clause in change.clauses]

    def cases(values: Sequence[Column]) -> Column:
        found = F.when(whens[0], values[0])
        for when, value in zip(whens[1:], values[1:], strict=True):
            found = found.when(when, value)
        return found

    columns = [
        cases(
            [_merged_value(clause, field, change.columns[field.name], schema) for clause in change.clauses]
        ).alias(field.name)
        for field in schema.fields
    ]
    kind = cases([F.lit(_KINDS[clause.action]) for clause in change.clauses]).cast("tinyint")
    join = "full" if any(clause.match == "not_matched_by_source" for clause in change.clauses) else "left"
    source = change.source.select("*", F.lit(True).alias(_SOURCE_MARK))
    rows = source.join(change.target, change.on, join).select(*columns, kind.alias(ROW_KIND_COLUMN))
    return rows.where(F.col(ROW_KIND_COLUMN).isNotNull())


def _when(clause: Clause, key: Column) -> Column:
    """The condition of one WHEN: keys are never NULL, so a key column tells whether the target row exists."""
    mark = F.col(_SOURCE_MARK)
    found = {
        "matched": mark & key.isNotNull(),
        "not_matched": mark & key.isNull(),
        "not_matched_by_source": mark.isNull(),
    }[clause.match]
    return found if clause.condition is None else found & clause.condition


def _merged_value(clause: Clause, field: DataField, old: Column, schema: TableSchema) -> Column:
    if clause.action == "delete":
        return old
    named = {one.path[0]: one.value for one in clause.assignments}
    if clause.action == "insert":
        return assigned(named[field.name], field, by_name=True) if field.name in named else _null(field)
    return _new_value(clause, field, old, schema) if field.name in named else old


def _new_value(clause: Clause, field: DataField, old: Column, schema: TableSchema) -> Column:
    """An assignment; to a key column it must give the old value."""
    mine = [one for one in clause.assignments if one.path[0] == field.name]
    value = _with_parts(mine, 1, field, old, field.name)
    if field.name not in schema.primary_keys:
        return value
    told = F.raise_error(F.lit(f"TS1518 key column {field.name} cannot be changed by UPDATE or MERGE"))
    return F.when(value.eqNullSafe(old), old).otherwise(told)


def _with_parts(
    assignments: Sequence[Assignment], depth: int, field: DataField, old: Column, path: str
) -> Column:
    """The value of a column, or of a field inside it, of which `assignments` give all or a part. As in Spark, a struct
    that is NULL becomes one whose other fields are NULL.
    """
    if len(assignments[0].path) == depth:
        return assigned(assignments[0].value, field, by_name=True, path=path)
    parts: list[Column] = []
    for one in field.type.fields:
        mine = [given for given in assignments if given.path[depth] == one.name]
        inside = old.getField(one.name)
        made = _with_parts(mine, depth + 1, one, inside, f"{path}.{one.name}") if mine else inside
        parts += [F.lit(one.name), made]
    return F.named_struct(*parts).cast(spark_ddl(field.type))


def _kind(value: int) -> Column:
    return F.lit(value).cast("tinyint").alias(ROW_KIND_COLUMN)
