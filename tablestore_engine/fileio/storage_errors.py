"""Errors of a disk as errors that name the path and the next step.

INVARIANT  the outcome of the failed call is known: nothing was written under the name. Every other OSError (an answer
           that was lost) passes as it is, and is read back by whoever commits.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from tablestore_engine.errors import (
    FileMissing,
    FixData,
    FixRequest,
    NotFound,
    StorageError,
    Unsupported,
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ELOOP)


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Raises StorageError TS1261, TS1262, TS1263 for what the block meets at `path`; other OSErrors as they are."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        known = storage_error(error, path)
        if known is None:
            raise
        raise known from error


def storage_error(error: OSError, path: str) -> StorageError | None:
    """The error for the user, None when the kind of failure is not known."""
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    if error.errno in _FULL:
        return StorageError(
            "TS1261",
            f"there is no room to write {path}",
            why=why,
            fix="free disk space (or raise the quota or limit), then run it again; the table is as it was",
        )
    if error.errno == errno.ENAMETOOLONG:
        return StorageError(
            "TS1262",
            f"a name in {path[:400]} is too long",
            why=f"{why[:200]}; file systems take 255 bytes for the name of a table, a partition folder or a file",
            fix="shorten the name, or partition by a shorter value (a hash, a date)",
        )
    if error.errno in _CLOSED:
        return StorageError(
            "TS1263",
            f"{path} cannot be used",
            why=why,
            fix="check that the warehouse is a folder that this user may read and write, on a disk that takes writes",
        )
    return None


def outside_root(path: str, root: str) -> FixRequest:
    """TS1202."""
    return FixRequest(
        "TS1202",
        f"path {path!r} is outside of {root}",
        why="a name with .. or an absolute path would leave the warehouse",
        fix="use names inside the warehouse",
    )


def is_link(path: str, target: str) -> FixData:
    """TS1290."""
    return FixData(
        "TS1290",
        f"{path} is no plain file or folder of the warehouse",
        why=f"it is a link or a device, and leads to {target}; a table's files are in its own folder",
        fix="move the data into the warehouse; a link is fine only as the warehouse folder itself",
    )


def missing_file(path: str) -> NotFound:
    """TS1201."""
    return FileMissing(
        "TS1201",
        f"file {path} does not exist",
        why="it was deleted, expired, or never written",
        fix="run tablestore verify on the table",
    )


def no_exclusive_create(path: str, why: str) -> Unsupported:
    """TS1203."""
    return Unsupported(
        "TS1203",
        f"{path} cannot hold a table",
        why=f"{why}; two commits could overwrite each other",
        fix="use a local disk with hard links, or an object store that honours `If-None-Match: *` (S3, GCS, Azure)",
    )
