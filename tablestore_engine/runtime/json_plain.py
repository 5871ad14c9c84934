"""Values of rows as JSON can hold them: for documents of commands, pages, and rows stored with a failed test."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal

from tablestore_engine.runtime.moments import datetime_text


def to_plain(value: object) -> object:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return datetime_text(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if hasattr(value, "asDict"):  # a Spark Row: a tuple that knows its names
        return to_plain(value.asDict())
    if isinstance(value, Iterable):
        return [to_plain(item) for item in value]
    return str(value)


def cell_text(value: object, most: int) -> str | None:
    """One value as text of at most `most` characters, cut with an ellipsis; None for NULL."""
    plain = to_plain(value)
    if plain is None:
        return None
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 1] + "…"
