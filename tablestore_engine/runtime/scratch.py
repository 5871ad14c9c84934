"""The scratch folder of a session: apart from the warehouse, whose disk may be full, read-only or no disk at all.

CHANGE     the scratch folder of a session
Choice     what the caller, the environment or the profile names; else, when driver and workers are one machine or the
           warehouse is no folder, a folder of this user in the system's temporary one; else `.tablestore` in the
           warehouse, which all workers see
INVARIANT  folders that we make are 0700; a place of somebody else's is refused (TS1992), also in a temporary folder.
WHY        scratch holds links to data files, deletion maps and the package for workers: kilobytes, but no query runs
           without them. The links are symbolic, so scratch may be another file system than the warehouse.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tablestore_engine.runtime.ownership import USERS, Users, make_private
from tablestore_engine.runtime.process_folder import open_process_folder

SCRATCH_ENV = "TABLESTORE_SCRATCH"
_FIX = f"name a folder of your own with {SCRATCH_ENV} or `scratch` of the profile"


@dataclass(frozen=True)
class ScratchPlace:
    """`named`: a folder, relative to the current one, ~ for the user's; `warehouse`: absolute, None on an object
    store.
    """

    warehouse: str | None
    named: str | None = None
    users: Users = USERS
    temporary: Callable[[], str] = tempfile.gettempdir

    def parent(self, *, is_one_machine: bool) -> Path:
        """The folder that the process's folder is made in. Pure but for the look at the current folder."""
        if self.named:
            return Path(os.path.abspath(Path(self.named).expanduser()))
        if is_one_machine or self.warehouse is None:
            return Path(self.temporary()) / f"tablestore-{self.users.current()}"
        return Path(self.warehouse) / ".tablestore"

    def open(self, *, is_one_machine: bool) -> Path:
        """A new folder of this process, removed at its exit. Raises FixRequest TS1992; OSError of a full disk."""
        parent = self.parent(is_one_machine=is_one_machine)
        if not self.named and (is_one_machine or self.warehouse is None):
            make_private(parent, "scratch folder", _FIX, users=self.users)
        return open_process_folder(parent, users=self.users)


def process_scratch() -> Path:
    """The folder of this process for copies that only it reads; the environment names its parent."""
    return _scratch_of(os.getpid())


@cache
def _scratch_of(_process: int) -> Path:
    """A forked child gets one of its own."""
    return ScratchPlace(None, os.environ.get(SCRATCH_ENV)).open(is_one_machine=True)
