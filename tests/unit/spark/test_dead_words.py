"""map_layout: the bytes of a map as Spark keeps it, read again by an independent reader."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from pyroaring import BitMap

from tablestore_engine.spark.dead_words import map_layout


@dataclass(frozen=True)
class _Meta:
    file_name: str
    row_count: int


@dataclass(frozen=True)
class _File:
    meta: _Meta
    deleted: BitMap


def _int64(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<q", data, at)[0])


def _items(data: bytes) -> list[bytes]:
    count = _int64(data, 0)
    slots = 8 + (count + 63) // 64 * 8
    assert not any(data[8:slots])
    found = [_int64(data, slots + 8 * at) for at in range(count)]
    return [data[one >> 32 : (one >> 32) + (one & 0xFFFFFFFF)] for one in found]


@pytest.mark.parametrize("files", [1, 63, 64, 65, 130])
def test_every_row_of_every_file_has_its_bit(files: int) -> None:
    """Names of all lengths, rows around the end of a word, files around the end of a word of NULL bits."""
    given = [
        _File(_Meta("n" * (1 + at % 17) + str(at), 1 + at % 130), BitMap([at % (1 + at % 130)]))
        for at in range(files)
    ]
    data = map_layout(given)  # type: ignore[arg-type]  # it asks for names, counts and positions only
    keys, values = data[8 : 8 + _int64(data, 0)], data[8 + _int64(data, 0) :]
    found = {}
    for name, item in zip(_items(keys), _items(values), strict=True):
        count = _int64(item, 0)
        start = 8 + (count + 63) // 64 * 8
        words = [_int64(item, start + 8 * at) for at in range(count)]
        assert len(item) == start + 8 * count
        found[name.decode()] = {
            64 * w + b for w, word in enumerate(words) for b in range(64) if word >> b & 1
        }
        assert count == -(-next(f for f in given if f.meta.file_name == name.decode()).meta.row_count // 64)
    assert found == {file.meta.file_name: set(file.deleted) for file in given}
    assert len(data) % 8 == 0
