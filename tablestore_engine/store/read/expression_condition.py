"""A filter that is a pyarrow expression, with pyarrow's meaning; files are pruned by what it proves.

CHANGE     a filter that is a pyarrow expression
Steps      check: a BOOLEAN over columns that exist → the columns that it needs → truth of rows: pyarrow evaluates it →
           files: what their metadata says becomes an expression, and pyarrow decides whether both can be true
INVARIANT  only bounds that hold for every value are passed on. Those of FLOAT and DOUBLE say nothing of a NaN, for
           which pyarrow's comparisons are FALSE, so that NOT makes them TRUE: they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import acero, fs

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.store.files.column_facts import FindFacts
from tablestore_engine.store.files.comparable_values import Comparable, is_comparable, stored_form
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import fact_finder

Expression = Any  # pyarrow has no types
_UNORDERED = ("BOOLEAN", "FLOAT", "DOUBLE")
_BY_POSITION = "FieldPath("  # how pyarrow prints pc.field(0)


@dataclass(frozen=True, eq=False)  # == of expressions is one more expression
class ExpressionCondition:
    """A filter as a pyarrow expression. Implements RowCondition."""

    expression: Expression

    def bind(self, schema: TableSchema) -> BoundExpression:
        """Raises FixRequest TS1566 for an expression that pyarrow cannot evaluate over these columns."""
        empty = schema.arrow_schema().empty_table()
        if _BY_POSITION in str(self.expression):
            raise _refused(
                self.expression, "it names a column by its position", "name columns: pc.field('id')"
            )
        found = _evaluate(self.expression, empty)
        if not pa.types.is_boolean(found.type):
            raise _refused(
                self.expression,
                f"its values are {found.type}, not boolean",
                "compare the value with another one",
            )
        _possible(self.expression, [_some_moment(empty.schema)], empty.schema)  # evaluation mixes zones
        names = tuple(_needed(self.expression, empty, empty.column_names)) or tuple(empty.column_names[:1])
        return BoundExpression(self.expression, schema, names)


@dataclass(frozen=True, eq=False)
class BoundExpression:
    """Implements BoundCondition; `columns`: those that the expression names."""

    expression: Expression
    schema: TableSchema
    columns: tuple[str, ...]

    def mask(self, rows: pa.Table) -> Mask:
        """TRUE of these rows. Raises FixRequest TS1566 for a value that a function of the expression refuses."""
        found = _evaluate(self.expression, rows.select(list(self.columns)))
        return np.asarray(pc.fill_null(found, False))

    def prune(self, files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
        """By partition values and statistics."""
        listed = tuple(file for file in files if file.visible_rows)
        find = fact_finder(self.schema)
        kept = self.possible([find(file) for file in listed])
        return tuple(file for file, may in zip(listed, kept, strict=True) if may)

    def possible(self, sets: Sequence[FindFacts]) -> Sequence[bool]:
        """By bounds and null counts."""
        fields = self.schema.fields_of(self.columns)
        known = [_known(find, fields) for find in sets]
        numbers = set(_possible(self.expression, known, self.schema.arrow_schema()))
        return [at in numbers for at in range(len(sets))]

    def key_values(self, _: Sequence[str]) -> Sequence[frozenset[Comparable]] | None:
        """None: pyarrow does not say which values an expression names."""
        return None


def _evaluate(expression: Expression, rows: pa.Table) -> pa.ChunkedArray:
    """Its values, row by row: one thread keeps their order."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    values = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]), [source])
    try:
        return values.to_table(use_threads=False).column(0)
    except (pa.ArrowException, ValueError, TypeError) as wrong:
        raise _refused(
            expression, str(wrong), "name columns of the table, and compare values of one type"
        ) from wrong


def _refused(expression: Expression, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1566", f"filter {expression!s:.200} cannot be evaluated", why=why, fix=fix)


def _needed(expression: Expression, empty: pa.Table, names: Sequence[str]) -> Iterator[str]:
    """Those of `names` without which the expression cannot be evaluated; pyarrow does not list them."""
    rest = empty.drop_columns(list(names))
    if _works(expression, rest):
        return
    if len(names) == 1:
        yield names[0]
        return
    middle = len(names) // 2
    yield from _needed(expression, empty, names[:middle])
    yield from _needed(expression, empty, names[middle:])


def _works(expression: Expression, rows: pa.Table) -> bool:
    try:
        _evaluate(expression, rows)
    except FixRequest:
        return False
    return True


# ---- files -------------------------------------------------------------------------------------------------


@cache
def _format() -> tuple[ds.ParquetFileFormat, fs.FileSystem]:
    """For fragments that are never opened: pyarrow compares their guarantees with a filter."""
    return ds.ParquetFileFormat(), fs.LocalFileSystem()


def _possible(expression: Expression, known: Sequence[Expression], schema: pa.Schema) -> list[int]:
    """The numbers of the guarantees with which the expression can be TRUE. Raises FixRequest TS1566."""
    parquet, local = _format()
    fragments = [
        parquet.make_fragment(str(number), filesystem=local, partition_expression=guarantee)
        for number, guarantee in enumerate(known)
    ]
    files = ds.FileSystemDataset(fragments, schema, parquet, local)
    try:
        return sorted(int(fragment.path) for fragment in files.get_fragments(filter=expression))
    except (pa.ArrowException, ValueError, TypeError) as wrong:
        fix = "compare values of one type; give a datetime a time zone exactly if its column has one"
        raise _refused(expression, str(wrong), fix) from wrong


def _some_moment(schema: pa.Schema) -> Expression:
    """A guarantee over all times, against which pyarrow checks their zones."""
    times = [one for one in schema if pa.types.is_timestamp(one.type)]
    parts = [pc.field(one.name) == pa.scalar(0, one.type) for one in times]
    return reduce(lambda one, other: one & other, parts, pc.scalar(True))


def _known(find: FindFacts, fields: Sequence[DataField]) -> Expression:
    """What holds for every row of a file."""
    parts = [part for field in fields for part in _known_of_column(find, field)]
    return reduce(lambda one, other: one & other, parts, pc.scalar(True))


def _known_of_column(find: FindFacts, column: DataField) -> Iterator[Expression]:
    facts, field = find(column.name), pc.field(column.name)
    if facts is None:
        return
    if facts.is_all_null:
        yield field.is_null()
        return
    if (
        facts.low is None
        or facts.high is None
        or not is_comparable(column.type)
        or column.type.root in _UNORDERED
    ):
        return
    low, high = stored_form([facts.low, facts.high], column.type)
    inside = (field >= low) & (field <= high)
    yield inside if facts.nulls == 0 else inside | field.is_null()
