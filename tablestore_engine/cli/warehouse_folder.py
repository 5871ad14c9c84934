"""The warehouse near the current folder, found without the engine: completion asks for it at each TAB.

INVARIANT  who can write a folder above ours (/tmp) must not choose the warehouse that a command opens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tablestore_engine.errors import FixRequest, StorageError
from tablestore_engine.fileio.storage_errors import explained

WAREHOUSE_ENV = "TABLESTORE_WAREHOUSE"
FOLDER = "warehouse"


class UnclearWarehouse(FixRequest):
    """TS1921: none is near, or several are."""


def owner_of(folder: Path) -> int:
    """The user id that a folder belongs to."""
    return folder.stat().st_uid


def our_users(environ: Mapping[str, str]) -> frozenset[int]:
    """The user of this process and, under sudo, the one who called it; none where the system has no user ids."""
    if not hasattr(os, "getuid"):
        return frozenset()
    sudo = environ.get("SUDO_UID", "") if os.getuid() == 0 else ""
    return frozenset({os.getuid(), *((int(sudo),) if sudo.isdecimal() else ())})


def is_adoptable(owner: int, users: frozenset[int]) -> bool:
    """Whether a folder of `owner` may be taken without being named."""
    return not users or owner in users


def find_folder(here: Path, users: frozenset[int], owner_of: Callable[[Path], int]) -> Path:
    """The warehouse near the current folder. Raises FixRequest TS1921, TS1930, StorageError TS1263."""
    if is_warehouse(here / FOLDER):
        return here / FOLDER
    for folder in here.parents:
        if _is_open_warehouse(folder / FOLDER):
            _require_owner(folder / FOLDER, users, owner_of)
            return folder / FOLDER
    below = sorted(path for path in here.glob(f"*/{FOLDER}") if _is_open_warehouse(path))
    if len(below) == 1:
        return below[0]
    found = ", ".join(str(path.relative_to(here)) for path in below)
    raise UnclearWarehouse(
        "TS1921",
        "it is not clear which warehouse is meant",
        why=f"there are {found}"
        if below
        else f"there is no folder `{FOLDER}` in {here}, above it or one below",
        fix=f"name it: --warehouse ADDRESS, or set {WAREHOUSE_ENV}",
    )


def _require_owner(folder: Path, users: frozenset[int], owner_of: Callable[[Path], int]) -> None:
    for one in (folder, folder.parent):
        owner = owner_of(one)
        if not is_adoptable(owner, users):
            raise FixRequest(
                "TS1930",
                f"the warehouse {folder} is not taken by itself",
                why=f"it was found above the current folder, and {one} belongs to user {owner}, not to you",
                fix=f"when you trust it, name it: --warehouse {folder}, or set {WAREHOUSE_ENV}",
            )


def is_warehouse(folder: Path) -> bool:
    """A folder with databases in it, or an empty one. Raises StorageError TS1263 for one that is closed to us."""
    with explained(str(folder)):
        if not folder.is_dir():
            return False
        names = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    return not names or any(name.endswith(".db") for name in names)


def _is_open_warehouse(folder: Path) -> bool:
    """The same of a folder that nobody named: one that is closed to us is somebody else's business."""
    try:
        return is_warehouse(folder)
    except StorageError:
        return False
