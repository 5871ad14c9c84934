"""A folder of copies in the scratch of this process, which goes when nothing names it any more.

CRASH      the whole scratch goes with its process, also one that was killed (runtime.process_folder).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.scratch import process_scratch


def open_scratch_folder(prefix: str) -> LocalFileIO:
    """A new folder; it is removed with the value that is returned, and no later than the process ends."""
    fileio = LocalFileIO(tempfile.mkdtemp(prefix=prefix, dir=process_scratch()))
    removal = weakref.finalize(fileio, _remove, fileio.root, os.getpid())
    removal.atexit = False  # type: ignore[misc] # a property; at exit the whole scratch goes
    return fileio


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has the objects of its parent, and not its folders
        shutil.rmtree(folder, ignore_errors=True)
