"""Positions as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.stream.position import LogPlace, Part, Position, Seen, decode_position, encode_position

POSITION = Position("t", 8, Part.CHANGES, 12, Seen(8, "u"))
SEEN = st.builds(Seen, st.integers(0, 2**62), st.text())
OFFSETS = st.dictionaries(st.integers(0, 99), st.integers(0, 2**62))
PLACES = st.builds(
    LogPlace, st.text(), st.text(), OFFSETS, st.integers(0, 2**62), st.none() | st.integers(0, 99)
)


@given(
    st.builds(
        Position,
        st.text(),
        st.integers(1, 2**62),
        st.sampled_from([Part.CHANGES, Part.FULL]),
        st.integers(0, 2**62),
        SEEN,
    )
    | st.builds(Position, st.text(), st.integers(1, 9))
    | st.builds(
        Position, st.text(), st.integers(0, 9), st.just(Part.LOG), st.integers(0, 1), st.none() | SEEN, PLACES
    )
)
def test_text_and_back(position: Position) -> None:
    """One line of JSON that says it all."""
    text = encode_position(position)
    assert "\n" not in text
    assert decode_position(text) == position


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"snapshot": 0},
        {"snapshot": "8"},
        {"snapshot": True},
        {"rows": -1},
        {"rows": 1.5},
        {"part": "both"},
        {"part": "log"},
        {"part": "log", "log": {"id": "a", "beginning": "0@", "next": {"0": -1}}},
        {"seen": {"snapshot": 8}},
        {"seen": "8"},
        {"seen": None},
    ],
)
def test_a_text_that_is_none(change: dict[str, object]) -> None:
    """TS1334 instead of a guess; within a snapshot it has to say which one that was."""
    with pytest.raises(FixRequest, match="TS1334"):
        decode_position(json.dumps({**json.loads(encode_position(POSITION)), **change}))


@pytest.mark.parametrize("text", ["", "{", "[]", "8", "{}", '{"version": 1}', "\ud800"])
def test_no_json_of_ours(text: str) -> None:
    """Any text."""
    with pytest.raises(FixRequest, match="TS1334"):
        decode_position(text)


def test_order() -> None:
    """Changes of N, rows of N, changes of N + 1."""
    order = [
        Position("t", 3, Part.CHANGES, 0),
        Position("t", 3, Part.CHANGES, 5),
        Position("t", 3, Part.FULL, 0),
        Position("t", 3, Part.FULL, 1),
        Position("t", 4, Part.CHANGES, 0),
    ]
    assert sorted(order, key=lambda one: one.order) == order
    assert len({one.order for one in order}) == len(order)
