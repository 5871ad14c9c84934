"""rows: a value that does not fit stops the batch and is shown; nothing is rounded or cut."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_arrow import type_from_arrow
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.rows.conformed_rows import conform
from tablestore_engine.store.rows.row_equality import rows_identical
from tests.doses import examples


def _schema(**columns: str) -> TableSchema:
    fields = [DataField(0, name, parse_type(text)) for name, text in columns.items()]
    return new_schema(fields, primary_keys=("id",))


def test_columns_are_ordered_cast_and_filled() -> None:
    """Columns come by name, integers widen, integers become DECIMAL, a missing nullable column is NULL."""
    schema = _schema(id="BIGINT", price="DECIMAL(10, 2)", note="STRING")
    made = conform(pa.table({"price": [1, 2], "id": pa.array([1, 2], pa.int8())}), schema)
    assert made.to_pylist() == [
        {"id": 1, "price": Decimal("1.00"), "note": None},
        {"id": 2, "price": Decimal("2.00"), "note": None},
    ]
    assert made.schema.equals(schema.arrow_schema())


MISFITS = {
    "int too large": ("TINYINT", pa.array([1, 300]), "300"),
    "text too long": ("VARCHAR(3)", pa.array(["abc", "äbcd"]), "äbcd"),
    "bytes too long": ("VARBINARY(2)", pa.array([b"ab", b"abc"]), "X'616263'"),
    "decimal overflow": ("DECIMAL(4, 2)", pa.array([Decimal("99.99"), Decimal("100.00")]), "100.00"),
    "int beyond decimal": ("DECIMAL(4, 2)", pa.array([99, 100]), "100"),
    "decimal digits lost": ("DECIMAL(6, 2)", pa.array([Decimal("1.000"), Decimal("1.001")]), "1.001"),
    "fraction to int": ("INT", pa.array([1.0, 1.5]), "1.5"),
    "time digits lost": ("TIMESTAMP(3)", pa.array([1000, 1001], pa.timestamp("us")), "1001"),
    "text to int": ("INT", pa.array(["1", "x"]), "x"),
    "instant to wall clock": ("TIMESTAMP(6)", pa.array([0, 0], pa.timestamp("us", "UTC")), "UTC"),
    "time of day to date": ("DATE", pa.array([0, 3_600_000_000], pa.timestamp("us")), "01:00:00"),
    "beyond float": ("FLOAT", pa.array([0.1, 1e300]), "1e+300"),
    "number to boolean": ("BOOLEAN", pa.array([1, 2]), "2"),
    "float of more digits": ("DECIMAL(5, 2)", pa.array([1.24, 1.23678]), "1.23678"),
    "half float of more digits": (
        "DECIMAL(5, 2)",
        pa.array([0.5, 0.1]).cast(pa.float16()),
        "0.0999755859375",
    ),
    "decimal of more digits than a double": (
        "DOUBLE",
        pa.array([Decimal("0.1"), Decimal("12345678901234567.8")]),
        "12345678901234567.8",
    ),
    "decimal of more digits than a float": (
        "FLOAT",
        pa.array([Decimal("0.1"), Decimal(16777217)]),
        "16777217",
    ),
    "integer of more digits than a double": ("DOUBLE", pa.array([2**53, 2**53 + 1]), str(2**53 + 1)),
    "text beyond double": ("DOUBLE", pa.array(["inf", "1e400"]), "1e400"),
    "nothing left in a decimal": ("DECIMAL(5, 2)", pa.array([0.0, 5e-324]), "5e-324"),
    "no number in a decimal": ("DECIMAL(5, 2)", pa.array([0.0, float("nan")]), "no number"),
    "number to timestamp": ("TIMESTAMP(6)", pa.array([1700000000, 1]), "no unit of time"),
    "number to date": ("DATE", pa.array([1, 2], pa.int32()), "no unit of time"),
    "number to time": ("TIME(3)", pa.array([1, 2], pa.int32()), "no unit of time"),
    "timestamp to number": ("BIGINT", pa.array([1, 2], pa.timestamp("us")), "no unit of time"),
    "timestamp to time": ("TIME(3)", pa.array([1, 86_400_000_001], pa.timestamp("us")), "date would be lost"),
    "number in a dictionary": ("TIMESTAMP(6)", pa.array([1, 2]).dictionary_encode(), "no unit of time"),
    "null in not null": ("INT NOT NULL", pa.array([1, None]), "1 row has no value"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_misfits_name_column_and_value(name: str) -> None:
    """Each kind of value that does not fit is refused with TS1603, the column and the value."""
    text, column, shown = MISFITS[name]
    with pytest.raises(FixData) as caught:
        conform(pa.table({"id": [1, 2], "v": column}), _schema(id="BIGINT", v=text))
    assert caught.value.code == "TS1603"
    assert "'v'" in str(caught.value)
    assert shown in str(caught.value)


def test_misfits_name_a_value_once() -> None:
    """The example is left out where the reason has the value already, and for NULL; a part of a word is not it."""
    reasons = {}
    for name, (text, column, _) in MISFITS.items():
        with pytest.raises(FixData) as caught:
            conform(pa.table({"id": [1, 2], "v": column}), _schema(id="BIGINT", v=text))
        reasons[name] = caught.value.why
    assert reasons["int too large"].count("300") == 1
    assert reasons["null in not null"] == "1 row has no value"
    assert reasons["text too long"] == "a value is longer than 3; for example 'äbcd'"
    assert all("; for example NULL" not in why for why in reasons.values())


def _nested_schema(arrow: pa.DataType) -> TableSchema:
    return new_schema(
        [*_schema(id="BIGINT").fields, DataField(0, "v", type_from_arrow(arrow))], primary_keys=("id",)
    )


def test_children_of_rows_have_no_case() -> None:
    """Names inside of ROW, ARRAY and MAP match as column names do; they never become NULL for their case."""

    def nested(a: str, m: str, b: str) -> pa.DataType:
        inner = pa.map_(pa.string(), pa.list_(pa.struct([(b, pa.string())])))
        return pa.struct([(a, pa.int32()), (m, inner)])

    given = pa.array([{"A": 7, "M": [("k", [{"B": "x"}])]}, None], nested("A", "M", "B"))
    made = conform(pa.table({"id": [1, 2], "v": given}), _nested_schema(nested("a", "m", "b")))
    assert made.column("v").to_pylist() == [{"a": 7, "m": [("k", [{"b": "x"}])]}, None]


def test_floats_become_the_decimal_that_is_written_like_them() -> None:
    """1.24 has no exact binary form, and it is 1.24: only digits beyond the scale are a loss."""
    exact = ["1.24", "0.07", "-123.45", "999.99", "0.10", "250.00"]
    for kind in (pa.float32(), pa.float64()):
        floats = pa.array([float(text) for text in exact]).cast(kind)
        made = conform(pa.table({"id": range(6), "v": floats}), _schema(id="BIGINT", v="DECIMAL(5, 2)"))
        assert made.column("v").to_pylist() == [Decimal(text) for text in exact]


@pytest.mark.parametrize("scale", [0, 3, 12, 18])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_and_decimals_become_each_other_digit_by_digit(
    kind: type[np.floating[Any]], scale: int
) -> None:
    """Random values against Python's own text of a float: the same digits, or the value is refused."""
    rng = random.Random(scale)
    column = "FLOAT" if kind is np.float32 else "DOUBLE"
    for _ in range(examples(150, 400)):
        digits = 10 ** rng.randint(1, 19)
        number = Decimal(rng.randint(-digits, digits)).scaleb(-rng.randint(0, scale))
        near = kind(str(number))
        written = Decimal(str(near))
        decimals = pa.array([number], pa.decimal128(38, scale))
        assert _stored(decimals, column) == (float(near) if written == number else None)
        floats = pa.array([near], pa.from_numpy_dtype(kind))
        is_kept = written == written.quantize(Decimal(1).scaleb(-scale), context=Context(prec=60))
        assert _stored(floats, f"DECIMAL(38, {scale})") == (written if is_kept else None)


