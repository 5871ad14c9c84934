"""Records of Kafka's topic of transactions: read as Kafka writes them, whatever else a version adds to them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.log.kafka.transaction_state import (
    STATES,
    TransactionState,
    decode_key,
    decode_state,
    partition_of,
)

PARTITIONS = st.none() | st.lists(
    st.tuples(st.text("abc-", min_size=1, max_size=200), st.lists(st.integers(0, 2**31 - 1), max_size=5)),
    max_size=4,
)
FACTS = st.builds(
    TransactionState,
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**15 - 1),
    st.sampled_from(STATES),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**62),
    st.integers(-1, 2**62),
)


def varint(number: int) -> bytes:
    """As compact arrays and texts have their lengths."""
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def record(facts: TransactionState, partitions: list[tuple[str, list[int]]] | None, version: int) -> bytes:
    """TransactionLogValue.json, written from its description; version 1 with two tagged fields at its end."""
    out = struct.pack(
        ">hqhib", version, facts.producer_id, facts.epoch, facts.timeout_ms, STATES.index(facts.state)
    )
    if version == 0:
        out += struct.pack(">i", -1 if partitions is None else len(partitions))
        for topic, ids in partitions or []:
            out += struct.pack(">h", len(topic)) + topic.encode()
            out += struct.pack(f">i{len(ids)}i", len(ids), *ids)
    else:
        out += varint(0 if partitions is None else len(partitions) + 1)
        for topic, ids in partitions or []:
            out += varint(len(topic) + 1) + topic.encode()
            out += varint(len(ids) + 1) + struct.pack(f">{len(ids)}i", *ids) + varint(0)
    out += struct.pack(">qq", facts.changed_ms, facts.started_ms)
    return out if version == 0 else out + varint(2) + b"\x00\x08" + bytes(8) + b"\x02\x02" + bytes(2)


@given(FACTS, PARTITIONS, st.integers(0, 1))
def test_both_versions_give_what_was_written(
    facts: TransactionState, partitions: list[tuple[str, list[int]]] | None, version: int
) -> None:
    """Whatever partitions stand between, null included, and whatever tagged fields come behind."""
    assert decode_state(record(facts, partitions, version)) == facts


@given(FACTS, PARTITIONS, st.integers(0, 1), st.data())
def test_what_is_cut_off_or_of_another_version_is_not_guessed(
    facts: TransactionState, partitions: list[tuple[str, list[int]]] | None, version: int, data: st.DataObject
) -> None:
    """None, never an exception and never half of it."""
    whole = record(facts, partitions, version)
    end = len(whole) - (0 if version == 0 else 16)
    cut = data.draw(st.integers(0, end - 1))
    assert decode_state(whole[:cut]) is None
    assert decode_state(struct.pack(">h", 7) + whole[2:]) is None
    assert decode_state(None) is None


@given(st.binary(max_size=60))
def test_no_bytes_break_the_readers(data: bytes) -> None:
    """Records that somebody else wrote."""
    assert decode_state(data) is None or len(data) > 30
    assert decode_key(data) is None or data[:2] == b"\x00\x00"


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 0), ("Hello World", 862545276)],
)
def test_where_the_coordinator_keeps_an_id(text: str, hashed: int) -> None:
    """Java's String.hashCode, its absolute value, and 0 for the one that has none."""
    for partitions in (1, 3, 50, 2**31):
        assert partition_of(text, partitions) == hashed % partitions


def test_keys() -> None:
    """Version 0: a text with its length."""
    assert decode_key(b"\x00\x00\x00\x04ts-1") == "ts-1"
    assert decode_key(b"\x00\x01\x00\x04ts-1") is None
    assert decode_key(b"\x00\x00\x00\x09ts-1") is None
    assert decode_key(None) is None


def test_what_is_open() -> None:
    """From the first row until its end is written everywhere."""
    at = {name: TransactionState(1, 1, name, 1, 1, 1).is_open for name in STATES}
    assert {name for name, is_open in at.items() if is_open} == {
        "ongoing", "prepare commit", "prepare abort", "prepare fence",
    }  # fmt: skip
