"""When a process dies: at a crash point, at a drawn operation on files, or (neither) when another one kills it.

INVARIANT  SIGKILL in every case: no handler runs, no buffer is flushed. A file that is not synced may be half there.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from integration_tests.s3.store_mode import is_on
from tablestore_engine.runtime.outside_world import CRASH_ENV, CRASH_POINTS

_CALLS = ("fsync", "link", "replace", "rename", "unlink", "mkdir", "rmdir")
_CALLS_MAX = 60


@dataclass(frozen=True)
class Moment:
    """`point`: a crash point as TABLESTORE_CRASH_AT has it; `call`: which call of the file system, 0 for none, and
    whether the process dies `before` it, `after` it, or with half of the file (`torn`).
    """

    point: str = ""
    call: int = 0
    how: str = "before"

    @property
    def is_own(self) -> bool:
        """Whether the process kills itself."""
        return bool(self.point or self.call)


def points_of(works: Collection[str], log: str) -> list[str]:
    """Crash points that a writer passes in these works, each as often as it shall be drawn."""
    made = ["write.data_files", "commit.manifests", "commit.claimed", "commit.done"]
    if "gated" in works:
        made += ["stage.made", "stage.claimed", "stage.published"]
    if "branch" in works:
        made += ["branch.copied", "branch.schema", "branch.created", "branch.hidden", "branch.forward"]
    if {"rescale", "convert"} & {*works}:
        made += ["commit.schema", "commit.schema"]
    if "convert" in works:
        made += ["expire.hidden", "expire.data", "expire.metadata", "expire.snapshots"]
    if log == "transactional":
        made += ["log.begin", "log.rows", "log.marker", "log.committed"]
    if log == "eventual":
        made += ["log.early", "log.marker", "log.marker"]
    assert {*made} <= {*CRASH_POINTS}
    return made


def draw_moment(chance: random.Random, works: Collection[str], log: str) -> Moment:
    """A third each; `works`: of the next commands, so that a point is passed soon."""
    draw = chance.random()
    if draw < 0.35:
        point = chance.choice(points_of(works, log))
        often = 3 if point.startswith(("write.", "commit.")) and point != "commit.schema" else 1
        return Moment(point=f"{point}:{chance.randint(1, often)}")
    if draw < 0.7 and not is_on():  # objects have no such calls
        return Moment(call=chance.randint(1, _CALLS_MAX), how=chance.choice(("before", "after", "torn")))
    return Moment()


def die_at(moment: Moment) -> None:
    """From here on."""
    os.environ[CRASH_ENV] = moment.point
    if not moment.call:
        return
    counted, lock = itertools.count(1), threading.Lock()
    for name in _CALLS:
        setattr(os, name, _dying(name, getattr(os, name), moment, lambda: _next(counted, lock)))


def _next(counted: Any, lock: threading.Lock) -> int:
    with lock:
        return int(next(counted))


def _dying(
    name: str, call: Callable[..., Any], moment: Moment, number: Callable[[], int]
) -> Callable[..., Any]:
    def run(*words: Any, **named: Any) -> Any:
        if number() != moment.call:
            return call(*words, **named)
        if moment.how == "torn" and name == "fsync":
            _tear(words[0])
        elif moment.how == "after":
            call(*words, **named)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return run


def _tear(handle: int) -> None:
    path = f"/proc/self/fd/{handle}"
    if os.path.isfile(path):
        os.truncate(path, os.path.getsize(path) // 2)
