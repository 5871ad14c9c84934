"""A file that becomes one object: a single put while it is small, a multipart upload once it is large.

INVARIANT  the object appears by one request, at the end; an aborted file leaves no object.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from tablestore_engine.errors import TablestoreError

_SINGLE_MAX = 16 << 20  # bytes of one put; more costs two more requests and frees the memory


class Upload(Protocol):
    """What is used of obstore's writer."""

    def __enter__(self) -> Upload: ...
    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...
    def write(self, data: bytes, /) -> int:
        """As of files."""


class ObjectOutput(io.RawIOBase):
    """`put` makes an object of bytes, `upload` opens a multipart upload, `size` asks for the object's bytes.

    `explained` gives errors of the upload the classes of the port.
    """

    def __init__(
        self,
        *,
        put: Callable[[bytes], None],
        upload: Callable[[], Upload],
        size: Callable[[], int],
        explained: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self._put, self._upload, self._size, self._explained = put, upload, size, explained
        self._held, self._written, self._open = bytearray(), 0, None

    _open: Upload | None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """Bytes written."""
        return self._written

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # typeshed's buffer is wider
        block = bytes(data)
        self._written += len(block)
        if self._open is not None:
            with self._explained():
                self._open.write(block)
            return len(block)
        self._held += block
        if len(self._held) > _SINGLE_MAX:
            with self._explained():
                self._open = self._upload().__enter__()
                self._open.write(bytes(self._held))
            self._held.clear()
        return len(block)

    def complete(self) -> None:
        """Make the object. An upload whose last answer was lost is known by the size of the object."""
        if self._open is None:
            self._put(bytes(self._held))
            return
        upload, self._open = self._open, None
        try:
            with self._explained():
                upload.__exit__(None, None, None)
        except (OSError, TablestoreError):
            if not self._is_whole():
                raise

    def _is_whole(self) -> bool:
        try:
            return self._size() == self._written
        except (OSError, TablestoreError):
            return False

    def abort(self) -> None:
        upload, self._open = self._open, None
        if upload is not None:
            error = InterruptedError("aborted")
            upload.__exit__(type(error), error, None)
