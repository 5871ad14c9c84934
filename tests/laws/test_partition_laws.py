"""Laws of partitions: bytes and names come from the same values, and names stay inside their level."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.partition import (
    PartitionSpec,
    decode_partition,
    encode_partition,
    escape_path_name,
)
from tests.laws.strategies_format import typed_rows


@given(typed_rows(max_columns=3), st.booleans())
def test_the_bytes_give_the_same_directory(
    case: tuple[list[DataType], list[tuple[object, ...]]], legacy: bool
) -> None:
    """Values → bytes → values → path equals values → path: readers that know only the bytes find the files."""
    types, rows = case
    no_name = ("BINARY", "VARBINARY") if legacy else ("TIMESTAMP_LTZ",)
    if any(t.root in no_name for t in types):
        return
    spec = PartitionSpec(tuple(f"k{i}" for i in range(len(types))), tuple(types), legacy_name=legacy)
    for row in rows:
        data = encode_partition(row, types)
        assert decode_partition(data, types) == row
        path = spec.path(row)
        assert spec.path_of_bytes(data) == path
        assert path.count("/") == len(types)
        assert all(level.split("=")[1] for level in path.split("/")[:-1])


@given(st.text(), st.text())
def test_escaping_is_one_to_one(left: str, right: str) -> None:
    """Different values never share a directory, because the escape sign itself is escaped."""
    assert (escape_path_name(left) == escape_path_name(right)) == (left == right)
    assert not set(escape_path_name(left)) & set("/\\=:\n\0")
