"""The token scanner: nothing is lost, and strings and comments hide what is in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.sql.scanner import (
    name_text,
    quote_name,
    quote_string,
    scan,
    significant,
    string_value,
)

_PIECES = [
    "'",
    '"',
    "`",
    "--",
    "/*",
    "*/",
    "\n",
    "\\",
    "a",
    "1",
    ".",
    "5",
    " ",
    "r'",
    "$$",
    "$t$",
    "e+",
    ",",
    "é",
    ";",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join) | st.text(max_size=40))
def test_tokens_rejoin(text: str) -> None:
    """Any text at all is cut into tokens that rejoin to it, each at its stated place."""
    tokens = scan(text)
    assert "".join(token.text for token in tokens) == text
    assert all(text[token.start : token.end] == token.text and token.text for token in tokens)


@settings(deadline=None)
@given(st.text(max_size=30))
def test_quoting_round_trip(value: str) -> None:
    """A quoted string or name is one token that stands for exactly the value."""
    (string,) = scan(quote_string(value))
    assert (string.kind, string_value(string)) == ("string", value)
    (name,) = scan(quote_name(value))
    assert (name.kind, name_text(name)) == ("quoted", value)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a /* b /* c */ d */ e", ["word a", "word e"]),
        ("a -- 'b\n'c'", ["word a", "string 'c'"]),
        ("'it''s' \"x\\\"y\"", ["string 'it''s'", 'string "x\\"y"']),
        (r"r'\' x", [r"string r'\'", "word x"]),
        ("`a``b`.c", ["quoted `a``b`", "operator .", "word c"]),
        ("1.5e-3 .5 10L 2020_t t1.5", ["number 1.5e-3", "number .5", "number 10L", "word 2020_t", "word t1",
                                        "operator .", "number 5"]),
        ("$a$ it's $$ $a$ z", ["string $a$ it's $$ $a$", "word z"]),
        ("a 'open", ["word a", "broken 'open"]),
        ("a /* open", ["word a", "broken /* open"]),
    ],
)  # fmt: skip
def test_lexical_rules(text: str, kinds: list[str]) -> None:
    """Each lexical rule of Spark that can hide or split a name is kept."""
    assert [f"{token.kind} {token.text}" for token in significant(scan(text))] == kinds
