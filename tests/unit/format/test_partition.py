"""Partition names: both texts, escaping, defaults, and the bytes that belong to them."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.partition import PartitionSpec, escape_path_name, partition_path
from tablestore_engine.format.schema import new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.format.value_text import cast_text, java_float_text


@pytest.mark.parametrize(
    ("text", "value", "legacy", "cast"),
    [
        ("STRING", "a/b=c é", "a%2Fb%3Dc é", "a%2Fb%3Dc é"),
        ("STRING", None, "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"),
        ("STRING", "", "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"),
        ("STRING", " \t\u2003", "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"),
        ("STRING", "\u00a0", "\u00a0", "\u00a0"),
        ("INT", 7, "7", "7"),
        ("BIGINT", -1, "-1", "-1"),
        ("BOOLEAN", True, "true", "true"),
        ("BOOLEAN", False, "false", "false"),
        ("DECIMAL(10,2)", Decimal("-1.5"), "-1.50", "-1.50"),
        ("DECIMAL(38,10)", Decimal("1E-10"), "0.0000000001", "0.0000000001"),
        ("DECIMAL(10,0)", Decimal("1E+3"), "1000", "1000"),
        ("DATE", dt.date(2024, 1, 1), "19723", "2024-01-01"),
        ("DATE", dt.date(1969, 12, 31), "-1", "1969-12-31"),
        ("TIME(3)", dt.time(1, 2, 3, 40000), "3723040", "01%3A02%3A03.04"),
        ("TIME(0)", dt.time(1, 2, 3), "3723000", "01%3A02%3A03"),
        ("TIMESTAMP(6)", dt.datetime(2024, 1, 1), "2024-01-01T00%3A00", "2024-01-01 00%3A00%3A00.000000"),
        ("TIMESTAMP(3)", dt.datetime(2024, 1, 1, 0, 0, 1), "2024-01-01T00%3A00%3A01", "2024-01-01 00%3A00%3A01.000"),
        ("TIMESTAMP(3)", dt.datetime(2024, 1, 1, 0, 0, 1, 500000),
         "2024-01-01T00%3A00%3A01.500", "2024-01-01 00%3A00%3A01.500"),
        ("TIMESTAMP(6)", dt.datetime(2024, 1, 1, 0, 0, 0, 1),
         "2024-01-01T00%3A00%3A00.000001", "2024-01-01 00%3A00%3A00.000001"),
        ("TIMESTAMP(0)", dt.datetime(2024, 1, 1), "2024-01-01T00%3A00", "2024-01-01 00%3A00%3A00"),
        ("TIMESTAMP(9)", np.datetime64("1969-12-31T23:59:59.999999999", "ns"), "1969-12-31T23%3A59%3A59.999999999",
         "1969-12-31 23%3A59%3A59.999999999"),
        ("DOUBLE", 1.5, "1.5", "1.5"),
    ],
)  # fmt: skip
def test_directory_name_of_each_type(text: str, value: object, legacy: str, cast: str) -> None:
    """Both naming modes give the text of Java's writers, escaped (format.md#partitions)."""
    types = [parse_type(text)]
    assert partition_path(["k"], types, [value]) == f"k={legacy}/"
    assert partition_path(["k"], types, [value], legacy_name=False) == f"k={cast}/"


def test_escape_covers_exactly_the_listed_characters() -> None:
    """Controls, DEL and the listed signs are escaped; space, umlauts and other signs stay raw."""
    assert (
        escape_path_name("\"#%'*/:=?\\{}[]^\x7f\n") == "%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%7D%5B%5D%5E%7F%0A"
    )
    raw = " !$&()+,-.;<>@_`|~äé日"
    assert escape_path_name(raw) == raw


