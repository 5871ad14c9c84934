"""Files of the local disk under new names: written, synced, linked.

INVARIANT  a file is synced before its folder, and both before the call returns.
WHY        many small files are synced together: a sync that follows each write makes the disk commit its journal for
           each file (2,000 files on a busy disk: 14 s, together 0.6 s; decision 0138).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tablestore_engine.fileio.local_folder import make_folder
from tablestore_engine.fileio.storage_errors import explained, no_exclusive_create

_SYNC_THREADS, _SYNCED_ALONE = 4, 4  # so few files are not worth a thread


def fsync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def write_new(path: str, data: bytes, *, folder: int | None = None) -> None:
    """Bytes under a name (in `folder`, when given) that is new, synced; nothing stays when that fails."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        unlink(path, folder=folder)
        raise


def link(source: str, target: str, *, folder: int | None = None, shown: str | None = None) -> bool:
    """Whether `target` is now the same file as `source`; any error is answered by looking at the inode.

    `folder`: both are names in it, and `shown` is its path for messages.
    """
    try:
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as failure:
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.lstat(source, dir_fd=folder), os.lstat(target, dir_fd=folder)):
                return True  # the link was made, its answer was lost
        if isinstance(failure, FileExistsError):
            return False
        if isinstance(failure, PermissionError):
            folder_path = shown or parent(target)
            why = f"its file system refuses hard links ({failure})"
            raise no_exclusive_create(folder_path, why) from failure
        raise
    return True


def unlink(path: str, *, folder: int | None = None) -> None:
    """Take a temporary name away; one that stays is hidden and harmless, and must not hide why the work failed."""
    with contextlib.suppress(OSError):
        os.unlink(path, dir_fd=folder)


def write_new_files(files: Sequence[tuple[str, bytes, str | None]]) -> None:
    """(path, bytes, second name or None) of new files; folders are made. When one fails, none of the files stays."""
    made: list[str] = []
    try:
        changed = _make_folders({parent(name) for path, _, also in files for name in (path, also or path)})
        for path, data, also in files:
            with explained(path), open(path, "xb") as file:
                made.append(path)
                file.write(data)
            if also is not None:
                with explained(also):
                    if not link(path, also):
                        raise FileExistsError(also)
                made.append(also)
        _sync([path for path, _, _ in files], _sync_file)
        _sync(sorted(changed | {parent(path) for path in made}), fsync_folder)
    except BaseException:
        for path in made:
            unlink(path)
        raise


def _make_folders(folders: set[str]) -> set[str]:
    """Make those that are missing, with their parents; the folders that have new names in them."""
    changed = set()
    for folder in folders:
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = parent(folder)
        for one in reversed(missing):
            with explained(one):
                make_folder(one)
            changed.add(parent(one))
    return changed


def _sync(paths: Sequence[str], sync: Callable[[str], None]) -> None:
    if len(paths) <= _SYNCED_ALONE:
        for path in paths:
            sync(path)
        return
    with ThreadPoolExecutor(_SYNC_THREADS) as pool:
        list(pool.map(sync, paths))


def _sync_file(path: str) -> None:
    with explained(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
