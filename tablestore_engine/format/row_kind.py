"""The four kinds of a changelog row, their bytes and their short texts (format.md#data-files).

INVARIANT  the numbers are on disk in `_VALUE_KIND` and in the header of a BinaryRow: never change one.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

import pyarrow as pa

ROW_KIND_COLUMN = "_ROW_KIND"


class RowKind(IntEnum):
    """What a row says about its key; the value is the byte on disk."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def short_string(self) -> str:
        """``+I``, ``-U``, ``+U`` or ``-D``."""
        return _SHORT[self.value]

    @property
    def is_add(self) -> bool:
        """Whether the row puts a value (+I, +U)."""
        return self in (RowKind.INSERT, RowKind.UPDATE_AFTER)

    @property
    def is_retract(self) -> bool:
        """Whether the row takes a value away (-U, -D)."""
        return not self.is_add


_SHORT = ("+I", "-U", "+U", "-D")


@cache
def short_strings() -> pa.StringArray:
    """The four short texts, at the places of their bytes. Made at first use: pyarrow then imports pandas."""
    return pa.array(_SHORT)