def test_spec_of_a_table() -> None:
    """Keys come in partition order; the options of the table decide names; bytes and path agree."""
    schema = new_schema(
        pa.schema([("h", pa.int32()), ("v", pa.int64()), ("dt:", pa.date32())]),
        partition_keys=["dt:", "h"],
        options={"partition.default-name": "none", "partition.legacy-name": "false"},
    )
    spec = PartitionSpec.of(schema)
    values = (dt.date(2024, 1, 1), None)
    assert spec.path(values) == "dt%3A=2024-01-01/h=none/"
    assert spec.decode(spec.encode(values)) == values
    assert spec.path_of_bytes(spec.encode(values)) == spec.path(values)
    assert PartitionSpec((), ()).path(()) == ""
    assert PartitionSpec((), ()).encode(()) == bytes(12)


@pytest.mark.parametrize(
    ("text", "value", "legacy"),
    [("BYTES", b"x", True), ("TIMESTAMP_LTZ(3)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), False)],
)
def test_types_without_a_fixed_name_are_refused(text: str, value: object, *, legacy: bool) -> None:
    """Where writers would disagree on the directory, the type is refused by name."""
    with pytest.raises(Unsupported, match="TS1122"):
        partition_path(["k"], [parse_type(text)], [value], legacy_name=legacy)


@pytest.mark.parametrize(
    ("precision", "texts"),
    [
        (0, ["01:02:03", "01:02:03", "00:00:00", "00:00:00"]),
        (1, ["01:02:03.0", "01:02:03.0", "00:00:00.0", "00:00:00.1"]),
        (3, ["01:02:03.04", "01:02:03.0", "00:00:00.001", "00:00:00.1"]),
        (6, ["01:02:03.04", "01:02:03.0", "00:00:00.001", "00:00:00.1"]),
    ],
)
def test_time_text_is_that_of_paimon(precision: int, texts: list[str]) -> None:
    """CAST of TIME to STRING as Paimon 1.4.2 (Java) printed it for 3723040, 3723000, 1 and 100 ms of day."""
    times = [dt.time(1, 2, 3, 40000), dt.time(1, 2, 3), dt.time(0, 0, 0, 1000), dt.time(0, 0, 0, 100000)]
    assert [cast_text(t, parse_type(f"TIME({precision})")) for t in times] == texts


@pytest.mark.parametrize(
    ("precision", "value", "text"),
    [
        (0, "2024-01-01T00:00:01.5", "2024-01-01 00:00:01.5"),
        (0, "1969-12-31T23:59:59.999999999", "1969-12-31 23:59:59.999999999"),
        (3, "2024-01-01T00:00:00.000001", "2024-01-01 00:00:00.000001"),
        (6, "2024-01-01T00:00:01.5", "2024-01-01 00:00:01.500000"),
        (9, "2024-01-01T00:00:00", "2024-01-01 00:00:00.000000000"),
    ],
)
def test_timestamp_text_is_that_of_paimon(precision: int, value: str, text: str) -> None:
    """CAST of TIMESTAMP to STRING as Paimon 1.4.2 (Java) printed it: at least `precision` digits."""
    assert cast_text(np.datetime64(value, "ns"), parse_type(f"TIMESTAMP({precision})")) == text


@pytest.mark.parametrize(
    ("value", "single", "text"),
    [
        (1.0, False, "1.0"), (0.001, False, "0.001"), (1e7, False, "1.0E7"), (1.25e-5, False, "1.25E-5"),
        (-0.0, False, "-0.0"), (9999999.0, False, "9999999.0"), (1e300, False, "1.0E300"), (float("nan"), False, "NaN"),
        (float("-inf"), True, "-Infinity"), (3.4028235e38, True, "3.4028235E38"), (0.1, True, "0.1"),
        (123456789.0, False, "1.23456789E8"), (100.0, True, "100.0"),
    ],
)  # fmt: skip
def test_floating_text_is_that_of_java(value: float, text: str, *, single: bool) -> None:
    """Plain between 1e-3 and 1e7, scientific with E elsewhere."""
    assert java_float_text(value, single=single) == text
