"""How many bytes a file that is read whole may have, by the kind that its name says.

WHY        metadata is decoded in memory: a file of 20 GB, damaged or planted, would end the process with MemoryError.
INVARIANT  checked before the bytes are read, by the size that comes with the first answer: no request of its own.
INVARIANT  each limit is far above what an engine writes; data files are read by ranges, and have none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tablestore_engine.errors import FileTooLarge
from tablestore_engine.fileio.base import SeenFile

_KIB, _MIB = 1 << 10, 1 << 20
_OTHER = ("metadata file", 1 << 30)  # stages, folders of ours: what no kind below names
_KINDS: tuple[tuple[str, str, int], ...] = (  # the first that fits counts
    (r"LATEST|EARLIEST", "snapshot hint", 4 * _KIB),
    (r"schema-\d+", "schema", 64 * _MIB),
    (r"(snapshot|changelog)-\d+", "snapshot", 64 * _MIB),
    (r"tag-.+", "tag", 64 * _MIB),
    (r"consumer-.+", "consumer", _MIB),
    (r"manifest-list-.+", "manifest list", 64 * _MIB),
    (r"index-manifest-.+", "index manifest", 256 * _MIB),
    (r"manifest-.+", "manifest", 256 * _MIB),
    (r"index-.+", "index file", 1 << 30),
    (r"stat(s|istics)?-.+", "statistics file", 64 * _MIB),
    (r".+\.json", "JSON file", 64 * _MIB),  # views, functions, records of logs
)
_LIMITS = tuple((re.compile(pattern), kind, limit) for pattern, kind, limit in _KINDS)


def limit_of(path: str) -> tuple[str, int]:
    """What a file of this name is, and the bytes that it may have at most."""
    name = path.rpartition("/")[2]
    return next(((kind, limit) for pattern, kind, limit in _LIMITS if pattern.fullmatch(name)), _OTHER)


def check_size(path: str, size_bytes: int, marks: tuple[str | None, str | None] = (None, None)) -> None:
    """Raises FileTooLarge TS1293 for a file that is not read; `marks` are the store's of its content."""
    kind, limit = limit_of(path)
    if size_bytes > limit:
        raise FileTooLarge(
            "TS1293",
            f"the {kind} {path} is too large to be read",
            why=f"it has {size_bytes} bytes; the limit of a {kind} is {limit} bytes",
            fix="restore the file from a copy; tablestore verify names all damaged files of the table",
            marks=marks,
        )


def seen_unread(large: FileTooLarge) -> SeenFile:
    """The file without its bytes: enough to replace it."""
    marks = large.facts["marks"]
    assert isinstance(marks, tuple)  # as check_size says
    return SeenFile(b"", marks)


def read_limited(path: str, file: str) -> bytes:
    """All bytes of `file` of a disk, which `path` names. Raises as check_size."""
    with Path(file).open("rb") as opened:
        check_size(path, os.fstat(opened.fileno()).st_size)
        return opened.read()
