r"""Text for people: characters that act on a terminal are shown, not sent; what an encoding lacks gets a stand-in.

Names      visible()     names, comments, values, parts of a message: one line, controls as \\n \\x1b \\u202e
           lines()       whole output of ours: the same, but its line breaks stay
           fit()         the marks that we draw as ASCII where the encoding lacks them, all else as \\xfc \\u6771
           shown()       lines that fit: what is printed
           fit_json()    a JSON document that says the same with \\u escapes for both
INVARIANT  every other module that shows text goes through here; data (files, topics, query results) never does.
WHY        a comment `\\x1b]0;…` or a name with a bidi override comes with a warehouse and would act in the terminal
           of who lists it; a line break would forge a line of ours. `str.isprintable` is the rule: it leaves out
           controls (C0, DEL, C1), format characters (bidi, zero width), separators but the blank, lone surrogates.
"""

from __future__ import annotations

import re

_MARKS = {
    "─": "-", "│": "|", "→": "->", "…": "...", "·": "-", "✓": "ok", "✗": "x", "█": "#", "▉": "#", "▊": "#", "▋": "#",
    "▌": "=", "▍": "=", "▎": "-", "▏": "-", "×": "x", "–": "-", "—": "-", "≥": ">=", "≤": "<=",
}  # fmt: skip
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_JSON_LAYOUT = "\n"


def visible(text: str) -> str:
    """The text in one line, with nothing in it that a terminal acts on."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def lines(text: str) -> str:
    """The same line by line."""
    return "\n".join(map(visible, text.split("\n")))


def fit(text: str, encoding: str | None) -> str:
    """The text with only such characters as `encoding` has; None, or one that Python lacks, has all."""
    if _has(encoding, text):
        return text
    return "".join(char if _has(encoding, char) else _MARKS.get(char) or _escape(char) for char in text)


def shown(text: str, encoding: str | None) -> str:
    """Output of ours, as a stream of this encoding gets it."""
    return fit(lines(text), encoding)


def fit_json(document: str, encoding: str | None) -> str:
    r"""JSON text whose strings name by \\uXXXX what must not or cannot be shown; it reads back the same."""
    shown = "".join(
        char if char == _JSON_LAYOUT or char.isprintable() else _json_escape(char) for char in document
    )
    if _has(encoding, shown):
        return shown
    return re.sub(r"[^\x00-\x7f]", lambda found: _json_escape(found[0]), shown)


def _has(encoding: str | None, text: str) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    except LookupError:
        return True
    return True


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
