"""BinaryRow: the bytes of Paimon's own writer, and errors for values that do not fit."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.format.binary_row import (
    EMPTY_ROW,
    decode_row,
    encode_bare_row,
    encode_key_columns,
    encode_row,
    row_arity,
)
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_text import parse_type
from tests.unit.format.bucket_vectors import ROW_BYTES


@pytest.mark.parametrize(("types", "row", "expected"), ROW_BYTES)
def test_bytes_are_those_of_java(types: tuple[str, ...], row: tuple[object, ...], expected: str) -> None:
    """Each of Java's vectors has exactly Java's bytes, and is read back."""
    parsed = [parse_type(t) for t in types]
    assert encode_bare_row(row, parsed).hex() == expected.replace(" ", "")
    assert decode_row(encode_row(row, parsed), parsed) == row


def test_examples_of_manifests() -> None:
    """Three rows that Java wrote, arity prefix included."""
    assert encode_row((), ()) == EMPTY_ROW == bytes(12)
    assert encode_row((1,), [parse_type("INT")]).hex() == "00000001" + "00" * 8 + "0100000000000000"
    assert encode_row(("abc",), [parse_type("STRING")]).hex() == "00000001" + "00" * 8 + "6162630000000083"
    assert row_arity(encode_row((1,), [parse_type("INT")])) == 1


def test_nulls_of_wide_types_reserve_their_space() -> None:
    """A null DECIMAL(>18) keeps 16 bytes and a null TIMESTAMP(>3) 8, with the offset in the slot; others nothing."""
    types = [
        parse_type(t) for t in ("DECIMAL(20,2)", "TIMESTAMP(6)", "STRING", "DECIMAL(18,2)", "TIMESTAMP(3)")
    ]
    row = encode_bare_row((None,) * 5, types)
    assert len(row) == 8 + 5 * 8 + 16 + 8
    assert row[:8].hex() == "001f000000000000"
    assert [int.from_bytes(row[at : at + 8], "little") >> 32 for at in range(8, 48, 8)] == [48, 64, 0, 0, 0]
    assert decode_row(encode_row((None,) * 5, types), types) == (None,) * 5


def test_null_bits_grow_into_a_second_word() -> None:
    """From 57 fields on the null bits need a second word (W = 16)."""
    types = [parse_type("TINYINT")] * 57
    values: list[object] = [*range(56), None]
    row = encode_bare_row(values, types)
    assert len(row) == 16 + 57 * 8
    assert row[8] == 1
    assert decode_row(encode_row(values, types), types) == tuple(values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("BOOLEAN", True),
        ("TINYINT", -128),
        ("SMALLINT", -32768),
        ("BIGINT", 2**63 - 1),
        ("FLOAT", -0.5),
        ("DOUBLE", float("-inf")),
        ("DATE", dt.date(1, 1, 1)),
        ("DATE", np.datetime64(4_000_000, "D")),
        ("TIME(3)", dt.time(23, 59, 59, 999000)),
        ("TIMESTAMP(6)", dt.datetime(1, 1, 1, 0, 0, 0, 1)),
        ("TIMESTAMP(6)", np.datetime64(300_000_000_000_000_000, "us")),
        ("TIMESTAMP(9)", np.datetime64(-1, "ns")),
        ("TIMESTAMP_LTZ(3)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("CHAR(3)", "äöü"),
        ("BYTES", bytes(range(20))),
        ("DECIMAL(38, 38)", Decimal("-0." + "9" * 38)),
    ],
)
def test_extreme_values_survive(text: str, value: object) -> None:
    """Limits of each type come back as they were."""
    types = [parse_type(text)]
    assert decode_row(encode_row((value,), types), types) == (value,)


def test_nanoseconds_of_pandas_are_kept() -> None:
    """A pandas.Timestamp carries three more digits than datetime; they reach the bytes."""
    types = [parse_type("TIMESTAMP(9)")]
    text = "2024-01-01T12:34:56.789123456"
    assert encode_row((pd.Timestamp(text),), types) == encode_row((np.datetime64(text, "ns"),), types)


def test_a_zone_is_converted_not_dropped() -> None:
    """LTZ holds the instant: the same instant in two zones has the same bytes."""
    types = [parse_type("TIMESTAMP_LTZ(6)")]
    berlin = dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert encode_row((berlin,), types) == encode_row((dt.datetime(2024, 1, 1, tzinfo=dt.UTC),), types)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TINYINT", 128),
        ("INT", "1"),
        ("INT", 2**31),
        ("STRING", b"x"),
        ("BYTES", "x"),
        ("DATE", dt.datetime(2024, 1, 1)),
        ("TIME(0)", 5),
        ("TIMESTAMP(6)", dt.date(2024, 1, 1)),
        ("TIMESTAMP(6)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("TIMESTAMP_LTZ(6)", dt.datetime(2024, 1, 1)),
        ("DECIMAL(4,2)", Decimal("123.45")),
        ("DECIMAL(4,2)", Decimal("1.234")),
        ("DECIMAL(4,2)", Decimal("NaN")),
        ("DECIMAL(4,2)", 1.5),
        ("FLOAT", "x"),
    ],
)
def test_values_that_do_not_fit_are_refused(text: str, value: object) -> None:
    """A value of another type, out of range, with lost digits or a wrong zone never becomes bytes."""
    with pytest.raises(FixData) as raised:
        encode_row((value,), [parse_type(text)])
    assert raised.value.code in ("TS1114", "TS1117")


def test_nested_values_are_refused_but_null_is_fine() -> None:
    """Statistics hold a null for nested columns; a value has no bytes here."""
    nested = DataType("ARRAY", element=parse_type("INT"))
    assert decode_row(encode_row((None,), [nested]), [nested]) == (None,)
    with pytest.raises(Unsupported):
        encode_row(([1],), [nested])


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0\1", bytes(12), b"\0\0\0\1" + bytes(8) + b"\xff\0\0\0\xff\0\0\0"]
)
def test_damaged_rows_are_refused(data: bytes) -> None:
    """A short row, another arity or an offset behind the end gives TS1116."""
    with pytest.raises(FixData) as raised:
        decode_row(data, [parse_type("STRING")])
    assert raised.value.code == "TS1116"


def test_arrow_columns_become_rows() -> None:
    """Key columns of a batch give one encoded row each, cast to the key types first."""
    types = [parse_type("BIGINT"), parse_type("TIMESTAMP(6)")]
    stamps = pa.chunked_array([pa.array([0], pa.timestamp("ms")), pa.array([None], pa.timestamp("ms"))])
    rows = encode_key_columns([pa.array([1, 2], pa.int32()), stamps], types)
    assert rows == [encode_row((1, dt.datetime(1970, 1, 1)), types), encode_row((2, None), types)]
    with pytest.raises(FixData) as raised:
        encode_key_columns([pa.array(["x"])], [parse_type("BIGINT")])
    assert raised.value.code == "TS1117"
    with pytest.raises(FixData):
        encode_row((1, 2), [parse_type("INT")])
