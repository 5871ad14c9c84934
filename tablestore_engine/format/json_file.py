"""JSON of metadata files, from writers we do not know: parsed within limits, whatever the bytes are.

INVARIANT  memory and stack are bounded by the size of the file: depth, digits and length have limits.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

BYTES_MAX = 64 << 20
DEPTH_MAX = 100
_INT64 = range(-(2**63), 2**63)
_DIGITS_MAX = 20
DAMAGE = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip


def parse_object(data: bytes) -> dict[str, Any]:
    """The object. Raises ValueError, nothing else."""
    if len(data) > BYTES_MAX:
        raise ValueError(f"{len(data)} bytes are more than a metadata file may have ({BYTES_MAX})")
    try:
        value = json.loads(data, parse_int=_integer, parse_constant=_constant)
    except RecursionError:
        raise ValueError(f"values are nested more than {DEPTH_MAX} deep") from None
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is expected, got {type(value).__name__}")  # noqa: TRY004 - the one kind
    _check(value)
    return value


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS_MAX or int(digits) not in _INT64:
        raise ValueError(f"a number of {len(digits)} digits does not fit 64 bits")
    return int(digits)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _check(value: dict[str, Any]) -> None:
    """Depth, and texts that cannot be written again; without recursion."""
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, str):
            item.encode()  # a lone surrogate raises UnicodeEncodeError, a ValueError
            continue
        if depth > DEPTH_MAX:
            raise ValueError(f"values are nested more than {DEPTH_MAX} deep")
        if isinstance(item, dict):
            waiting += ((part, depth + 1) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            waiting += ((part, depth + 1) for part in item)
