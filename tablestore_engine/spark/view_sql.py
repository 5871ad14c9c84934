"""The SQL of a table's view over hidden Parquet tables: casts and renames by field id, deleted rows filtered.

CHANGE     the SQL by which Spark reads a table
INVARIANT  a column that did not change is passed as it is, so that filters and pruning reach Parquet.
INVARIANT  a column without a Spark type (TIME), or of the name that Spark's Parquet reader takes for row numbers, is in
           the view, and asking for its values is an error (TS1575): rows never come without it.
INVARIANT  values do not depend on ANSI mode, and are those of format.evolution_cast.
INVARIANT  positions are the file's row numbers; there is a bit for each row of each file of the group, since a missing
           word would make the filter NULL and hide live rows.
WHY        Spark evaluates the words once, as a scalar subquery over a one-row table; files without deletions are
           scanned without the filter (measured: 1.5 times a plain scan at worst, others 2 to 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.evolution import plan_columns
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.spark.type_ddl import columns_ddl, has_spark_type, spark_ddl
from tablestore_engine.sql.scanner import quote_name, quote_string
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan

WORD_BITS = 64
_WORD_COLUMN = "__tablestore_word"
_ROW_COLUMN = "_tmp_metadata_row_index"  # Spark's Parquet reader puts a row's number in its file there
_NOT_NUMBERED = "TS1589 rows of a data file have no numbers"
_NO_COLUMN = "__tablestore_none"
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_JOINING_SHARE = 0.25  # clean rows that pass the filter for nothing: cheaper than one more scan


@dataclass(frozen=True)
class FileGroup:
    """Files that are read by one hidden table."""

    schema: TableSchema
    has_deletions: bool
    files: tuple[StoredFile, ...]

    @property
    def key(self) -> str:
        """Distinguishes the groups of one plan."""
        return f"{self.schema.id}{'d' if self.has_deletions else ''}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """Columns of the hidden table, in order."""
        return tuple(field.name for field in readable_fields(self.schema))

    @property
    def word_column(self) -> str:
        """The column of a file's first word, a name that the files have not."""
        name = _WORD_COLUMN
        while any(field.name.lower() == name for field in self.schema.fields):
            name += "_"
        return name

    @property
    def columns_ddl(self) -> str:
        """What CREATE TABLE declares for the hidden table."""
        columns = columns_ddl(readable_fields(self.schema))
        # `_metadata.row_index` has the same number, in a struct that is made for each row
        return f"{columns}, {_ROW_COLUMN} bigint, {self.word_column} int" if self.has_deletions else columns


# alias of a hidden table: with a column of this name, `ROWS.a` would be a field of that column
ROWS = "tablestore_rows"


def readable_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """What a hidden table declares: the columns that Spark can read; a column that no file has where there is none,
    since a table needs a column.
    """
    fields = tuple(field for field in schema.fields if _is_readable(field.name, field.type))
    return fields or (DataField(0, _NO_COLUMN, DataType("INT")),)


def _is_readable(name: str, type_: DataType) -> bool:
    return has_spark_type(type_) and name.lower() != _ROW_COLUMN


def group_files(plan: ScanPlan) -> tuple[FileGroup, ...]:
    """The files by (schema id, deletions); a few rows without deletions join the scan of those with deletions."""
    by_schema: dict[int, tuple[list[StoredFile], list[StoredFile]]] = {}
    for file in plan.files:
        by_schema.setdefault(file.schema.id, ([], []))[bool(file.deleted)].append(file)
    groups: list[FileGroup] = []
    for _, (clean, filtered) in sorted(by_schema.items()):
        if _rows(clean) <= _JOINING_SHARE * _rows(filtered):
            clean, filtered = [], [*clean, *filtered]
        schema = (clean or filtered)[0].schema
        groups += [
            FileGroup(schema, flag, tuple(files))
            for flag, files in ((False, clean), (True, filtered))
            if files
        ]
    return tuple(groups)


def _rows(files: Sequence[StoredFile]) -> int:
    return sum(file.meta.row_count for file in files)


def select_group(group: FileGroup, table_schema: TableSchema, hidden: str, words_table: str | None) -> str:
    """Rows of one hidden table as the table has them now."""
    where = f" where {_alive(words_table, group)}" if words_table else ""
    return f"select {select_columns(group.schema, table_schema)} from {hidden} as {ROWS}{where}"


def select_columns(schema: TableSchema, table_schema: TableSchema) -> str:
    """Columns of files of one schema, from ROWS, as those of another."""
    return ", ".join(
        f"{_column(plan.source, plan.source_type, plan.field)} as {quote_name(plan.field.name)}"
        for plan in plan_columns(schema, table_schema)
    )


