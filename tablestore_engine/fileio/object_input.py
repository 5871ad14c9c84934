"""A random-access file over ranged requests, as Arrow and Parquet readers want it.

INVARIANT  the object never changes (names are uuids), so ranges of several requests belong together.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TypeVar

import obstore
from obstore.exceptions import BaseError

from tablestore_engine.fileio.object_clients import ObjectStore
from tablestore_engine.fileio.object_errors import is_range_refused

T = TypeVar("T")
_TAIL = 64 << 10  # the footer of most Parquet files, and the whole of small files


class ObjectInput(io.RawIOBase):
    """`ask` runs a request on (store, key), repeated where the answer was lost."""

    def __init__(
        self, ask: Callable[[Callable[[ObjectStore, str], object]], object], *, knows_suffixes: bool
    ) -> None:
        super().__init__()
        self._ask, self._at = ask, 0
        self._size, self._tail = self._open(knows_suffixes=knows_suffixes)

    def _open(self, *, knows_suffixes: bool) -> tuple[int, bytes]:
        def end(store: ObjectStore, key: str) -> tuple[int, bytes]:
            if knows_suffixes:
                try:
                    found = obstore.get(store, key, options={"range": {"suffix": _TAIL}})
                    return int(found.meta["size"]), bytes(found.bytes())
                except BaseError as error:
                    if not is_range_refused(error):
                        raise
            size = int(obstore.head(store, key)["size"])
            start = max(size - _TAIL, 0)
            return size, bytes(obstore.get_range(store, key, start=start, end=size)) if size else b""

        found = self._ask(end)
        assert isinstance(found, tuple)
        return found

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Bytes from the begin."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """As of files."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def size(self) -> int:
        """Bytes of the object."""
        return self._size

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes: from the end that is here already, else by one ranged request."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        start, self._at = self._at, max(end, self._at)
        if start >= end:
            return b""
        tail_at = self._size - len(self._tail)
        if start >= tail_at:
            return self._tail[start - tail_at : end - tail_at]
        found = self._ask(lambda store, key: bytes(obstore.get_range(store, key, start=start, end=end)))
        assert isinstance(found, bytes)
        return found

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # typeshed's buffer is wider
        """As of files."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
