"""Laws of leaving files out: never one with a row that a condition is true of, whatever is known of the file."""

from __future__ import annotations

import itertools
import math
import random
import re
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.format.binary_row import encode_row
from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.data_file import EMPTY_STATS, DataFileMeta
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.store.files.comparable_values import Comparable, comparable, is_comparable
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import prune
from tablestore_engine.store.read.predicate import (
    ANYTHING,
    NOTHING,
    And,
    Compare,
    Like,
    Missing,
    OneOf,
    Operator,
    Or,
    Predicate,
    Prefix,
    matching,
    negate,
)
from tests.doses import examples
from tests.laws.strategies_format import atomic_types, known_values_of, values_of
from tests.unit.format.file_statistics import collect_stats
from tests.unit.format.stats_samples import mode

OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
Rows = list[tuple[object, ...]]
Case = tuple[TableSchema, Rows, Predicate]


def _with_nan(type_: DataType) -> st.SearchStrategy[object]:
    values = values_of(type_)
    return values | st.just(math.nan) if type_.root in ("FLOAT", "DOUBLE") else values


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    """A table of some columns, its rows in one file, and a condition whose values are often theirs."""
    types = draw(st.lists(atomic_types(max_precision=9), min_size=1, max_size=3))
    fields = tuple(DataField(i, f"c{i}", type_) for i, type_ in enumerate(types))
    partitioned = draw(st.booleans())
    bucket_key = draw(st.sampled_from([None, *(field.name for field in fields[partitioned:])]))
    options = {"bucket": "7", "bucket-key": bucket_key} if bucket_key else {}
    schema = TableSchema(0, fields, len(types), ("c0",) if partitioned else (), options=options)
    rows = draw(st.lists(st.tuples(*(_with_nan(t) for t in types)), min_size=1, max_size=6))
    if partitioned:
        rows = [(rows[0][0], *row[1:]) for row in rows]
    return schema, rows, draw(_conditions(schema, rows))


def _conditions(schema: TableSchema, rows: Rows) -> st.SearchStrategy[Predicate]:
    leaves: list[st.SearchStrategy[Predicate]] = [st.sampled_from([ANYTHING, NOTHING])]
    for at, field in enumerate(schema.fields):
        leaves.append(st.builds(Missing, st.just(field.name), st.booleans()))
        if not is_comparable(field.type):
            continue
        known = [value for row in rows if (value := row[at]) is not None]
        given_values = values_of(field.type) | st.sampled_from(known) if known else values_of(field.type)
        values = given_values.map(partial(_form, field.type)).filter(lambda value: value is not None)
        leaves.append(st.builds(Compare, st.just(field.name), st.sampled_from(OPERATORS), values))
        leaves.append(st.builds(OneOf, st.just(field.name), st.frozensets(values, max_size=3)))
        if field.type.root == "VARCHAR":
            texts = values.map(lambda text: str(text)[:2])
            leaves.append(st.builds(Prefix, st.just(field.name), texts))
            patterns = texts.map(lambda text: f"{text}%") | st.sampled_from(["%", "_%", "%a"]) | texts
            plain = patterns.filter(lambda text: "\\" not in text)
            leaves.append(st.builds(Like, st.just(field.name), plain, st.booleans()))
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts))),
            st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts))),
            inner.map(negate),
        ),
        max_leaves=5,
    )


def _form(type_: DataType, value: object) -> Comparable | None:
    return None if value is None else comparable(value, type_)


def _truth(wanted: Predicate, row: dict[str, object], types: dict[str, DataType]) -> bool:
    """The definition, value by value."""
    match wanted:
        case And(parts):
            return all(_truth(part, row, types) for part in parts)
        case Or(parts):
            return any(_truth(part, row, types) for part in parts)
        case Missing(column, negated):
            return (row[column] is None) != negated
        case Compare(column, operator, value):
            return row[column] is not None and _compares(row[column], operator, value, types[column])
        case OneOf(column, values):
            return row[column] is not None and any(
                _compares(row[column], "=", value, types[column]) for value in values
            )
        case Prefix(column, text):
            return row[column] is not None and str(row[column]).startswith(text)
        case Like(column, pattern, negated):
            wild = "".join({"%": ".*", "_": "."}.get(one, re.escape(one)) for one in pattern)
            found = re.fullmatch(wild, str(row[column]), re.DOTALL) is not None
            return row[column] is not None and found != negated
        case _:
            return wanted is ANYTHING or wanted == ANYTHING


def _compares(stored: object, operator: str, value: object, type_: DataType) -> bool:
    if isinstance(stored, float) and math.isnan(stored):
        return operator in (">", ">=", "!=")
    mine = comparable(stored, type_)
    return {
        "=": mine == value, "!=": mine != value, "<": mine < value, "<=": mine <= value,  # type: ignore[operator]
        ">": mine > value, ">=": mine >= value,  # type: ignore[operator]
    }[operator]  # fmt: skip


