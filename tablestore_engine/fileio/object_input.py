"""A random-access file over ranged requests, as Arrow and Parquet readers want it.

Steps      1 the end of the file, with its size  2 on demand the ranges that a reader is about to need, together
           3 reads: from what is here, else one request for the range
INVARIANT  the object never changes (names are uuids), so ranges of several requests belong together.
Memory     the end, and what was asked for last.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pyarrow as pa

Range = tuple[int, int]  # first byte, and the byte behind the last one
ReadEnd = Callable[[int], tuple[int, bytes]]
ReadRanges = Callable[[Sequence[Range]], Sequence[bytes]]

TAIL_BYTES = 64 << 10  # the footer of most Parquet files, and the whole of small files
GAP_BYTES = 1 << 20  # bytes that are read along rather than asked around: as fast as a request of their own


class ObjectInput(io.RawIOBase):
    """`read_end` gives the file's size and its last bytes, `read_ranges` the bytes of ranges."""

    def __init__(self, read_end: ReadEnd, read_ranges: ReadRanges) -> None:
        super().__init__()
        self._read_ranges, self._at = read_ranges, 0
        self._size, tail = read_end(TAIL_BYTES)
        self._tail = (self._size - len(tail), tail)
        self._fetched: list[tuple[int, bytes]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        """Bytes from the begin."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def size(self) -> int:
        """Bytes of the object."""
        return self._size

    def fetch(self, ranges: Sequence[Range]) -> None:
        """Ask for all of these ranges that are not here, together; of what was fetched before the others are kept."""
        missing = [one for one in ranges if self._find(*one) is None]
        if missing:
            joined = join_ranges(missing)
            parts = self._read_ranges(joined)
            kept = [
                (first, part)
                for first, part in self._fetched
                if any(first <= start and end <= first + len(part) for start, end in ranges)
            ]
            self._fetched = [*kept, *((start, part) for (start, _), part in zip(joined, parts, strict=True))]

    def _find(self, start: int, end: int) -> bytes | None:
        for first, part in (self._tail, *self._fetched):
            if first <= start and end <= first + len(part):
                return part[start - first : end - first]
        return None

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes: of what is here already, else by one request."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        start, self._at = self._at, max(end, self._at)
        if start >= end:
            return b""
        found = self._find(start, end)
        return self._read_ranges([(start, end)])[0] if found is None else found

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # typeshed's buffer is wider
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class PrefetchInput(pa.PythonFile):  # type: ignore[misc]  # pyarrow has no types
    """An ObjectInput as Arrow's readers take it."""

    source: ObjectInput


def open_object(read_end: ReadEnd, read_ranges: ReadRanges) -> PrefetchInput:
    """Reads the end of the file. Raises what `read_end` raises."""
    source = ObjectInput(read_end, read_ranges)
    made = PrefetchInput(source, mode="r")
    made.source = source
    return made


def fetch_ranges(source: pa.NativeFile, ranges: Sequence[Range]) -> None:
    """Get ranges of an opened file into memory, in few requests; nothing to do where bytes are near."""
    if isinstance(source, PrefetchInput):
        source.source.fetch(ranges)


def join_ranges(ranges: Sequence[Range]) -> list[Range]:
    """Ascending, with neighbours joined across gaps of GAP_BYTES."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start - joined[-1][1] <= GAP_BYTES:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
