"""Many messages of Debezium at once are read as one by one, or not at all."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.ingest.change_event import ReadRules
from tablestore_engine.ingest.debezium import DebeziumJson
from tablestore_engine.ingest.debezium_batch_decode import read_at_once
from tablestore_engine.ingest.decoded_messages import DecodedMessages
from tablestore_engine.ingest.message_decoder import MessageDecoder
from tablestore_engine.ingest.target_columns import Known, plan_columns, shape_rows
from tablestore_engine.ingest.toast_placeholder import UNAVAILABLE
from tablestore_engine.log.message_source import RawMessages
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange
from tests.doses import cases, examples
from tests.unit.ingest.encoders import COLUMNS, SQL, Event, debezium_json
from tests.unit.ingest.histories import histories

TYPES = {name: parse_type(SQL[kind]) for name, kind in COLUMNS.items()}
Compared = tuple[pa.Table, list[bool], list[int], list[int], dict[str, int], dict[str, int]]


def raw_of(messages: list[tuple[bytes | None, bytes | None]]) -> RawMessages:
    """In one partition."""
    count = len(messages)
    keys, values = [key for key, _ in messages], [value for _, value in messages]
    return RawMessages(np.zeros(count, np.int64), np.arange(count), keys, values, "0")


def compared(changes: DecodedMessages, rules: ReadRules) -> Compared | str:
    """What a table would get, and what it would be told; the code where it refuses."""
    try:
        return _compared(changes, rules)
    except (FixRequest, FixData) as error:
        return error.code


def _compared(changes: DecodedMessages, rules: ReadRules) -> Compared:
    fields = [DataField(0, name, kind) for name, kind in rules.types.items()]
    known = Known(fields, {}, OnSchemaChange.APPEND_NEW_COLUMNS, "t", is_new=True)
    columns = sorted(plan_columns(changes, known, str), key=lambda one: one.name)
    shaped = shape_rows(changes.parts, columns, rules.key, frozenset())
    dead = sorted({one.number for one in (*shaped.dead, *changes.dead)})
    return (
        shaped.rows,
        shaped.is_put.tolist(),
        shaped.numbers.tolist(),
        dead,
        dict(changes.ignored),
        changes.tables,
    )


def both(
    messages: list[tuple[bytes | None, bytes | None]], rules: ReadRules
) -> tuple[Compared | str | None, Compared | str]:
    """At once (None: not answered), and one by one; schemas are met before, as in a run."""
    raw, reader = raw_of(messages), DebeziumJson()
    for key, value in messages:
        try:
            reader.read(key, value, rules.key)
        except (ValueError, KeyError, TypeError):
            continue
    decoder = MessageDecoder(reader, rules)
    slow = DecodedMessages()
    groups: dict[int, Any] = {}
    for number in range(len(raw)):
        decoder._one(raw, number, slow, groups)
    for group in groups.values():
        decoder._columns(group, slow)
    found, alone = read_at_once(raw, 0, len(raw), reader, rules)
    if found is None:
        return None, compared(slow, rules)
    groups = {}
    for number in alone:
        decoder._one(raw, number, found, groups)
    for group in groups.values():
        decoder._columns(group, found)
    return compared(found, rules), compared(slow, rules)


def check_same(at_once: Compared | str, slowly: Compared | str) -> None:
    """All of it."""
    if isinstance(at_once, str) or isinstance(slowly, str):
        assert at_once == slowly
        return
    rows, other = at_once[0], slowly[0]
    assert rows.schema.equals(other.schema)
    assert rows.to_pylist() == other.to_pylist()
    assert at_once[1:] == slowly[1:]


@pytest.mark.parametrize("in_one", cases([True, False], 1))
@pytest.mark.parametrize("schemas", [True, False])
@given(events=histories())
@settings(max_examples=examples(15, 100), deadline=None)
def test_what_debezium_writes(schemas: bool, in_one: bool, events: list[Event]) -> None:
    """Every type of the sample, deletes, tombstones, moved keys: always at once, always the same."""
    messages = [
        one for event in events for one in debezium_json(event, COLUMNS, schemas=schemas, in_one=in_one)
    ]
    rules = ReadRules(key=("id",), decimals=None if schemas else "base64", types={} if schemas else TYPES)
    if not any(value is not None for _, value in messages):
        return
    at_once, slowly = both(messages, rules)
    assert at_once is not None
    check_same(at_once, slowly)


ROW = {
    "id": 1, "name": "x", "price": "A3g=", "at": 5, "day": 3, "flag": True, "data": "AA==", "ratio": 1.5,
}  # fmt: skip
STRANGE = (
    None, 1, -1, 2**70, 1.5, 1e400, "", "5", "a\nb", "2020-13-01", "2020-01-31 25:00:00", True, [], {}, [1],
    UNAVAILABLE, "A" * 24, "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", 99999999999,
)  # fmt: skip
SOURCES = (None, {}, {"table": "orders", "schema": "public"}, {"table": "o", "db": "d"}, {"table": "x"}, 5)


def envelope(row: dict[str, Any], op: Any, update: bool, source: Any) -> dict[str, Any]:
    """Of one row."""
    sides = {"before": row, "after": None} if op == "d" else {"before": row if update else None, "after": row}
    return {**sides, "op": op, "source": source}


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from([*COLUMNS, "other"]), st.sampled_from(STRANGE), max_size=2),
            st.sampled_from(["c", "r", "u", "d", "t", "m", "x", None]),
            st.sampled_from([0, 1, 2, 7]),
            st.sampled_from(SOURCES),
            st.sampled_from([None, 0, 2]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([None, "base64", "text"]),
    st.sampled_from([None, "public.*"]),
)
@settings(max_examples=examples(90, 400), deadline=None)
def test_what_anybody_writes(
    messages: list[tuple[dict[str, Any], str | None, int, Any, int | None]],
    decimals: str | None,
    source_table: str | None,
) -> None:
    """Wrong types, missing and unknown members, other words, placeholders, line breaks: the same, or left alone."""
    told: list[tuple[bytes | None, bytes | None]] = []
    for changed, op, before, source, indent in messages:
        value = envelope({**ROW, **changed}, op, update=before > 0, source=source)
        if before > 1 and value["before"]:
            value["before"] = {**value["before"], "id": before}
        told.append((b'{"id":1}', json.dumps(value, indent=indent).encode()))
    rules = ReadRules(key=("id",), decimals=decimals, types=TYPES, source_table=source_table)
    at_once, slowly = both(told, rules)
    if at_once is not None:
        check_same(at_once, slowly)


@pytest.mark.parametrize(
    "value",
    [b"", b"{", b"[]", b'{"op":"c"}{"op":"c"}', b"\xff", b"null", b"{}", b'{"schema":{},"payload":null}'],
)
def test_what_is_no_message(value: bytes) -> None:
    """It is left to the slow way, which says what is wrong."""
    at_once, slowly = both([(b"{}", value)], ReadRules(key=("id",), types=TYPES))
    assert at_once is None
    assert slowly[3] == [0] or value == b'{"schema":{},"payload":null}'


def test_two_messages_are_never_taken_for_one() -> None:
    """Texts whose braces only fit together are no messages."""
    texts = [b'{"op":"c","x":[{}', b'{}],"after":{"id":1}}', b'{"op":"c","after":{"id":2}}{"op":"c"}']
    at_once, slowly = both([(None, one) for one in texts], ReadRules(key=("id",), types=TYPES))
    assert at_once is None
    assert slowly[3] == [0, 1, 2]


@pytest.mark.parametrize(
    "value",
    [
        b'{"before":null,"after":{"id":1,"name":",\\"source\\":"},"source":{"table":"o"},"op":"c"}',
        b'{"before":null,"after":{"id":1},"source":{"table":"o"},"op":"c","after":{"id":2}}',
        b'{"before":null,"after":{"id":1,"name":"__debezium_unavailable_value"},"source":{"table":"o"},"op":"u"}',
        b'{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"__debezium_unavailable_value"},"source":{},"op":"u"}',
        b'{"before":null,"after":{"id":1},"source":{"table":"o"},"op":"c","after":null}',
        b'{"op":"c","after":{"id":1},"source":{"table":"o"}}',
        b'{"op":"d","after":{"id":1},"source":{"table":"o"},"op":"c"}',
        b'{"after":{"id":1,"source":"x"},"op":"c","before":null}',
        b'{"after":{"id":1,"name":"y","source":"x"},"source":{"table":"o"},"op":"c","before":null}',
        b'{,"source":{"table":"o"},"op":"c"}',
        b'{"source":{"table":"o"},"before":null,"after":{"id":1},"op":"c"}',
        b'{"after":{"id":1},"source":{"table":"o","source":{"table":"p"}},"op":"c"}',
        b'{"after":{"id":1},"source":{"table":"o"},"source":{"table":"p"},"op":"c"}',
    ],
)
def test_where_a_message_is_cut(value: bytes) -> None:
    """Wherever its source stands, and whatever is called so: as one by one, or left alone."""
    types = {**TYPES, "source": TYPES["name"]}
    at_once, slowly = both([(None, value)], ReadRules(key=("id",), types=types))
    if at_once is not None:
        check_same(at_once, slowly)
