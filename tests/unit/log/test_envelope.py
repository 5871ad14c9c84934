"""Rows to messages and back."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.log.decode import LogMessage, decode_rows
from tablestore_engine.log.json_values import json_texts
from tablestore_engine.log.message_envelope import (
    ChangelogMode,
    EncodedRows,
    encode_rows,
    plan_envelope,
    resolve_mode,
)
from tests.doses import examples

PLAIN = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])
DAY = dt.date(2024, 1, 31)


def keyed() -> TableSchema:
    """A table with a key of two columns, the second one a partition column."""
    return new_schema(PLAIN, primary_keys=["id", "day"], partition_keys=["day"])


def rows_of(kinds: list[int]) -> pa.Table:
    """One row per kind, ids counting from 0."""
    ids = list(range(len(kinds)))
    data = {"id": ids, "day": [DAY] * len(ids), "name": [f"n{i}" for i in ids]}
    return pa.table(data, PLAIN).append_column("_ROW_KIND", pa.array(kinds, pa.int8()))


def _messages(encoded: EncodedRows) -> list[LogMessage]:
    keys = encoded.keys or [None] * len(encoded)
    return [
        LogMessage(0, n, key, value, kind=RowKind(kind))
        for n, (key, value, kind) in enumerate(zip(keys, encoded.values, encoded.kinds, strict=True))
    ]


def test_upsert_sends_one_message_per_changed_key() -> None:
    """+I and +U are op c, -D is a tombstone, -U is not sent; keys hold the full primary key."""
    encoded = encode_rows(rows_of([0, 1, 2, 3]), plan_envelope(keyed(), ChangelogMode.AUTO))
    assert encoded.kinds == [0, 2, 3]
    assert encoded.keys == [b'{"id":%d,"day":"2024-01-31"}' % n for n in (0, 2, 3)]
    assert encoded.values == [
        b'{"before":null,"after":{"id":0,"day":"2024-01-31","name":"n0"},"op":"c"}',
        b'{"before":null,"after":{"id":2,"day":"2024-01-31","name":"n2"},"op":"c"}',
        None,
    ]


def test_all_sends_every_row_with_a_value() -> None:
    """In mode all -U and -D are op d with the row before; the key stays."""
    encoded = encode_rows(rows_of([1, 2, 3]), plan_envelope(keyed(), ChangelogMode.ALL))
    assert [json.loads(value or b"null")["op"] for value in encoded.values] == ["d", "c", "d"]
    assert json.loads(encoded.values[0] or b"") == {
        "before": {"id": 0, "day": "2024-01-31", "name": "n0"},
        "after": None,
        "op": "d",
    }
    assert encoded.keys is not None


def test_without_a_key_messages_have_no_key() -> None:
    """An append-only table sends values only, deletes of an overwrite included."""
    encoded = encode_rows(rows_of([0, 3]), plan_envelope(new_schema(PLAIN), ChangelogMode.AUTO))
    assert encoded.keys is None
    assert all(value is not None for value in encoded.values)


def test_upsert_without_a_key_is_refused() -> None:
    """There is nothing to upsert by: TS1722."""
    with pytest.raises(FixRequest, match="TS1722"):
        resolve_mode(ChangelogMode.UPSERT, is_keyed=False)


EVERY = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("f", pa.float32()),
        ("g", pa.float64()),
        ("price", pa.decimal128(38, 9)),
        ("day", pa.date32()),
        ("clock", pa.time32("ms")),
        ("at", pa.timestamp("us")),
        ("nano", pa.timestamp("ns")),
        ("zoned", pa.timestamp("ms", "UTC")),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.int32(), pa.decimal128(5, 1))),
        ("inner", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.date32()))])),
    ]
)
_DAYS = st.dates()
_VALUES = {
    "flag": st.booleans(),
    "small": st.integers(-(2**15), 2**15 - 1),
    "f": st.floats(width=32, allow_nan=False),
    "g": st.floats(allow_nan=False),
    "price": st.decimals(-(10**20), 10**20, places=9),
    "day": _DAYS,
    "clock": st.integers(0, 86_399_999),
    "at": st.integers(-62135596800 * 10**6, 253402300799 * 10**6),
    "nano": st.integers(-(2**62), 2**62),
    "zoned": st.integers(-62135596800 * 10**3, 253402300799 * 10**3),
    "name": st.text(),
    "raw": st.binary(),
    "tags": st.lists(st.none() | st.text(max_size=3), max_size=3),
    "counts": st.dictionaries(
        st.integers(-9, 9), st.none() | st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-1))
    ).map(lambda m: list(m.items())),
    "inner": st.fixed_dictionaries(
        {"a": st.none() | st.integers(-9, 9), "b": st.none() | st.lists(_DAYS, max_size=2)}
    ),
}


@settings(max_examples=examples(20, 30), deadline=None)
@given(data=st.data())
def test_decode_gives_back_what_was_encoded(data: st.DataObject) -> None:
    """decode(encode(rows)) = rows for every type and every kind, in mode all."""
    row = st.fixed_dictionaries(
        {"k": st.integers(-(2**63), 2**63 - 1)}
        | {name: st.none() | values for name, values in _VALUES.items()}
    )
    raw = data.draw(st.lists(row, max_size=5))
    kinds = data.draw(st.lists(st.integers(0, 3), min_size=len(raw), max_size=len(raw)))
    columns = [pa.array([r[f.name] for r in raw], f.type) for f in EVERY]
    table = pa.table(columns, EVERY).append_column("_ROW_KIND", pa.array(kinds, pa.int8()))
    schema = new_schema(EVERY, primary_keys=["k"])
    back = decode_rows(_messages(encode_rows(table, plan_envelope(schema, ChangelogMode.ALL))), schema)
    assert back.to_pydict() == table.to_pydict()
    assert [f.type for f in back.schema] == [f.type for f in table.schema]


def test_decode_a_tombstone_and_foreign_ops() -> None:
    """A tombstone sets the key columns; op r and u of other producers are read; headers may be missing."""
    row = '{"id":1,"day":"2024-01-31","name":"x"}'
    messages = [
        LogMessage(0, 0, b'{"id":7,"day":"2024-01-31"}', None),
        LogMessage(0, 1, None, f'{{"before":null,"after":{row},"op":"r"}}'.encode()),
        LogMessage(0, 2, None, f'{{"before":{row},"after":{row},"op":"u"}}'.encode()),
        LogMessage(0, 3, None, f'{{"before":{row},"after":null,"op":"d"}}'.encode()),
    ]
    table = decode_rows(messages, keyed())
    assert table["_ROW_KIND"].to_pylist() == [3, 0, 2, 3]
    assert table["id"].to_pylist() == [7, 1, 1, 1]
    assert table["name"].to_pylist() == [None, "x", "x", "x"]


@pytest.mark.parametrize(
    "value",
    [
        b"no json",
        b"[]",
        b'{"op":"x"}',
        b'{"before":null,"after":null,"op":"c"}',
        b'{"after":{"id":"z"},"op":"c"}',
    ],
)
def test_an_unreadable_message_is_named_by_its_offset(value: bytes) -> None:
    """Text that is no envelope, or does not fit the column, is TS1718."""
    with pytest.raises(FixData, match="TS1718"):
        decode_rows([LogMessage(0, 42, None, value)], keyed())


def test_the_widest_years_have_a_text() -> None:
    """The first and last day that the encoder accepts really have a text."""
    days = pa.array([-96464927, 95025871], pa.int32()).cast(pa.date32())
    assert json_texts(days).to_list() == ['"-262142-01-01"', '"+262141-12-31"']