def _table(schema: TableSchema, rows: Rows) -> pa.Table:
    arrays = [
        pa.array([row[i] for row in rows], type_to_arrow(field.type)) for i, field in enumerate(schema.fields)
    ]
    return pa.table(arrays, names=list(schema.field_names))


def _file(schema: TableSchema, table: pa.Table, partition: tuple[object, ...], *, text: str) -> StoredFile:
    types = [field.type for field in schema.fields]
    stats = EMPTY_STATS if text == "nothing" else collect_stats(table, types, mode(text))
    bucket = 0
    if schema.bucket_keys:
        field = schema.fields_of(schema.bucket_keys)[0]
        bucket = int(assign_buckets([table.column(field.name)], [field.type], 7)[0])
    meta = DataFileMeta(
        "f.parquet", 1, table.num_rows, b"", b"", EMPTY_STATS, stats, 0, 0, schema.id, 1, None
    )
    partition_types = [field.type for field in schema.fields_of(schema.partition_keys)]
    return StoredFile(
        partition, encode_row(partition, partition_types), "", bucket, 7, meta, "f.parquet", schema
    )


def _files(schema: TableSchema, rows: Rows, text: str) -> list[tuple[StoredFile, Rows]]:
    """The rows in one file per bucket."""
    if not schema.bucket_keys:
        partition = rows[0][: len(schema.partition_keys)]
        return [(_file(schema, _table(schema, rows), partition, text=text), rows)]
    field = schema.fields_of(schema.bucket_keys)[0]
    numbers = assign_buckets([_table(schema, rows).column(field.name)], [field.type], 7)
    made = []
    for number in sorted(set(numbers.tolist())):
        part = [row for row, bucket in zip(rows, numbers, strict=True) if bucket == number]
        partition = rows[0][: len(schema.partition_keys)]
        made.append((_file(schema, _table(schema, part), partition, text=text), part))
    return made


@settings(max_examples=examples(40, 300), deadline=None)
@given(_cases(), st.sampled_from(["full", "truncate(1)", "truncate(3)", "counts", "none", "nothing"]))
def test_no_file_with_a_matching_row_is_left_out(case: Case, text: str) -> None:
    """Statistics of any kind, cut or missing, NULL, NaN, partitions and buckets: what is left out has no such row."""
    schema, rows, wanted = case
    types = {field.name: field.type for field in schema.fields}
    for file, part in _files(schema, rows, text):
        if not prune([file], wanted, schema):
            assert not any(_truth(wanted, dict(zip(types, row, strict=True)), types) for row in part)


@settings(max_examples=examples(40, 200), deadline=None)
@given(_cases())
def test_columns_and_values_agree(case: Case) -> None:
    """Truth computed on Arrow columns is the definition, row by row."""
    schema, rows, wanted = case
    types = {field.name: field.type for field in schema.fields}
    expected = [_truth(wanted, dict(zip(types, row, strict=True)), types) for row in rows]
    assert matching(wanted, _table(schema, rows), types).tolist() == expected


@settings(max_examples=examples(40, 200), deadline=None)
@given(_cases())
def test_negation_holds_wherever_the_condition_is_false(case: Case) -> None:
    """No row is lost between a condition and its negation, but those with a NULL in it."""
    schema, rows, wanted = case
    types = {field.name: field.type for field in schema.fields}
    for row in rows:
        if None not in row:
            named = dict(zip(types, row, strict=True))
            assert _truth(wanted, named, types) or _truth(negate(wanted), named, types)


@settings(max_examples=examples(30, 60), deadline=None)
@given(
    st.data(),
    atomic_types(max_precision=6).map(lambda type_: type_ if is_comparable(type_) else DataType("BIGINT")),
    st.sampled_from(["full", "truncate(1)"]),
)
def test_values_at_the_boundaries_are_found(data: st.DataObject, type_: DataType, text: str) -> None:
    """Every operator with every value of the file, its smallest and largest ones too, alone and with its bucket."""
    schema = TableSchema(0, (DataField(0, "c", type_),), 1, options={"bucket": "7", "bucket-key": "c"})
    rows = data.draw(st.lists(st.tuples(known_values_of(type_)), min_size=1, max_size=4))
    if type_.root == "DOUBLE":
        rows += [(0.0,), (-0.0,)]
    for file, part in _files(schema, rows, text):
        for (value,), operator in itertools.product(rows, OPERATORS):
            wanted = Compare("c", operator, comparable(value, type_))  # type: ignore[arg-type] - of that type
            if any(_truth(wanted, {"c": row[0]}, {"c": type_}) for row in part):
                assert prune([file], wanted, schema)


