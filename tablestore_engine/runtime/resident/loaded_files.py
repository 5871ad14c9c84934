"""The files that this process has imported, so that it stops serving when one of them is another one on the disk.

CHANGE     when a loaded process is loaded again
INVARIANT  each file counts by change time, size and inode; the folders of the import path and the .pth files in them
           count too: a package that is added or removed may change what is imported.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_Facts = tuple[int, int, int]


@dataclass(frozen=True)
class LoadedFiles:
    """Path → change time in ns, size in bytes (0 of a folder), inode; None: it is missing."""

    facts: Mapping[str, _Facts | None]

    @classmethod
    def look(cls) -> LoadedFiles:
        """At what is imported now."""
        return cls({path: _look_at(path) for path in {*_modules(), *sys.path, *_path_files()}})

    def changed_since(self, moment_ns: int) -> str | None:
        """A file that has changed since then; None where none has."""
        found = (path for path, facts in self.facts.items() if facts is not None and facts[0] >= moment_ns)
        return next(found, None)

    def changed(self) -> str | None:
        """A file that is another one by now; None where none is."""
        return next((path for path, facts in self.facts.items() if _look_at(path) != facts), None)


def _modules() -> Iterator[str]:
    for module in list(sys.modules.values()):
        path = getattr(getattr(module, "__spec__", None), "origin", None)
        if isinstance(path, str) and os.path.isabs(path):
            yield path


def _path_files() -> Iterator[str]:
    for folder in sys.path:
        yield from map(str, Path(folder).glob("*.pth"))


def _look_at(path: str) -> _Facts | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ctime_ns, 0 if stat.S_ISDIR(found.st_mode) else found.st_size, found.st_ino
