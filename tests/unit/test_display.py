"""Text for people: nothing in it acts on a terminal, and every encoding can show it."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.display import fit, fit_json, lines, visible
from tablestore_engine.errors import FixRequest

_HOSTILE = {
    "escape": ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
    "line": ("a\nTS1000 forged\r\tb", "a\\nTS1000 forged\\r\\tb"),
    "c1": ("\x9b31m\x85", "\\x9b31m\\x85"),
    "bidi": ("\u202egpj.exe\u2066", "\\u202egpj.exe\\u2066"),
    "separators": ("a\u2028b\u00a0c\u200b", "a\\u2028b\\xa0c\\u200b"),
    "surrogate": ("\ud800", "\\ud800"),
    "tag": ("\U000e0041", "\\U000e0041"),
    "plain": ("Zürich 東京 😀", "Zürich 東京 😀"),
}


@pytest.mark.parametrize("case", _HOSTILE)
def test_what_a_terminal_acts_on_is_shown(case: str) -> None:
    """Escape sequences, line breaks, C1, bidi overrides, zero widths and lone surrogates; letters stay."""
    text, wanted = _HOSTILE[case]
    assert visible(text) == wanted


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    """Whatever the text: one line, no control or format character; a text without any is not touched."""
    shown = visible(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in shown)
    assert "".join(char for char in text if char.isprintable()) == shown or not text.isprintable()
    assert lines(text).split("\n") == [visible(part) for part in text.split("\n")]


@given(st.text(), st.sampled_from(["ascii", "latin-1", "cp1252", "utf-8", "cp437"]))
def test_what_fits_can_be_encoded(text: str, encoding: str) -> None:
    """No encoding ends in a UnicodeEncodeError, and JSON reads back the very text."""
    fit(lines(text), encoding).encode(encoding)
    document = fit_json(json.dumps({"a": text}, ensure_ascii=False, indent=2), encoding)
    assert visible(document.replace("\n", "")) == document.replace("\n", "")
    assert json.loads(document.encode(encoding).decode(encoding)) == {"a": text}


def test_marks_have_stand_ins() -> None:
    """What we draw ourselves has an ASCII form; letters are named; an unknown encoding is left alone."""
    assert fit("── 3 → 5 … ✓ é", "ascii") == "-- 3 -> 5 ... ok \\xe9"
    assert fit("· é", "latin-1") == "· é"
    assert fit("→", None) == fit("→", "no-such-encoding") == "→"


def test_errors_cannot_be_forged() -> None:
    """A name with line breaks and escapes stays inside its part of the message; the facts keep the name."""
    error = FixRequest("TS1000", "no table a\n  next: rm\x1b[2K", why="\u202e", fix="x\ry")
    assert str(error) == "TS1000 no table a\\n  next: rm\\x1b[2K\n  why: \\u202e\n  next: x\\ry"
    assert error.what == "no table a\n  next: rm\x1b[2K"
