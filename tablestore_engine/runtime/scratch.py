"""The scratch folder of a session: apart from the warehouse, whose disk may be full, read-only or no disk at all.

CHANGE     the scratch folder of a session
Choice     what the caller, the environment or the profile names; else, when driver and workers are one machine or the
           warehouse is no folder, a folder of this user in the system's temporary one; else `.tablestore` in the
           warehouse, which all workers see
INVARIANT  folders that we make are 0700; a place of somebody else's is refused (TS1992), also in a temporary folder.
WHY        scratch holds links to data files, deletion maps and the package for workers: kilobytes, but no query runs
           without them. The links are symbolic, so scratch may be another file system than the warehouse.
INVARIANT  a folder is removed only while its lock is held: the kernel gives a lock up when its process ends, and only
           then. Process ids are used again and are never trusted alone.
INVARIANT  folders of other machines, and those without an owner file that is one, are left alone.
CRASH      between making a folder and locking it: its name begins with a point, nobody takes it for a live one.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tablestore_engine.runtime.ownership import USERS, Users, check_owner, make_private

PREFIX = "spark-"
_OWNER = "owner"
_ATTEMPTS, _PAUSE = 20, 0.05  # seconds: at most one in all, and only while something is left
_HELD: dict[Path, int] = {}


def open_process_folder(parent: Path, *, users: Users = USERS) -> Path:
    """A new folder for this process (mode 0700), removed at its exit; dead ones beside it are removed now.

    `parent` may be shared by users who trust each other. Raises FixRequest TS1992 when it is a stranger's.
    """
    parent.mkdir(parents=True, exist_ok=True)
    check_owner(parent, "scratch folder", "remove it", users=users)
    remove_dead_folders(parent)
    making = Path(tempfile.mkdtemp(prefix=f".making-{os.getpid()}-", dir=parent))
    folder = parent / making.name.replace(".making-", PREFIX, 1)
    try:
        lock = _lock_owner(making / _OWNER)
        making.rename(folder)
    except OSError:  # a full disk: what nobody would ever remove goes now
        shutil.rmtree(making, ignore_errors=True)
        raise
    _HELD[folder] = lock
    atexit.register(remove_own_folder, folder, os.getpid())
    return folder


def _lock_owner(path: Path) -> int:
    """The locked handle of a new owner file."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, json.dumps(_identity(os.getpid())).encode())
    except OSError:
        os.close(lock)
        raise
    return lock


def remove_dead_folders(parent: Path) -> tuple[Path, ...]:
    """Remove the folders of this machine's dead processes; those removed."""
    found = [path for path in sorted(parent.glob(f"{PREFIX}*")) if path.is_dir() and not path.is_symlink()]
    return tuple(folder for folder in found if _remove_if_dead(folder))


def _remove_if_dead(folder: Path) -> bool:
    try:
        lock = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:  # not ours, or somebody removes it now
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_of_dead_process(os.read(lock, 4096)):
            return False
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # locked: its process lives
        return False
    finally:
        os.close(lock)
    return not folder.exists()


def _is_of_dead_process(owner: bytes) -> bool:
    """The lock is free; where locks do not reach (some network folders), host, pid and start time decide too."""
    try:
        told = json.loads(owner)
        host, pid, started = str(told["host"]), int(told["pid"]), told["started"]
    except (ValueError, KeyError, TypeError):
        return False
    return host == platform.node() and (started is None or started != _start_time(pid))


def _identity(pid: int) -> dict[str, object]:
    """A process as no other has been or will be: its start time differs from that of a later one with its id."""
    return {"host": platform.node(), "pid": pid, "started": _start_time(pid)}


def _start_time(pid: int) -> str | None:
    """Boot and clock ticks since, as Linux says it; None for no such process and where it is not said."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"


def remove_own_folder(folder: Path, owner: int, pause: Callable[[float], None] = time.sleep) -> None:
    """At exit a thread or the JVM may still be inside a statement and make files: repeated until nothing is left.

    What is made after the last attempt has no owner file and stays; `pause` takes seconds.
    """
    if os.getpid() != owner:  # a forked child must not remove its parent's folder
        return
    for _ in range(_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        pause(_PAUSE)


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
