"""The words of dead rows as one value of a plan, in the bytes that Spark keeps a map in.

Names      DeadWords    value_of(): files → their map as an object of the JVM; some are kept
           map_layout   the same in bytes: file name → array of words
           MAX_WORDS    more are read by a subquery, as the view has it
Layout     map: bytes of the keys (int64), keys, values · array: count (int64), NULL bits in whole words, then BIGINTs,
           or for each item `offset << 32 | size` and after them the items, each padded to 8 bytes. Little-endian.
WHY        the view's subquery is a job of its own: 50 ms for each query, for the same value each time.
INVARIANT  every file of a value has all its words, and a value has every file that the plan reads: a missing word hides
           live rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tablestore_engine.spark.spark_inner import Jvm, SparkInner
from tablestore_engine.spark.view_sql import WORD_BITS, words_of
from tablestore_engine.store.stored_file import StoredFile

MAX_WORDS = 1 << 17  # 1 MiB, 8.4 M rows: it goes with each task
_KEPT = 8  # values: tables that are asked again and again
_ITEM = np.dtype("<i8")


class DeadWords:
    """Shared by the queries of a session; what two threads make at once is made twice."""

    def __init__(self, inner: SparkInner) -> None:
        self._inner = inner
        self._kept: dict[str, Jvm] = {}

    def value_of(self, name: str, files: Sequence[StoredFile], every: Sequence[StoredFile]) -> Jvm | None:
        """The map of `every` file of a hidden table if it may be a value, else of `files` only; None: neither may."""
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        if _count_words(every) > MAX_WORDS:
            return self._made(files) if _count_words(files) <= MAX_WORDS else None
        value = self._made(every)
        self._kept[name] = value
        for oldest in list(self._kept)[:-_KEPT]:
            self._kept.pop(oldest, None)
        return value

    def _made(self, files: Sequence[StoredFile]) -> Jvm:
        return self._inner.map_value(map_layout(files))


def map_layout(files: Sequence[StoredFile]) -> bytes:
    """Spark looks a name up from the front, for each row: the files with the most rows come first."""
    ordered = sorted(files, key=lambda file: file.meta.row_count, reverse=True)
    keys = _array_of([file.meta.file_name.encode() for file in ordered])
    values = _array_of([_longs(words_of(file)) for file in ordered])
    return _int64(len(keys)) + keys + values


def _count_words(files: Sequence[StoredFile]) -> int:
    return sum(-(-file.meta.row_count // WORD_BITS) for file in files)


def _longs(words: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bytes:
    return _int64(len(words)) + _no_nulls(len(words)) + words.astype(_ITEM, copy=False).tobytes()


def _array_of(items: Sequence[bytes]) -> bytes:
    start = 8 + len(_no_nulls(len(items))) + 8 * len(items)
    padded = [item.ljust(-(-len(item) // 8) * 8, b"\0") for item in items]
    offsets = np.cumsum([start, *map(len, padded)])[:-1]
    sizes = np.array([len(item) for item in items], np.int64)
    slots = ((offsets.astype(np.int64) << 32) | sizes).astype(_ITEM)
    return b"".join([_int64(len(items)), _no_nulls(len(items)), slots.tobytes(), *padded])


def _no_nulls(count: int) -> bytes:
    return bytes(-(-count // 64) * 8)


def _int64(value: int) -> bytes:
    return value.to_bytes(8, "little")
