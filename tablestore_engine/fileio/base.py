"""The file-system port: the guarantees of a store on which atomic commits depend.

CHANGE     a guarantee of the file system
Parts      `FileIO` is what disks and object stores have in common: names and bytes. `FolderStore` is what only folders
           can do, `ConditionalStore` what only object stores do: exactly one of `FileIO.folders` and
           `FileIO.conditional` is None, and a caller that needs one of them has a second way or refuses.
Promises   each is a test in tests/unit/fileio/port_promises.py that any implementation must pass; those of
           FolderStore in tests/unit/fileio/folder_promises.py:
           1 `write` is durable when it returns: content and name survive power loss (fsync file, then folder)
           2 `create_exclusive` lets exactly one of many callers win; a reader sees all bytes or no file
           3 `replace` is atomic: a reader sees the old or the new content, never a mixture
           4 `list` of a missing folder is empty; entries come sorted by name; names with a leading dot are left out
           5 `delete` of a missing file is no error
           6 `open_output` makes the file durable when closed without error, and leaves none otherwise
           7 `copy` gives a file's bytes a second, independent name, durably: deleting either keeps the other
             (files never change in place, so a store may share the bytes)
           8 `create_exclusive` with `check` calls it as late as the store can, and creates nothing when it raises
           12 `run_together` returns when all of its calls have ended, with their results in order
           13 `delete_many` deletes each path as `delete` does
           14 `write_many` is `write` of each file; when the store refuses one of them, none stays
Folders    9 a folder is never deleted with content by `delete`  10 `create_exclusive` with `check` makes no folder; if
             the folder is moved away after the check and another one takes its path, the file never appears in that one
           11 `list_hidden` shows the temporary files of writers, of the living and of the dead
Objects    12 `replace_if` replaces a file only while its content is the one that was read: of many callers with one
             `SeenFile` exactly one wins, and a file that is missing stays missing
Requests   an object store answers each call after a round trip. Calls that do not need each other's results go into one
           `run_together`; a missing name costs `exists` two requests, and `exists_file` one
INVARIANT  paths are absolute text with `/`; a path never leaves the root the FileIO was made for.
INVARIANT  on a store without folders a claim may still land in a table that took the place of the checked one: the
           claimed content carries the table's identity, and readers skip another table's (decision 0064).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa

from tablestore_engine.errors import NotFound, StorageError, Unsupported

T = TypeVar("T")


@dataclass(frozen=True)
class FileStatus:
    """One entry of a listing: `name` without folder, `size_bytes`, `modified_ms` epoch milliseconds.

    `is_plain` is false for links and devices, `owner` the user id where the store has users. `mark`: another one for
    other content, where the store has such (entity tags); its times may be whole seconds.
    """

    path: str
    name: str
    size_bytes: int
    modified_ms: int
    is_dir: bool
    is_plain: bool = True
    owner: int | None = None
    mark: str | None = None


@dataclass(frozen=True)
class SeenFile:
    """The content of a file as it was read, and the store's marks of that content (entity tag, generation)."""

    data: bytes
    marks: tuple[str | None, str | None]


@dataclass(frozen=True)
class NewFile:
    """A file of `write_many`; `also`: a second name for the same bytes, as `copy` makes it."""

    path: str
    data: bytes
    also: str | None = None


class FileIO(Protocol):
    """The port. Raises NotFound TS1201 for a missing file to read, StorageError TS126x where the store refuses for a
    known reason, another OSError where the outcome is open.
    """

    @property
    def folders(self) -> FolderStore | None:
        """What this store does with folders; None where a folder is only the common part of names."""

    @property
    def conditional(self) -> ConditionalStore | None:
        """Replacing a file by compare-and-set; None where there are folders."""

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

        `check` raises what makes the claim void (promise 8). With it a store with folders raises NotFound TS1201 when
        the folder of `path` is missing.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Atomically put `data` at `path`, whatever was there."""

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a folder, sorted by name; empty when the folder is missing."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""

    def exists_file(self, path: str) -> bool:
        """Whether a file is there; a folder of that name is none."""

    def size(self, path: str) -> int:
        """Exact bytes of a file."""

    def mkdirs(self, path: str) -> None:
        """Make a folder and its parents durably; an existing one is fine. Nothing to do without folders."""

    def delete(self, path: str) -> None:
        """Remove one file, or one empty folder where there are folders; missing is fine."""

    def delete_many(self, paths: Sequence[str]) -> None:
        """`delete` of each path, in as few requests as the store can. After an error any of them may be gone."""

    def delete_tree(self, path: str) -> None:
        """Remove a folder with all its content (DROP TABLE); symbolic links are not followed."""

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """The results of `calls` in order. Over a network they run at once, in a bounded number of threads.

        Raises the error of the first call that failed; of the calls behind it some or all were not made. REQUIRES that
        no call needs what another one does.
        """


class FolderStore(Protocol):
    """What a store with folders does besides. Raises as FileIO does."""

    def rename(self, source: str, target: str) -> bool:
        """Move a file, or a folder with all its content in one step, to a name that does not exist yet; False when it
        does.
        """

    def list_hidden(self, path: str) -> Sequence[FileStatus]:
        """The entries that `FileIO.list` leaves out, in the same way: names with a leading dot."""

    def write_many(self, files: Sequence[NewFile]) -> None:
        """See write_many."""


class ConditionalStore(Protocol):
    """What an object store does besides. Raises as FileIO does."""

    def read_seen(self, path: str) -> SeenFile:
        """All bytes of a file, to replace it. Raises NotFound TS1201."""

    def replace_if(self, path: str, data: bytes, seen: SeenFile) -> bool:
        """Put `data` at `path` while the content is `seen`; False when it is another one, or missing.

        REQUIRES that no two calls write the same bytes: a store may compare contents.
        """


def list_hidden(fileio: FileIO, path: str) -> Sequence[FileStatus]:
    """Hidden entries of a folder; none where the store has no folders, and so no temporary files in them."""
    return () if fileio.folders is None else fileio.folders.list_hidden(path)


def write_many(fileio: FileIO, files: Sequence[NewFile]) -> None:
    """New files, durable on return; a disk syncs them together. Raises as `write`; then none of them stays."""
    if fileio.folders is not None:
        fileio.folders.write_many(files)
        return
    pairs = [(path, one.data) for one in files for path in (one.path, one.also) if path is not None]
    try:
        fileio.run_together([partial(fileio.write, path, data) for path, data in pairs])
    except StorageError:
        fileio.delete_many([path for path, _ in pairs])
        raise


def find(fileio: FileIO, path: str) -> bytes | None:
    """All bytes of a file, None when it is missing."""
    try:
        return fileio.read(path)
    except NotFound:
        return None


def folders_of(fileio: FileIO, path: str, work: str, way_out: str) -> FolderStore:
    """The folders of a store, for `work` at `path` that needs them. Raises Unsupported TS1204 with `way_out` as fix."""
    if fileio.folders is None:
        raise Unsupported(
            "TS1204",
            f"{work} is not possible at {path}",
            why="an object store cannot move a folder in one step, and half a move would damage the table",
            fix=way_out,
        )
    return fileio.folders


def conditional_of(fileio: FileIO) -> ConditionalStore:
    """The compare-and-set of a store. REQUIRES a store without folders."""
    if fileio.conditional is None:
        raise TypeError(f"{type(fileio).__name__} has folders, and replaces nothing by compare-and-set")
    return fileio.conditional
