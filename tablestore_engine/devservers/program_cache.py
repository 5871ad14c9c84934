"""Programs in the cache folder: each is made in a work folder and put in place by one rename.

INVARIANT  a program's folder exists only when it is complete. Of two processes that make it, one keeps its copy.
CRASH      a killed process leaves only a work folder, whose name begins with a dot; it is removed after a day.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tablestore_engine.runtime.java import make_in_cache
from tablestore_engine.runtime.outside_world import Runtime

_LEFTOVER_MS = 86_400_000


@contextmanager
def work_folder(target: Path, *, runtime: Runtime) -> Iterator[Path]:
    """A private folder beside `target`, removed at the end; what killed processes left there goes first."""
    make_in_cache(target.parent)
    family = target.name.partition("-")[0]
    for path in target.parent.glob(f".{family}-*"):
        if runtime.now_ms() - path.stat().st_mtime_ns // 1_000_000 > _LEFTOVER_MS:
            shutil.rmtree(path, ignore_errors=True)
    work = target.parent / f".{target.name}-{runtime.new_uuid()}"
    make_in_cache(work)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def put_in_place(made: Path, target: Path) -> None:
    """Rename; where another process has put its copy there first, that copy stays."""
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():  # not a lost race: the disk itself refused
            raise
