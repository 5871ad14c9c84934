"""Row kinds: numbers on disk and short texts."""

from __future__ import annotations

from tablestore_engine.format.row_kind import RowKind


def test_numbers_and_texts_are_those_on_disk() -> None:
    """The four numbers of `_VALUE_KIND` and the four texts never change."""
    assert [(k.value, k.short_string) for k in RowKind] == [(0, "+I"), (1, "-U"), (2, "+U"), (3, "-D")]
    assert [k.is_add for k in RowKind] == [True, False, True, False]
    assert [k.is_retract for k in RowKind] == [False, True, False, True]
