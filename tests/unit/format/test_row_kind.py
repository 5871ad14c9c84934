"""Row kinds: numbers on disk and short texts."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixData
from tablestore_engine.format.row_kind import RowKind


def test_numbers_and_texts_are_those_on_disk() -> None:
    """The four numbers of `_VALUE_KIND` and the four texts never change."""
    assert [(k.value, k.short_string) for k in RowKind] == [(0, "+I"), (1, "-U"), (2, "+U"), (3, "-D")]
    assert [k.is_add for k in RowKind] == [True, False, True, False]
    assert [k.is_retract for k in RowKind] == [False, True, False, True]


def test_short_text_is_read_back() -> None:
    """Each short text gives its kind, in any case; other text is TS1106."""
    assert [RowKind.from_short_string(t) for t in ("+i", "-U", "+u", "-D")] == list(RowKind)
    with pytest.raises(FixData):
        RowKind.from_short_string("D")
