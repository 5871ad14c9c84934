"""Owners of folders: ours are for this user alone, another user's are refused.

INVARIANT  this user, root, under sudo the caller, and whoever TABLESTORE_TRUSTED_OWNERS names may own a folder;
           nobody else may.
WHY        who owns a folder can exchange what is in it: programs that we run (cache), rows (warehouse, broker data).
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.errors import FixRequest

TRUSTED_ENV = "TABLESTORE_TRUSTED_OWNERS"
_ROOT = 0
_PRIVATE = 0o700


def _owner_of(path: Path) -> int | None:
    """User id of a folder, of the link itself when it is one; None when there is nothing that could be used.

    Whoever opens a path that cannot even be looked at says why: a closed folder, a name that is too long.
    """
    try:
        return os.lstat(path).st_uid
    except OSError:
        return None


def _name_of(user: int) -> str:
    """`anna`, or `1234` for an id without a name."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


@dataclass(frozen=True)
class Users:
    """Who we are (`current`), who owns a path (None: nothing is there), and what a user is called."""

    current: Callable[[], int] = os.geteuid
    owner_of: Callable[[Path], int | None] = _owner_of
    name_of: Callable[[int], str] = _name_of


USERS = Users()


def find_stranger(owner: int | None, name: str, current: int, trusted: str) -> str | None:
    """`name` when the owner is neither we nor root nor in `trusted` (names or ids with commas between)."""
    if owner is None or owner in (current, _ROOT):
        return None
    words = {word.strip() for word in trusted.split(",")}
    return None if name in words or str(owner) in words else name


def _trusted(users: Users, environ: Mapping[str, str] | None) -> str:
    env = os.environ if environ is None else environ
    caller = env.get("SUDO_UID", "") if users.current() == _ROOT else ""
    return f"{env.get(TRUSTED_ENV, '')},{caller}"


def is_strangers(owner: int | None, users: Users = USERS) -> bool:
    """Whether what this user id owns is not ours to take away."""
    if owner is None:
        return False
    return find_stranger(owner, users.name_of(owner), users.current(), _trusted(users, None)) is not None


def check_owner(
    folder: Path, what: str, fix: str, *, users: Users = USERS, environ: Mapping[str, str] | None = None
) -> None:
    """The folder, and where it leads when it is a link, is ours or nobody's. Raises FixRequest TS1992."""
    current, trusted = users.current(), _trusted(users, environ)
    for path in dict.fromkeys((folder, Path(os.path.realpath(folder)))):
        owner = users.owner_of(path)
        if owner is None:
            continue
        stranger = find_stranger(owner, users.name_of(owner), current, trusted)
        if stranger is not None:
            raise FixRequest(
                "TS1992",
                f"the {what} {path} belongs to the user {stranger}",
                why=f"this process runs as {users.name_of(current)}; the owner of a folder can change what is in it",
                fix=f"{fix}; or change its owner; or, when you trust {stranger}, set {TRUSTED_ENV}={stranger}",
            )


def make_private(
    folder: Path, what: str, fix: str, *, users: Users = USERS, environ: Mapping[str, str] | None = None
) -> None:
    """Make what is missing, for this user alone; what is there keeps its mode. Raises FixRequest TS1992."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        with contextlib.suppress(
            FileExistsError
        ):  # another process of ours was faster, or it is not ours: below
            path.mkdir(mode=_PRIVATE)
    check_owner(folder, what, fix, users=users, environ=environ)
