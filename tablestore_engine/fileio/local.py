"""The local disk, and whatever is mounted as one: durable writes, and claims by hard link.

Steps      claim: temporary file in the same folder -> bytes -> fsync file -> link -> fsync folder; replace: by rename.
           Files under new (uuid) names are written in place: nobody knows the name yet
INVARIANT  temporary names start with a dot: other engines parse every snapshot-* they see (format.md#layout).
INVARIANT  no link inside the root is followed (TS1290); a folder is looked at once. A claim is one link(2), which fails
           when the name exists, on every POSIX file system.
CRASH      what remains is a hidden temporary file, or a file that nothing names.
Cost       0.4 ms per fsync of a file, 0.2 ms of a folder on the build machine: ten files of a commit cost 6 ms.
PAIMON     Java renames on local disks, which overwrites: mixing committers needs care (format.md#commits).
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from tablestore_engine.fileio.base import FileStatus, NewFile
from tablestore_engine.fileio.local_files import (
    fsync_folder,
    link,
    parent,
    unlink,
    write_new,
    write_new_files,
)
from tablestore_engine.fileio.local_folder import make_folder, make_folders
from tablestore_engine.fileio.size_limits import read_limited
from tablestore_engine.fileio.storage_errors import (
    explained,
    is_link,
    missing_file,
    outside_root,
)

T = TypeVar("T")
_REMEMBERED_MAX = 50_000  # folders known to be no links


@contextlib.contextmanager
def _open_folder(path: str) -> Iterator[int]:
    """A handle of a folder that follows it when it is renamed. Raises NotFound TS1201."""
    try:
        with explained(path):
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise missing_file(path) from error
    try:
        yield handle
    finally:
        os.close(handle)


class LocalFileIO:
    """Files under `root` (absolute path). Picklable: workers get a copy."""

    def __init__(self, root: str) -> None:
        self.root = os.path.normpath(root)
        self._real_folders: set[str] = set()

    conditional = None

    @property
    def folders(self) -> LocalFileIO:
        """The disk itself."""
        return self

    def _inside(self, path: str) -> str:
        """The normalized path. Raises FixRequest TS1202 when it leaves the root."""
        clean = os.path.normpath(path)
        if clean != self.root and not clean.startswith(self.root.rstrip("/") + "/"):
            raise outside_root(path, self.root)
        if clean != self.root:
            self._check_folder(parent(clean))
        return clean

    def _check_folder(self, folder: str) -> None:
        """No part of the way from the root is a link: it would lead out of the table. Raises FixData TS1290."""
        if folder == self.root or folder in self._real_folders:
            return
        self._check_folder(parent(folder))
        with contextlib.suppress(OSError):  # not there, or closed: the operation itself says so
            mode = os.lstat(folder).st_mode
            if stat.S_ISLNK(mode):
                raise is_link(folder, os.path.realpath(folder))
            if len(self._real_folders) >= _REMEMBERED_MAX:
                self._real_folders.clear()
            if stat.S_ISDIR(mode):
                self._real_folders.add(folder)

    def _file(self, path: str) -> str:
        """The path of a plain file. Raises NotFound TS1201, FixData TS1290 for links and devices."""
        clean = self._inside(path)
        try:
            mode = os.lstat(clean).st_mode
        except FileNotFoundError as error:
            raise missing_file(path) from error
        if not stat.S_ISREG(mode):
            raise is_link(clean, os.path.realpath(clean))
        return clean

    # reading -------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """All bytes. Raises NotFound TS1201, FixData TS1293."""
        try:
            with explained(path):
                return read_limited(path, self._file(path))
        except FileNotFoundError as error:
            raise missing_file(path) from error

    def open_input(self, path: str) -> pa.NativeFile:
        """Random access. Raises NotFound TS1201."""
        try:
            with explained(path):
                clean = self._file(path)
                return pa.memory_map(clean) if os.path.getsize(clean) else pa.BufferReader(b"")
        except FileNotFoundError as error:
            raise missing_file(path) from error

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries sorted by name, without hidden ones; () for a missing folder."""
        return self._list(path, is_hidden=False)

    def list_hidden(self, path: str) -> Sequence[FileStatus]:
        """Hidden entries sorted by name; () for a missing folder."""
        return self._list(path, is_hidden=True)

    def _list(self, path: str, *, is_hidden: bool) -> Sequence[FileStatus]:
        found, clean = [], self._inside(path)
        self._check_folder(clean)
        with (
            explained(path),
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(clean) as entries,
        ):
            for entry in entries:
                if entry.name.startswith(".") is is_hidden:
                    with contextlib.suppress(FileNotFoundError):  # deleted between listing and looking
                        found.append(_status(entry))
        return sorted(found, key=lambda status: status.name)

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there. Raises StorageError where nobody can know (closed folder, long name)."""
        clean = self._inside(path)
        with explained(path):
            try:
                os.lstat(clean)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def exists_file(self, path: str) -> bool:
        """Whether something that is no folder is there. Raises as `exists`."""
        clean = self._inside(path)
        with explained(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return not stat.S_ISDIR(os.lstat(clean).st_mode)
        return False

    def size(self, path: str) -> int:
        """Bytes. Raises NotFound TS1201."""
        try:
            with explained(path):
                return os.path.getsize(self._file(path))
        except FileNotFoundError as error:
            raise missing_file(path) from error

    # writing -------------------------------------------------------------------------------------

    def mkdirs(self, path: str) -> None:
        """A folder and its parents; each new name is made durable in its parent."""
        clean = self._inside(path)
        if os.path.isdir(clean):
            return
        self._make_parent_of(clean)
        with explained(path):
            make_folder(clean)
            fsync_folder(parent(clean))

    def _make_parent_of(self, clean: str) -> None:
        folder = parent(clean)
        if not os.path.isdir(folder):
            if folder.startswith(self.root):
                self.mkdirs(folder)
            else:
                with explained(folder):
                    make_folders(folder)

    def _temporary(self, clean: str) -> str:
        folder, _, name = clean.rpartition("/")
        return f"{folder}/.{name}.{uuid.uuid4()}.tmp"

    def _write_temporary(self, clean: str, data: bytes) -> str:
        """A synced temporary file beside `clean`; its path."""
        self._make_parent_of(clean)
        temporary = self._temporary(clean)
        with explained(clean):
            write_new(temporary, data)
        return temporary

    def write(self, path: str, data: bytes) -> None:
        """A new file, durable on return. Raises FileExistsError when the name is taken."""
        clean = self._inside(path)
        with explained(path):
            try:
                write_new(clean, data)
            except FileNotFoundError:
                self._make_parent_of(clean)
                write_new(clean, data)
            fsync_folder(parent(clean))

    def copy(self, source: str, target: str) -> None:
        """A second hard link: no byte is written. Raises FileExistsError, NotFound TS1201, Unsupported TS1203."""
        old, new = self._inside(source), self._inside(target)
        if not os.path.lexists(old):
            raise missing_file(source)
        self._make_parent_of(new)
        with explained(target):
            if not link(old, new):
                raise FileExistsError(new)
            fsync_folder(parent(new))

    def write_many(self, files: Sequence[NewFile]) -> None:
        """As FolderStore: all are written before the first one is synced."""
        given = [(self._inside(one.path), one.data, one.also and self._inside(one.also)) for one in files]
        try:
            write_new_files(given)
        except FileNotFoundError:  # an empty folder was tidied away meanwhile: once more
            write_new_files(given)

    def replace(self, path: str, data: bytes) -> None:
        """Old or new content, never a mixture; durable on return."""
        clean = self._inside(path)
        with explained(path):
            os.replace(self._write_temporary(clean, data), clean)
        fsync_folder(parent(clean))

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """link(2) decides; one whose answer was lost is recognised by the inode. Raises Unsupported TS1203.

        The folder is held open: its temporary file and the link go into that folder, wherever it lies by then.
        """
        clean = self._inside(path)
        if check is None:
            self._make_parent_of(clean)
        folder, _, name = clean.rpartition("/")
        with _open_folder(folder) as handle:
            temporary = f".{name}.{uuid.uuid4()}.tmp"
            with explained(path):
                write_new(temporary, data, folder=handle)
            try:
                if check is not None:
                    check()
                with explained(path):
                    won = link(temporary, name, folder=handle, shown=folder)
            finally:
                unlink(temporary, folder=handle)
            if won:
                os.fsync(handle)
        return won

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """A stream to a temporary file that gets its name, durably, when the block ends well."""
        clean = self._inside(path)
        temporary = self._temporary(clean)
        try:
            with explained(path):
                with self._new_sink(temporary) as sink:
                    yield sink
                handle = os.open(temporary, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
                os.replace(temporary, clean)
        except BaseException:
            unlink(temporary)
            raise
        fsync_folder(parent(clean))

    def _new_sink(self, path: str) -> pa.NativeFile:
        self._make_parent_of(path)
        with contextlib.suppress(FileNotFoundError):  # an empty folder was tidied away meanwhile: once more
            return pa.OSFile(path, "wb")
        self._make_parent_of(path)
        return pa.OSFile(path, "wb")

    def rename(self, source: str, target: str) -> bool:
        """Move; False when the target exists. Files by link, folders by rename onto a name that is not there."""
        old, new = self._inside(source), self._inside(target)
        if not os.path.lexists(old):
            raise missing_file(source)
        self._make_parent_of(new)
        with explained(source):
            if not _moved(old, new):
                return False
        fsync_folder(parent(new))
        fsync_folder(parent(old))
        return True

    def delete(self, path: str) -> None:
        """One file or one empty folder; a missing one is fine."""
        clean = self._inside(path)
        with explained(path), contextlib.suppress(FileNotFoundError):
            if os.path.isdir(clean) and not os.path.islink(clean):
                os.rmdir(clean)
            else:
                os.unlink(clean)

    def delete_many(self, paths: Sequence[str]) -> None:
        """One after the other."""
        for path in paths:
            self.delete(path)

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """One after the other: a call of a disk takes less time than a thread."""
        return [call() for call in calls]

    def delete_tree(self, path: str) -> None:
        """A folder with its content; links are removed, what they point to stays. The root itself is refused."""
        clean = self._inside(path)
        if clean == self.root:
            raise outside_root(path, self.root)
        with explained(path):
            if os.path.islink(clean):
                os.unlink(clean)
            elif os.path.isdir(clean):
                shutil.rmtree(clean)


def _status(entry: os.DirEntry[str]) -> FileStatus:
    facts = entry.stat(follow_symlinks=False)
    is_dir, millis = stat.S_ISDIR(facts.st_mode), facts.st_mtime_ns // 1_000_000
    is_plain = is_dir or stat.S_ISREG(facts.st_mode)
    return FileStatus(entry.path, entry.name, facts.st_size, millis, is_dir, is_plain, facts.st_uid)


def _moved(old: str, new: str) -> bool:
    """Whether `old` has the name `new` now, which was free."""
    if not os.path.isdir(old):
        if not link(old, new):
            return False
        os.unlink(old)
        return True
    if os.path.lexists(new):
        return False
    try:
        os.rename(old, new)
    except OSError as failure:
        if failure.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False  # somebody made it since we looked
        raise
    return True