def _alive(words_table: str, group: FileGroup) -> str:
    # a reader of a plug-in may give no number: NULL would hide the row, by `isnotnull` where Spark may infer that
    told = f"cast(raise_error({quote_string(_NOT_NUMBERED)}) as bigint)"
    row = f"coalesce({ROWS}.{_ROW_COLUMN}, {told})"
    at = f"cast({ROWS}.{group.word_column} + shiftright({row}, 6) as int)"
    return f"getbit(get((select m from {words_table}), {at}), cast({row} & {WORD_BITS - 1} as int)) = 0"


def view_query(selects: Sequence[str], schema: TableSchema) -> str:
    """UNION ALL of the groups."""
    if selects:
        return " union all ".join(selects)
    nulls = ", ".join(f"{_column(None, None, f)} as {quote_name(f.name)}" for f in schema.fields)
    return f"select {nulls} where false"


def column_list(schema: TableSchema) -> str:
    """`(a comment '…', b)` for CREATE VIEW."""
    parts = (
        quote_name(f.name) + (f" comment {quote_string(f.description)}" if f.description else "")
        for f in schema.fields
    )
    return f"({', '.join(parts)})"


def words_table(group: FileGroup) -> pa.Table:
    """One row, one column `m`: all words of all its files, one file behind the other."""
    words = np.concatenate([words_of(file) for file in group.files])
    return pa.table({"m": pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), pa.array(words))})


def first_words(files: Sequence[StoredFile]) -> dict[str, int]:
    """File name → where its words begin when all of them stand one behind the other."""
    starts = np.cumsum([0, *(word_count(file) for file in files)])
    return {file.meta.file_name: int(start) for file, start in zip(files, starts, strict=False)}


def word_count(file: StoredFile) -> int:
    """How many words have a bit for each of its rows."""
    return -(-file.meta.row_count // WORD_BITS)


def words_of(file: StoredFile) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Bit i of word w: whether row 64·w + i is dead."""
    bits = np.zeros(word_count(file) * WORD_BITS, np.uint8)
    if file.deleted:
        bits[np.asarray(file.deleted.to_array(), np.int64)] = 1
    return np.packbits(bits, bitorder="little").view("<i8")


# --- values of old schemas ---


def _column(source: str | None, source_type: DataType | None, field: DataField) -> str:
    if not has_spark_type(field.type):
        return _refusal(field)
    if source is None or source_type is None:
        return f"cast(null as {spark_ddl(field.type)})"
    if not _is_readable(source, source_type):
        return _refusal(field)
    return _value(f"{ROWS}.{quote_name(source)}", source_type, field.type)


def _refusal(field: DataField) -> str:
    """A column that fails when its values are asked for; Spark leaves it out of a plan that does not need it."""
    told = f"TS1575 column {field.name} of type {type_to_text(field.type)} cannot be read in Spark"
    return f"cast(raise_error({quote_string(told)}) as string)"


def _value(expression: str, old: DataType, new: DataType) -> str:
    """`expression` of type `old` as `new`; nested fields are matched by id."""
    if _same(old, new):
        return expression
    if old.root == new.root == "ROW":
        return f"if({expression} is null, null, {_struct(expression, old, new)})"
    if old.element is not None and new.element is not None and new.root == "ARRAY":
        return f"transform({expression}, e -> {_value('e', old.element, new.element)})"
    if old.key is not None and new.key is not None and old.value is not None and new.value is not None:
        keys = f"transform(map_keys({expression}), k -> {_value('k', old.key, new.key)})"
        values = f"transform(map_values({expression}), v -> {_value('v', old.value, new.value)})"
        return f"if({expression} is null, null, map_from_arrays({keys}, {values}))"
    return _atomic(expression, old, new)


def _atomic(expression: str, old: DataType, new: DataType) -> str:
    """The cast of format.evolution_cast, which Spark's own is not in both of its modes."""
    bits = _BITS.get(new.root, 0)
    if bits < _BITS.get(old.root, 0):  # wraps around; ANSI mode would raise
        spare = _BITS["BIGINT"] - bits
        expression = f"shiftright(shiftleft(cast({expression} as bigint), {spare}), {spare})"
    if old.root == "DECIMAL" and new.root == "VARCHAR":  # 1E-7 without ANSI mode
        expression = f"replace(format_number({expression}, {old.scale or 0}), ',', '')"
    return f"cast({expression} as {spark_ddl(new)})"


def _struct(expression: str, old: DataType, new: DataType) -> str:
    by_id = {field.id: field for field in old.fields}
    parts: list[str] = []
    for field in new.fields:
        source = by_id.get(field.id)
        if source is None:
            value = f"cast(null as {spark_ddl(field.type)})"
        else:
            value = _value(f"{expression}.{quote_name(source.name)}", source.type, field.type)
        parts.append(f"{quote_string(field.name)}, {value}")
    return f"named_struct({', '.join(parts)})"


def _same(old: DataType, new: DataType) -> bool:
    """Whether Spark reads both as one type with the same names inside, and the same fields by id."""
    if spark_ddl(old) != spark_ddl(new):
        return False
    olds, news = [f.id for t in old.walk() for f in t.fields], [f.id for t in new.walk() for f in t.fields]
    return olds == news
