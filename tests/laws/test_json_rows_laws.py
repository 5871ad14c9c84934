"""Many JSON messages at once are read as one by one, or not at all."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.log.decode import LogMessage, decode_rows
from tablestore_engine.log.followed_log import NO_SNAPSHOT, UNSAID, Messages
from tablestore_engine.log.log_formats import LogFormats, ValueFormat
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope
from tablestore_engine.log.message_rows import decode_messages, read_json_rows
from tests.doses import examples
from tests.unit.log.format_world import EVERY, KEY, rows

FLAT = [one.name for one in EVERY if not pa.types.is_nested(one.type)]
DEFAULT = LogFormats()
SCHEMA = new_schema(pa.schema([EVERY.field(name) for name in FLAT]), primary_keys=KEY)


def one_by_one(
    keys: list[bytes | None], values: list[bytes | None], schema: TableSchema, formats: LogFormats = DEFAULT
) -> pa.Table | str:
    """As log/decode.py reads them; the code of its refusal."""
    listed = [LogMessage(0, n, key, value) for n, (key, value) in enumerate(zip(keys, values, strict=True))]
    try:
        return decode_rows(listed, schema, formats)
    except FixData as error:
        return error.code


def bits(table: pa.Table) -> list[object]:
    """Values that tell −0.0 from 0.0."""
    return [
        (value, math.copysign(1, value)) if isinstance(value, float) else value
        for column in table.columns
        for value in column.to_pylist()
    ]


PLAIN = LogFormats(ValueFormat.JSON)
WRITTEN = [
    (ChangelogMode.UPSERT, LogFormats()), (ChangelogMode.ALL, LogFormats()), (ChangelogMode.UPSERT, PLAIN),
]  # fmt: skip


@given(rows(), st.sampled_from(WRITTEN))
@settings(max_examples=examples(20, 150), deadline=None)
def test_what_our_envelope_writes(table: pa.Table, how: tuple[ChangelogMode, LogFormats]) -> None:
    """Every type but nested ones, deletes as tombstones and with the row before: always at once, always the same."""
    table = table.select([*FLAT, ROW_KIND_COLUMN])
    mode, formats = how
    encoded = encode_rows(table, plan_envelope(SCHEMA, mode, formats))
    keys: list[bytes | None] = [*(encoded.keys or [])]
    at_once, slowly = (
        read_json_rows(keys, encoded.values, SCHEMA, formats),
        one_by_one(keys, encoded.values, SCHEMA, formats),
    )
    assert isinstance(slowly, pa.Table)
    if not encoded.values:
        assert at_once is None
    elif at_once is not None:
        assert at_once.schema.equals(slowly.schema)
        assert bits(at_once) == bits(slowly)
    else:
        assert any(
            not math.isfinite(x) for name in "fg" for x in table.column(name).to_pylist() if x is not None
        )


ROW = {"k": 1, "part": "a", "n": 5, "price": 1.5, "day": "2020-01-31", "flag": True, "name": "x"}
STRANGE = (
    None, 1, -1, 2**70, 1.5, 1e400, "", "5", "a\nb", "2020-13-01", "2020-01-31 25:00:00", True, [], {}, [1], {"a": 1},
)  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from([*FLAT, "other"]), st.sampled_from(STRANGE), max_size=2),
            st.sampled_from(["c", "r", "u", "d", "x", None]),
            st.sampled_from([None, 0, 2]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([DEFAULT, PLAIN]),
)
@settings(max_examples=examples(40, 300), deadline=None)
def test_what_anybody_writes(
    messages: list[tuple[dict[str, object], str | None, int | None]], formats: LogFormats
) -> None:
    """Wrong types, missing and unknown members, other words, line breaks: the same rows, or left to the slow way."""
    values: list[bytes | None] = []
    for changed, op, indent in messages:
        row = {**ROW, **changed}
        side = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
        envelope = row if formats is PLAIN else {**side, "op": op}
        values.append(json.dumps(envelope, indent=indent).encode())
    keys: list[bytes | None] = [b"{}"] * len(values)
    at_once = read_json_rows(keys, values, SCHEMA, formats)
    slowly = one_by_one(keys, values, SCHEMA, formats)
    if at_once is not None:
        assert isinstance(slowly, pa.Table)
        assert bits(at_once) == bits(slowly)


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b'{"after":{},"op":"c"}{"after":{},"op":"c"}', b"\xff", b"null"]
)
def test_what_is_no_message(value: bytes) -> None:
    """It is left to the slow way, which refuses it."""
    for formats in (DEFAULT, PLAIN):
        found = read_json_rows([b"{}"], [value], SCHEMA, formats)
        assert found is None or one_by_one([b"{}"], [value], SCHEMA, formats) != "TS1718"


def test_kinds_of_headers_go_before_those_of_values() -> None:
    """An update after is an insert by its value."""
    encoded = encode_rows(
        pa.table({"k": [1, 2], "part": ["a", "b"], "_ROW_KIND": pa.array([2, 0], pa.int8())}),
        plan_envelope(
            new_schema(pa.schema([EVERY.field("k"), EVERY.field("part")]), primary_keys=KEY),
            ChangelogMode.UPSERT,
        ),
    )
    schema = new_schema(pa.schema([EVERY.field("k"), EVERY.field("part")]), primary_keys=KEY)
    for kinds, seen in (([2, 0], [2, 0]), ([UNSAID, UNSAID], [0, 0])):
        messages = Messages(
            np.zeros(2, np.int64),
            np.arange(2),
            encoded.keys or [],
            encoded.values,
            np.array(kinds, np.int8),
            np.full(2, NO_SNAPSHOT),
            {0: 2},
        )
        assert decode_messages(messages, [schema], LogFormats()).column(ROW_KIND_COLUMN).to_pylist() == seen