def test_what_can_be_left_out_is_left_out() -> None:
    """The law alone would be kept by a function that leaves nothing out."""
    fields = (
        DataField(0, "p", DataType("DATE")),
        DataField(1, "k", DataType("BIGINT")),
        DataField(2, "s", DataType("VARCHAR", length=9)),
        DataField(3, "x", DataType("DOUBLE")),
        DataField(4, "d", DataType("DECIMAL", precision=9, scale=2)),
    )
    schema = TableSchema(0, fields, 4, ("p",), options={"bucket": "7", "bucket-key": "k"})
    day = np.datetime64("2024-01-02").astype("datetime64[D]").item()
    row = (day, 5, "bee", 1.5, Decimal("2.50"))
    (file,) = (one for one, _ in _files(schema, [row, (day, 5, None, 2.5, Decimal("3.50"))], "full"))
    number = int(comparable(day, fields[0].type))  # type: ignore[arg-type]
    out: list[Predicate] = [
        Compare("p", "=", number + 1), Compare("k", "=", 6), Compare("k", ">", 5), Compare("k", "!=", 5),
        OneOf("k", frozenset([1, 9])), Prefix("s", "c"), Compare("s", "<", "bee"), Compare("x", "<", 1.5),
        Compare("d", ">=", Decimal("3.51")), Missing("k"), Missing("p"), NOTHING, negate(Missing("k", negated=True)),
        Or((Compare("p", "<", number), Compare("x", "=", 9.0))), And((ANYTHING, Compare("d", "<", Decimal(0)))),
    ]  # fmt: skip
    inside: list[Predicate] = [
        Compare("p", "=", number),
        Compare("k", ">=", 5),
        Prefix("s", "be"),
        Missing("s"),
        ANYTHING,
    ]
    assert [one for one in out if prune([file], one, schema)] == []
    assert [one for one in inside if not prune([file], one, schema)] == []
    other = replace(file, bucket=(file.bucket + 1) % 7)
    assert prune([file], Compare("k", "=", 5), schema)
    assert not prune([other], Compare("k", "=", 5), schema)


def test_another_type_tells_nothing() -> None:
    """A column that was cut to integers, or widened in another way, is read with values that its bounds do not tell."""
    old = TableSchema(0, (DataField(0, "a", DataType("DOUBLE")), DataField(1, "b", DataType("INT"))), 1)
    new = TableSchema(
        1,
        (
            DataField(0, "a", DataType("INT")),
            DataField(1, "c", DataType("BIGINT")),
            DataField(2, "b", DataType("INT")),
        ),
        2,
    )
    file = _file(old, _table(old, [(1.5, 3)]), (), text="full")
    assert prune([file], Compare("a", "=", 1), new)
    assert prune([file], Compare("c", "=", 3), new)
    assert not prune([file], Compare("c", "=", 4), new)
    assert not prune([file], Compare("b", "=", 3), new), "a new column under an old name is NULL everywhere"
    assert prune([file], Missing("b"), new)


def test_bounds_that_leave_a_nan_out_still_let_it_be_found() -> None:
    """Other writers' bounds may come from the numbers alone; NaN is above them all, and unequal to them."""
    schema = TableSchema(0, (DataField(0, "x", DataType("DOUBLE")),), 1)
    numbers = _file(schema, _table(schema, [(1.0,), (2.0,)]), (), text="full")
    wanted = (
        Compare("x", ">", 5.0),
        Compare("x", ">=", 5.0),
        And((Compare("x", "!=", 1.0), Compare("x", "!=", 2.0))),
    )
    assert all(prune([numbers], one, schema) for one in wanted)
    assert not prune([numbers], Compare("x", "<", 1.0), schema)


@pytest.mark.parametrize("base", [0, -7, 1 << 40, (1 << 62) + 5, (1 << 63) - 12, -(1 << 63) + 6])
def test_listed_integers_are_those_of_the_list(base: int) -> None:
    """Numbers near those of the list, at both ends of their type, and NULL, by both ways of looking numbers up."""
    rng = random.Random(base)
    ends = (-(1 << 63), (1 << 63) - 1, 0, None)
    for spread in (5, 1 << 23):
        listed = {min(max(base + rng.randrange(-spread, spread), ends[0]), ends[1]) for _ in range(6)}
        near = [min(max(one + rng.choice([-1, 0, 1]), ends[0]), ends[1]) for one in listed for _ in range(4)]
        rows = pa.table({"a": pa.array([*near, *ends], pa.int64())})
        found = matching(OneOf("a", frozenset(listed)), rows, {"a": DataType("BIGINT")})
        assert found.tolist() == [one in listed for one in (*near, *ends)]
