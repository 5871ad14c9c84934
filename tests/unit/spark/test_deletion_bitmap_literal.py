"""array_layout: the bytes of an array as Spark keeps it, read again by an independent reader; what is kept."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from pyroaring import BitMap

from tablestore_engine.spark import deletion_bitmap_literal
from tablestore_engine.spark.deletion_bitmap_literal import DeletionBitmapLiteral, array_layout


@dataclass(frozen=True)
class _Meta:
    file_name: str
    row_count: int


@dataclass(frozen=True)
class _File:
    meta: _Meta
    deleted: BitMap


class _Inner:
    """Stands for the JVM: gives the bytes back."""

    def array_value(self, layout: bytes) -> bytes:
        return layout


def _file(name: str, rows: int, *dead: int) -> _File:
    return _File(_Meta(name, rows), BitMap(dead))


@pytest.mark.parametrize("files", [1, 63, 64, 65, 130])
def test_every_row_of_every_file_has_its_bit(files: int) -> None:
    """Rows around the end of a word, words around the end of a word of NULL bits, each file behind the one before."""
    given = [_file(f"n{at}", 1 + at % 130, at % (1 + at % 130)) for at in range(files)]
    data = array_layout(given)  # type: ignore[arg-type]  # it asks for counts and positions only
    (count,) = struct.unpack_from("<q", data)
    start = 8 + (count + 63) // 64 * 8
    assert not any(data[8:start])
    assert len(data) == start + 8 * count
    words = struct.unpack_from(f"<{count}q", data, start)
    first = 0
    for file in given:
        following = first + -(-file.meta.row_count // 64)
        bits = {
            64 * w + b for w, word in enumerate(words[first:following]) for b in range(64) if word >> b & 1
        }
        assert bits == set(file.deleted)
        first = following
    assert first == count


def test_words_of_whole_tables_are_kept_and_those_of_parts_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has its own numbers; too many words are no value, and the oldest tables are forgotten."""
    words = DeletionBitmapLiteral(_Inner())  # type: ignore[arg-type]
    both, one = [_file("a", 64, 1), _file("b", 64, 2)], [_file("b", 64, 2)]
    whole = words.value_of("f", both, is_whole=True)  # type: ignore[arg-type]
    assert words.value_of("f", one, is_whole=False) == array_layout(one) != whole  # type: ignore[arg-type]
    assert words.value_of("f", both, is_whole=True) is whole  # type: ignore[arg-type]
    for number in range(deletion_bitmap_literal._KEPT):
        words.value_of(f"g{number}", one, is_whole=True)  # type: ignore[arg-type]
    assert words.value_of("f", both, is_whole=True) is not whole  # type: ignore[arg-type]
    monkeypatch.setattr(deletion_bitmap_literal, "MAX_WORDS", 1)
    assert words.value_of("h", both, is_whole=True) is None  # type: ignore[arg-type]
