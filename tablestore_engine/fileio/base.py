"""The file-system port: what every store of bytes must promise so that commits are all or nothing.

Promises   each is a test in tests/unit/fileio/port_promises.py that any implementation must pass:
           1 `write` is durable when it returns: content and name survive power loss (fsync file, then folder)
           2 `create_exclusive` lets exactly one of many callers win; a reader sees all bytes or no file
           3 `replace` is atomic: a reader sees the old or the new content, never a mixture
           4 `list` of a missing folder is empty; entries come sorted by name; temporary files
             (leading dot) are listed by `list_hidden` alone
           5 `delete` of a missing file is no error; folders are never deleted with content by `delete`
           6 `open_output` makes the file durable when closed without error, and leaves none otherwise
           7 `copy` gives a file's bytes a second, independent name, durably: deleting either keeps the other
             (files never change in place, so a store may share the bytes)
           8 `create_exclusive` with `check` makes no folder, and calls `check` when the new file already has its place
             in the folder: if that folder is moved away then and another one takes its path, the file never appears
             in the other one
INVARIANT  paths are absolute text with `/`; a path never leaves the root the FileIO was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True)
class FileStatus:
    """One entry of a listing: `name` without folder, `size_bytes`, `modified_ms` epoch milliseconds.

    `is_plain` is false for links and devices, `owner` the user id where the store has users.
    """

    path: str
    name: str
    size_bytes: int
    modified_ms: int
    is_dir: bool
    is_plain: bool = True
    owner: int | None = None


class FileIO(Protocol):
    """The port. Raises NotFound TS1201 for a missing file to read, StorageError TS126x where the store refuses for a
    known reason, another OSError where the outcome is open.
    """

    @property
    def renames_folders(self) -> bool:
        """Whether `rename` moves a folder with all its content in one step; a store that names files alone cannot."""

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def open_input(self, path: str) -> pa.NativeFile:
        """A random-access Arrow input of a file."""

    def write(self, path: str, data: bytes) -> None:
        """A new durable file; parent folders are made. The name must be new (uuid names)."""

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A streaming Arrow output; durable on a clean exit, removed on an exception."""

    def copy(self, source: str, target: str) -> None:
        """The bytes of `source` under the new name `target`, durable on return."""

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """Create `path` with `data` if and only if it does not exist; False when it does.

        `check` raises what makes the claim void (promise 8). Raises NotFound TS1201 when it is given and the folder
        of `path` is missing.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Atomically put `data` at `path`, whatever was there."""

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a folder, sorted by name; empty when the folder is missing."""

    def list_hidden(self, path: str) -> Sequence[FileStatus]:
        """The entries that `list` leaves out, in the same way: temporary files, of the living and of the dead."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""

    def size(self, path: str) -> int:
        """Exact bytes of a file."""

    def mkdirs(self, path: str) -> None:
        """Make a folder and its parents durably; an existing one is fine."""

    def delete(self, path: str) -> None:
        """Remove one file, or one empty folder; missing is fine."""

    def delete_tree(self, path: str) -> None:
        """Remove a folder with all its content (DROP TABLE); symbolic links are not followed."""

    def rename(self, source: str, target: str) -> bool:
        """Move a file or folder to a name that does not exist yet; False when it does. REQUIRES `renames_folders` for a
        folder; without it raises Unsupported.
        """
