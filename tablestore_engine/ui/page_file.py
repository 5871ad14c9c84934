"""The page as one HTML document: style and script inline, allowed by their hashes, and data as JSON.

INVARIANT  the document is ASCII: no encoding of a terminal or a file changes it.
INVARIANT  nothing is loaded from elsewhere: the policy allows the inline style and script by hash, data: images, and
           with `connects` requests to the server that the page came from. Inline handlers and eval are refused.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from tablestore_engine.ui.page_json import render_json

_SCRIPTS = ("elements.js", "pictures.js", "sections.js", "page.js")


@cache
def _asset(name: str) -> str:
    return files("tablestore_engine.ui").joinpath("assets", name).read_text("utf-8")


@cache
def _style() -> str:
    return _asset("page.css")


@cache
def _script() -> str:
    text = "\n".join(_asset(name) for name in _SCRIPTS)
    return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in text)


def policy(*, connects: bool) -> str:
    """Content-Security-Policy; `connects`: the page asks its server for data."""
    parts = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_hash(_script())}'",
        "style-src": f"'sha256-{_hash(_style())}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        **({"connect-src": "'self'"} if connects else {}),
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def render_page(data: object, *, connects: bool) -> str:
    """The document. `data` is what the script finds in it."""
    page = _asset("page.html")
    values = {
        "policy": policy(connects=connects),
        "style": _style(),
        "data": render_json(data),
        "script": _script(),
    }
    before, *rest = page.split("{{")
    found = [before]
    for piece in rest:  # each place once, so that a value with braces is never a place
        name, _, after = piece.partition("}}")
        found += [values[name], after]
    return "".join(found)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
