"""Putting a file where another table's may lie: stores without folders, decision 0064.

Steps      read what lies there → is this operation's table still the one of the name? → replace exactly what was read
WHY        read before looked: a file that was there while this table has the name, and names another table, is of a
           table that was dropped before, and whose identity never comes again. So it may be replaced for ever.
INVARIANT  nothing is deleted: between a look and a deletion its name may have become another table's.
"""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.fileio.base import FileIO

_TURNS = 20


def claim_over(
    fileio: FileIO, path: str, data: bytes, is_foreign: Callable[[bytes], bool], check: Callable[[], None]
) -> bool:
    """Replace a file of another table by this claim; False when it is this table's, or changed meanwhile.

    Raises what `check` raises: REQUIRES that it compares the table's identity.
    """
    if fileio.conditional is None:
        return False
    try:
        seen = fileio.conditional.read_seen(path)
    except NotFound:
        return False
    if not is_foreign(seen.data):
        return False
    check()
    return fileio.conditional.replace_if(path, data, seen)


def put_over(fileio: FileIO, path: str, data: bytes, check: Callable[[], None]) -> None:
    """Put a file of this table that may change in place, so that a late put never hits another table's file.

    Raises what `check` raises, RetryError TS1369 when others put it all the time.
    """
    if fileio.conditional is None:
        fileio.replace(path, data)
        return
    for _ in range(_TURNS):
        try:
            seen = fileio.conditional.read_seen(path)
        except NotFound:
            seen = None
        check()
        if seen is None:
            if fileio.create_exclusive(path, data):
                return
        elif fileio.conditional.replace_if(path, data, seen):
            return
    raise RetryError(
        "TS1369",
        f"{path} could not be written",
        why=f"other processes wrote it {_TURNS} times meanwhile",
        fix="run the command again, with one process for each name",
    )