def _stored(column: pa.Array, text: str) -> object:
    """The one value as it is stored, None when it is refused."""
    try:
        return (
            conform(pa.table({"id": [1], "v": column}), _schema(id="BIGINT", v=text)).column("v")[0].as_py()
        )
    except FixData:
        return None


@pytest.mark.parametrize("text", ["DECIMAL(20, 0)", "DECIMAL(38, 0)", "DECIMAL(38, 18)", "DECIMAL(38, 25)"])
def test_integers_of_each_type_become_decimals(text: str) -> None:
    """The precision that counts is that of the values, not of their type; the largest UInt64 has 20 digits."""
    schema = _schema(id="BIGINT", v=text)
    largest = 2**64 - 1 if schema.field("v").type.scale in (0, 18) else 9_999_999_999_999
    for values in (pa.array([7, largest], pa.uint64()), pa.array([7, min(largest, 2**63 - 1)], pa.int64())):
        made = conform(pa.table({"id": [1, 2], "v": values}), schema)
        assert [int(one) for one in made.column("v").to_pylist()] == values.to_pylist()


def test_the_rules_of_values_hold_inside_of_columns() -> None:
    """What does not fit a column does not fit a field, an element or a value of a map either."""

    def shaped(kind: pa.DataType) -> pa.DataType:
        return pa.map_(pa.string(), pa.large_list(pa.struct([("f", kind)])))

    losses = [
        (pa.int64(), pa.timestamp("us"), 1),
        (pa.float64(), pa.decimal128(5, 2), 1.23678),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        (pa.float64(), pa.bool_(), 2.0),
    ]
    for given, stored, value in losses:
        column = pa.array([None, [("k", [{"f": None}, {"f": value}])]], shaped(given))
        with pytest.raises(FixData, match="TS1603"):
            conform(pa.table({"id": [1, 2], "v": column}), _nested_schema(shaped(stored)))
    fits = pa.array([None, [("k", [{"f": 7}, None]), ("l", None)]], shaped(pa.uint64()))
    made = conform(pa.table({"id": [1, 2], "v": fits}), _nested_schema(shaped(pa.decimal128(20, 0))))
    assert made.column("v").to_pylist() == [None, [("k", [{"f": Decimal(7)}, None]), ("l", None)]]


