"""The files that this process has imported, so that it stops serving when one of them is another one on the disk.

CHANGE     when a loaded process is loaded again
INVARIANT  each file counts by change time, size and inode, the .pth files of the import path too.
INVARIANT  a folder of the import path counts by its names: a package that is added or removed may change what is
           imported. Compiled files do not count: the first import of a module writes them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_Facts = tuple[int, int, int]
_COMPILED = "__pycache__"


@dataclass(frozen=True)
class LoadedFiles:
    """`files`: path → change time in ns, size in bytes, inode; `folders`: path → names in it. None: it is missing."""

    files: Mapping[str, _Facts | None]
    folders: Mapping[str, frozenset[str] | None]

    @classmethod
    def look(cls) -> LoadedFiles:
        """At what is imported now."""
        folders = {path for path in sys.path if os.path.isdir(path)}
        files = {*_modules(), *_path_files(), *sys.path} - folders
        return cls({path: _look_at(path) for path in files}, {path: _names_in(path) for path in folders})

    def changed_since(self, moment_ns: int) -> str | None:
        """A file that has changed since then; None where none has."""
        found = (path for path, facts in self.files.items() if facts is not None and facts[0] >= moment_ns)
        return next(found, None)

    def changed(self) -> str | None:
        """A file or folder that is another one by now; None where none is."""
        for path, facts in self.files.items():
            if _look_at(path) != facts:
                return path
        return next((path for path, names in self.folders.items() if _names_in(path) != names), None)


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
    return found.st_ctime_ns, found.st_size, found.st_ino


def _names_in(path: str) -> frozenset[str] | None:
    try:
        return frozenset(os.listdir(path)) - {_COMPILED}
    except OSError:
        return None
