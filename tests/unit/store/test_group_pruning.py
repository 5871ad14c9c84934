"""Row groups are left out by their statistics: every type with every operator, and files of many writers."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_file import EMPTY_STATS, DataFileMeta
from tablestore_engine.format.data_type import ATOMIC_ROOTS, STRING, DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.store.files.column_facts import ColumnFacts
from tablestore_engine.store.files.comparable_values import comparable, is_comparable
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.parquet_footer import joined_facts, read_group_facts
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.predicate import Compare, Like, Missing, OneOf, Operator, Predicate, Prefix
from tablestore_engine.store.read.text_condition import PredicateCondition
from tablestore_engine.store.rows import matching_rows
from tablestore_engine.store.rows.matching_rows import find_matches, possible_groups
from tests.doses import pairs

OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
GROUP_ROWS = 2
_AT = dt.datetime(2026, 1, 31, 14, 0, 0)  # noqa: DTZ001 - wall clock
_TIMES = [dt.datetime(1, 1, 1), _AT, _AT + dt.timedelta(seconds=1), dt.datetime(9999, 12, 31)]  # noqa: DTZ001
_FLOATS = [-math.inf, -1.5, -0.0, 0.0, 1.0, math.inf, math.nan]
Case = tuple[DataType, list[Any], bool]
# type, values in ascending order, whether its statistics are used
CASES: dict[str, Case] = {
    "BOOLEAN": (DataType("BOOLEAN"), [False, True], True),
    "TINYINT": (DataType("TINYINT"), [-128, -1, 0, 127], True),
    "SMALLINT": (DataType("SMALLINT"), [-(2**15), -1, 0, 2**15 - 1], True),
    "INT": (DataType("INT"), [-(2**31), -1, 0, 2**31 - 1], True),
    "BIGINT": (DataType("BIGINT"), [-(2**63), -(2**53) - 1, 2**53 + 1, 2**63 - 1], True),
    "FLOAT": (DataType("FLOAT"), _FLOATS, False),
    "DOUBLE": (DataType("DOUBLE"), _FLOATS, False),
    "DECIMAL": (
        DataType("DECIMAL", precision=9, scale=2),
        [Decimal(one) for one in ("-9999999.99", "-0.01", "0.00", "1.50")],
        True,
    ),
    "DECIMAL of 18": (
        DataType("DECIMAL", precision=18, scale=0),
        [Decimal(one) for one in ("-1", "0", "999999999999999999")],
        True,
    ),
    "DECIMAL of 38": (
        DataType("DECIMAL", precision=38, scale=10),
        [Decimal(one) for one in ("-1.5000000000", "-0.0000000001", "0.0000000000", "9" * 28 + "." + "9" * 10)],
        True,
    ),
    "CHAR": (DataType("CHAR", length=3), ["a", "b", "c"], False),
    "VARCHAR": (STRING, ["", "a", "a\x00", "ab", "b", "é", "\uffff", "\U0001f600", "\U0001f600a"], True),
    "BINARY": (DataType("BINARY", length=1), [b"a", b"b", b"\xff"], False),
    "VARBINARY": (DataType("VARBINARY", length=9), [b"", b"a", b"\xff"], False),
    "DATE": (DataType("DATE"), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)], True),
    "TIME": (DataType("TIME", precision=3), [dt.time(0), dt.time(12), dt.time(23, 59)], False),
    "TIMESTAMP": (DataType("TIMESTAMP", precision=6), _TIMES, True),
    "TIMESTAMP of 3": (DataType("TIMESTAMP", precision=3), _TIMES, True),
    "TIMESTAMP of 9": (DataType("TIMESTAMP", precision=9), _TIMES[1:3], False),
    "TIMESTAMP_LTZ": (
        DataType("TIMESTAMP_LTZ", precision=6),
        [one.replace(tzinfo=dt.UTC) for one in _TIMES],
        True,
    ),
}  # fmt: skip


def schema_of(*columns: tuple[int, str, DataType], schema_id: int = 0) -> TableSchema:
    """Of columns (id, name, type), without a key."""
    return TableSchema(schema_id, tuple(DataField(*one) for one in columns), 9, options={"bucket": "-1"})


def stored(folder: Path, schema: TableSchema, rows: pa.Table, **options: object) -> StoredFile:
    """The rows as a file of another writer: pyarrow, with all statistics that it has."""
    path = folder / "f.parquet"
    pq.write_table(rows, path, row_group_size=GROUP_ROWS, **options)
    meta = DataFileMeta(
        path.name, 1, rows.num_rows, b"", b"", EMPTY_STATS, EMPTY_STATS, 0, 0, schema.id, 0, None
    )
    return StoredFile((), b"", "", 0, 1, meta, str(path), schema)


def cells_of(values: list[Any]) -> list[Any]:
    """Two a row group: ascending, then with NULL, NULL alone, and all of them mixed."""
    pairs = [value for value in values for _ in range(GROUP_ROWS)]
    return [*pairs, values[0], None, None, None, values[-1], values[0], *values, *values[len(values) % 2 :]]


def is_true(wanted: Predicate, value: Any, type_: DataType) -> bool:
    """The definition, for one value."""
    match wanted:
        case Missing(negated=negated):
            return (value is None) != negated
        case _ if value is None:
            return False
        case OneOf(column, values):
            return any(is_true(Compare(column, "=", one), value, type_) for one in values)
        case Prefix(text=text):
            return str(value).startswith(text)
        case Like(pattern=pattern, negated=negated):
            wild = "".join({"%": ".*", "_": "."}.get(one, re.escape(one)) for one in pattern)
            return (re.fullmatch(wild, value, re.DOTALL) is not None) != negated
        case Compare(operator=operator, value=other):
            if isinstance(value, float) and math.isnan(value):
                return operator in (">", ">=", "!=")  # as in Spark: above every number
            mine: Any = comparable(value, type_)
            return bool(
                {
                    "=": mine == other, "!=": mine != other, "<": mine < other, "<=": mine <= other,
                    ">": mine > other, ">=": mine >= other,
                }[operator]
            )  # fmt: skip
    raise AssertionError(wanted)


def conditions(type_: DataType, values: list[Any]) -> list[Predicate]:
    """Every operator with every value."""
    made: list[Predicate] = [Missing("c"), Missing("c", negated=True)]
    if not is_comparable(type_):
        return made
    known = [one for value in values if (one := comparable(value, type_)) is not None]
    made += [Compare("c", operator, value) for operator, value in itertools.product(OPERATORS, known)]
    made += [OneOf("c", frozenset(some)) for some in itertools.combinations(known, 2)]
    if type_.root == "VARCHAR":
        made += [Prefix("c", str(value)) for value in known]
        patterns = [*(f"{value}%" for value in known), "%", "_", "a_", "%a"]
        made += [Like("c", pattern, negated) for pattern in patterns for negated in (False, True)]
    return made


def check(schema: TableSchema, file: StoredFile, wanted: Predicate, cells: Sequence[Any]) -> list[int]:
    """Exactly the rows that the condition is TRUE of are found; the row groups that were possible."""
    condition = PredicateCondition(wanted, schema)
    with FileReader(LocalFileIO("/"), schema).open(file) as opened:
        groups = possible_groups(opened, condition)
        matches = find_matches(opened, condition, groups)
        found = opened.positions_of(groups, np.flatnonzero(matches.mask)).tolist()
        assert matches.rows.num_rows == len(found)

    type_ = schema.field("c").type
    dead = file.deleted or ()
    assert found == [at for at, cell in enumerate(cells) if at not in dead and is_true(wanted, cell, type_)]
    return groups


def test_each_type_is_pruned_or_refused() -> None:
    """A new type needs an entry."""
    assert {type_.root for type_, _, _ in CASES.values()} == set(ATOMIC_ROOTS)


@pytest.mark.parametrize(("name", "decimals"), pairs(list(CASES), [True, False]))
def test_matching_rows_every_operator_and_value_are_found(
    tmp_path: Path, name: str, decimals: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No type, operator or value loses a row; types whose statistics are exact leave row groups out."""
    monkeypatch.setattr(matching_rows, "BLOCK_GROUPS", 3)
    type_, values, is_pruned = CASES[name]
    schema, cells = schema_of((0, "c", type_)), cells_of(values)
    rows = pa.table({"c": pa.array(cells, type_to_arrow(type_))})
    file = stored(tmp_path, schema, rows, store_decimal_as_integer=decimals)
    count = -(-len(cells) // GROUP_ROWS)
    sizes = {wanted: len(check(schema, file, wanted, cells)) for wanted in conditions(type_, values)}
    assert sizes[Missing("c")] < count
    assert sizes[Missing("c", negated=True)] == count - 1
    compared = [
        size for wanted, size in sizes.items() if isinstance(wanted, Compare) and wanted.operator == "="
    ]
    assert all((size < count - 1) == is_pruned for size in compared)


FOREIGN: dict[str, tuple[DataType, pa.Array, dict[str, object]]] = {
    "INT96": (
        DataType("TIMESTAMP", precision=6),
        pa.array(_TIMES[1:3] * 2, pa.timestamp("us")),
        {"use_deprecated_int96_timestamps": True},
    ),
    "nanoseconds": (DataType("TIMESTAMP", precision=6), pa.array([1_999, -1], pa.timestamp("ns")), {}),
    "unsigned": (DataType("BIGINT"), pa.array([1, 2**32 - 1], pa.uint32()), {}),
    "another scale": (DataType("DECIMAL", precision=9, scale=2), pa.array([Decimal("1.5")], pa.decimal128(9, 1)), {}),
    "bytes": (STRING, pa.array([b"a", b"b"]), {}),
    "no statistics": (DataType("BIGINT"), pa.array([1, 2]), {"write_statistics": False}),
    "milliseconds as date": (DataType("DATE"), pa.array([1, 2], pa.timestamp("ms")), {}),
    "list": (DataType("ARRAY", element=DataType("INT")), pa.array([[1], [2]]), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_statistics_of_another_type_are_not_used(tmp_path: Path, name: str) -> None:
    """Files whose column is not what the table's type makes of it: nothing is concluded from their bounds."""
    type_, values, options = FOREIGN[name]
    schema = schema_of((0, "c", type_))
    file = stored(tmp_path, schema, pa.table({"c": values}), **options)
    with FileReader(LocalFileIO("/"), schema).open(file) as opened:
        for facts in opened.facts.of_groups("c") or ():
            assert (facts.low, facts.high) == (None, None)


@pytest.mark.parametrize(
    ("low", "high"),
    [(b"b", b"a"), (b"a", b"\xc3"), (None, b"a")],
    ids=["in another order", "cut within a character", "no text"],
)
def test_bounds_that_make_no_sense_are_unknown(low: object, high: object) -> None:
    """A writer that orders or cuts texts in its own way loses no row here."""
    statistics = SimpleNamespace(
        has_null_count=True, null_count=1, has_min_max=low is not None, min_raw=low, max_raw=high
    )
    group = SimpleNamespace(num_rows=3, column=lambda _: SimpleNamespace(statistics=statistics))
    logical = SimpleNamespace(to_json=lambda: '{"Type":"String"}')
    column = SimpleNamespace(physical_type="BYTE_ARRAY", logical_type=logical)
    metadata: Any = SimpleNamespace(
        num_row_groups=1, row_group=lambda _: group, schema=SimpleNamespace(column=lambda _: column)
    )
    assert read_group_facts(metadata, 0, STRING) == (ColumnFacts(3, 1, None, None, exact=False),)


def test_joined_facts_of_null_groups_keep_the_bounds_of_the_others() -> None:
    """Groups of NULL alone have no bounds, which says nothing of the others; unknown ones make all unknown."""
    known, empty, unknown = ColumnFacts(2, 0, 1, 5, exact=True), ColumnFacts(2, 2), ColumnFacts(2)
    assert joined_facts([known, empty]) == ColumnFacts(4, 2, 1, 5, exact=True)
    assert joined_facts([known, empty, unknown]) == ColumnFacts(6)
    assert joined_facts([empty, empty]) == ColumnFacts(4, 4)


def test_evolved_columns_by_their_ids(tmp_path: Path) -> None:
    """Renamed and widened columns keep their statistics; added ones are NULL; other changes of a type have none."""
    old = schema_of((0, "a", DataType("INT")), (1, "b", DataType("INT")), (2, "x", DataType("INT")))
    numbers = [0, 1, 2, 3, 4, 5]
    file = stored(tmp_path, old, pa.table({name: pa.array(numbers, pa.int32()) for name in "abx"}))

    def groups(column: tuple[int, str, DataType], wanted: Predicate, cells: Sequence[Any]) -> list[int]:
        return check(schema_of(column, schema_id=1), file, wanted, cells)

    assert groups((0, "c", DataType("BIGINT")), Compare("c", "=", 3), numbers) == [1]
    assert groups((1, "c", DataType("INT")), Compare("c", ">", 3), numbers) == [2]
    added = (7, "c", DataType("INT"))  # under the name that a dropped one had
    assert groups(added, Compare("c", "=", 3), [None] * 6) == []
    assert groups(added, Missing("c"), [None] * 6) == [0, 1, 2]
    assert groups((0, "c", DataType("DOUBLE")), Compare("c", "=", 3.0), [float(one) for one in numbers]) == [
        0,
        1,
        2,
    ]
    assert groups((0, "c", STRING), Compare("c", "=", "3"), [str(one) for one in numbers]) == [0, 1, 2]


def test_deleted_rows_are_neither_found_nor_evaluated(tmp_path: Path) -> None:
    """Positions stay those of the file; a row group without a visible row is not read."""
    schema = schema_of((0, "c", DataType("INT")))
    cells = [5, 5, 1, 5, 5, 5]
    file = stored(tmp_path, schema, pa.table({"c": pa.array(cells, pa.int32())}))
    hidden = StoredFile(**{**file.__dict__, "deleted": BitMap([0, 1, 4])})
    assert check(schema, hidden, Compare("c", "=", 5), cells) == [1, 2]
