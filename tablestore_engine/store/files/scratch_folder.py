"""A folder of copies in the scratch of this process, which goes when nothing names it any more.

CRASH      the whole scratch goes with its process, also one that was killed (runtime.process_folder).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.scratch import process_scratch


@dataclass(frozen=True)
class ScratchFolder:
    """`fileio` reads and writes what is below `path`; the folder goes with it."""

    path: str
    fileio: FileIO


def open_scratch_folder(prefix: str) -> ScratchFolder:
    """A new folder; it is removed once nobody has its `fileio`, and no later than the process ends."""
    path = tempfile.mkdtemp(prefix=prefix, dir=process_scratch())
    folder = ScratchFolder(path, LocalFileIO(path))
    removal = weakref.finalize(folder.fileio, _remove, path, os.getpid())
    removal.atexit = False  # type: ignore[misc] # a property; at exit the whole scratch goes
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has the objects of its parent, and not its folders
        shutil.rmtree(folder, ignore_errors=True)
