"""JSON for the page: ASCII, exact, and safe inside an HTML element.

INVARIANT  the text has no `<`, `>` or `&`, and no character that ends a line of a script: it cannot leave its element.
INVARIANT  a whole number that a double cannot hold is text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tablestore_engine.runtime.json_plain import to_plain

_EXACT_MAX = 2**53
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def render_json(value: object) -> str:
    return json.dumps(_exact(to_plain(value)), allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _exact(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT_MAX:
        return str(value)
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items()}
    return [_exact(item) for item in value] if isinstance(value, list) else value