@pytest.mark.parametrize("list_of", [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 2)])
def test_slices_and_lists_of_each_kind_keep_their_values(
    list_of: Callable[[pa.DataType], pa.DataType],
) -> None:
    """Offsets, NULL lists and names in another case are no reason to lose a value."""
    rows = [[{"A": 1}, {"A": 2}], None, [None, {"A": 3}], [{"A": None}, {"A": 4}]]
    given = pa.array(rows, list_of(pa.struct([("A", pa.int32())])))
    schema = _nested_schema(pa.list_(pa.struct([("a", pa.int64())])))
    for start in range(4):
        part = given.slice(start)
        made = conform(pa.table({"id": range(len(part)), "v": part}), schema).column("v").to_pylist()
        assert made == [
            None if row is None else [None if one is None else {"a": one["A"]} for one in row]
            for row in rows[start:]
        ]


def test_a_nested_not_null_is_kept() -> None:
    """A struct without a field that is NOT NULL is refused; a NULL struct has no fields."""
    schema = _nested_schema(pa.struct([pa.field("a", pa.int64(), nullable=False)]))
    kind = pa.struct([("a", pa.int32())])
    rows = {"id": [1, 2], "v": pa.array([None, {"a": 1}], kind)}
    assert conform(pa.table(rows), schema).column("v").to_pylist() == [None, {"a": 1}]
    with pytest.raises(FixData, match="'a' is NOT NULL"):
        conform(pa.table(rows | {"v": pa.array([{"a": 2}, {"a": None}], kind)}), schema)


def test_misfits_inside_of_lists() -> None:
    """What does not fit a column does not fit the elements of a list either."""
    given = pa.array([[0], [1]], pa.list_(pa.timestamp("us")))
    with pytest.raises(FixData, match="TS1603"):
        conform(pa.table({"id": [1, 2], "v": given}), _nested_schema(pa.list_(pa.date32())))


def test_null_key() -> None:
    """A null key is refused with the number of such rows and a sample."""
    with pytest.raises(FixData, match="2 rows have no key") as caught:
        conform(pa.table({"id": [1, None, None], "v": [7, 8, 9]}), _schema(id="BIGINT", v="INT"))
    assert caught.value.code == "TS1602"
    assert "v = 8" in str(caught.value)


def test_unknown_column() -> None:
    """A column that the table lacks is refused, never dropped silently."""
    with pytest.raises(FixData) as caught:
        conform(pa.table({"id": [1], "w": [1]}), _schema(id="BIGINT", v="INT"))
    assert caught.value.code == "TS1604"


def test_deletes_need_only_their_key() -> None:
    """NOT NULL of other columns is not asked of rows that delete, and is of all others."""
    schema = _schema(id="BIGINT", v="INT NOT NULL")
    rows = pa.table({"id": [1, 2], "v": [1, None]})
    assert conform(rows, schema, np.array([False, True])).num_rows == 2
    with pytest.raises(FixData):
        conform(rows, schema, np.array([True, False]))


def test_identical_rows() -> None:
    """NULL equals NULL, NaN equals NaN, −0.0 differs from 0.0, nested values compare by content."""
    nan = float("nan")
    one = pa.table(
        {"a": [None, nan, 0.0, 1.0], "n": [[1], None, [{}], [2]]} | {"n": [[1], None, [2], [3, None]]}
    )
    two = pa.table({"a": [None, nan, -0.0, 1.0], "n": [[1], None, [2], [3, None]]})
    assert rows_identical(one, two).tolist() == [True, True, False, True]
    days = pa.table({"d": [dt.date(2026, 1, 1), None]})
    assert rows_identical(
        days, pa.table({"d": pa.array([dt.date(2026, 1, 1), dt.date(1970, 1, 1)])})
    ).tolist() == [True, False]
