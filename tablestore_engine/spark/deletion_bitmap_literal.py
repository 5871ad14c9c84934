"""Deletion bitmaps as one literal of an analyzed plan, in the bytes in which Spark keeps an array of 64-bit words.

Layout     count (int64), NULL bits in whole words, then BIGINTs. Little-endian.
WHY        the view's subquery is a job of its own: 50 ms for each query, for the same value each time.
INVARIANT  a value has the words of all files that its plan reads, each where its folder says (linked_files): another
           place, or a missing word, hides live rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tablestore_engine.spark.spark_internals import Jvm, SparkInner
from tablestore_engine.spark.view_sql import word_count, words_of
from tablestore_engine.store.files.stored_file import StoredFile

MAX_WORDS = 1 << 17  # 1 MiB, 8.4 M rows: it goes with each task
_KEPT = 8  # values: tables that are asked again and again


class DeletionBitmapLiteral:
    """Shared by the queries of a session; what two threads make at once is made twice."""

    def __init__(self, inner: SparkInner) -> None:
        self._inner = inner
        self._kept: dict[str, Jvm] = {}

    def value_of(self, name: str, files: Sequence[StoredFile], *, is_whole: bool) -> Jvm | None:
        """The words of these files, None when they are too many. `is_whole`: all of the hidden table of that name."""
        kept = self._kept.get(name) if is_whole else None
        if kept is not None:
            return kept
        if not fits_literal(files):
            return None
        value = self._inner.array_value(array_layout(files))
        if is_whole:
            self._kept[name] = value
            for oldest in list(self._kept)[:-_KEPT]:
                self._kept.pop(oldest, None)
        return value


def fits_literal(files: Sequence[StoredFile]) -> bool:
    """Whether their words are few enough for a literal; with more a subquery reads them, as the view does."""
    return sum(word_count(file) for file in files) <= MAX_WORDS


def array_layout(files: Sequence[StoredFile]) -> bytes:
    """Every file has all its words, in the order given."""
    words = np.concatenate([words_of(file) for file in files])
    no_nulls = bytes(-(-len(words) // 64) * 8)
    return len(words).to_bytes(8, "little") + no_nulls + words.astype("<i8", copy=False).tobytes()
