"""Laws of BinaryRow: round trip, canonical bytes, and independence of fields."""

from __future__ import annotations

from hypothesis import given

from tablestore_engine.format.binary_row import decode_row, encode_bare_row, encode_row, header_bytes
from tablestore_engine.format.data_type import DataType
from tests.laws.strategies_format import typed_rows


@given(typed_rows())
def test_decoding_gives_the_values_back(case: tuple[list[DataType], list[tuple[object, ...]]]) -> None:
    """Whatever is encoded comes back equal, and encodes to the same bytes again (canonical form)."""
    types, rows = case
    for row in rows:
        data = encode_row(row, types)
        assert decode_row(data, types) == row
        assert encode_row(decode_row(data, types), types) == data


@given(typed_rows())
def test_rows_are_whole_words_and_null_bits_say_which_are_null(
    case: tuple[list[DataType], list[tuple[object, ...]]],
) -> None:
    """A row is a multiple of 8 bytes, starts with row kind 0, and has exactly the null bits of its nulls."""
    types, rows = case
    for row in rows:
        data = encode_bare_row(row, types)
        assert len(data) % 8 == 0
        bits = int.from_bytes(data[: header_bytes(len(types))], "little")
        assert bits == sum(1 << (8 + i) for i, value in enumerate(row) if value is None)
