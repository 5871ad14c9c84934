"""Folders outside of the warehouse that data files of other engines may lie in (Paimon's `data-file.external-paths`).

CHANGE     which folders outside of the warehouse are read
Steps      the user names folders → a manifest names a file by its whole path → the file is in one of them, or refused
INVARIANT  what a manifest says opens nothing: only files of the named folders are read, by their plain path. A part
           `..` or `.`, another scheme, a longer name of the same beginning and a link on the way are refused.
INVARIANT  nothing in these folders is written, moved or deleted: they are another engine's. No folder of them has a
           part in common with the warehouse, whose files are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from tablestore_engine.errors import EngineBug, FixRequest, Unsupported
from tablestore_engine.fileio.local import LocalFileIO

_SCHEME, _LOCAL_HOSTS = "file:", ("", "localhost")
_ALIKE = 256  # folders of one process
FolderNames = Sequence[str] | Callable[[], Sequence[str]]


class ExternalFolder(LocalFileIO):
    """One such folder. Picklable; each process has one for a folder, so that equal plans are equal."""

    def _check_folder(self, folder: str) -> None:
        """No folder is remembered: others change what lies here, and this object lives as long as the process."""
        self._real_folders.clear()
        super()._check_folder(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_folder, (self.root,)

    def _refuse(self, *paths: Any, **_: Any) -> NoReturn:  # noqa: ANN401 - stands in for methods of all kinds
        raise EngineBug(
            "TS1228",
            f"{paths[:1]} was about to be changed",
            why=f"{self.root} is not the warehouse's: files of other engines are only read there",
            fix="report this with the command",
        )

    mkdirs = write = copy = write_many = replace = create_exclusive = open_output = _refuse
    rename = delete = delete_many = delete_tree = _refuse


@lru_cache(_ALIKE)
def open_folder(root: str) -> ExternalFolder:
    """The same object for the same folder."""
    return ExternalFolder(root)


class ExternalFolders:
    """Those of one warehouse, by default none. A function is asked when the first such file is met: reading a dbt
    profile takes longer than most commands.
    """

    def __init__(self, named: FolderNames = (), warehouse: str = "") -> None:
        """Raises FixRequest TS1227."""
        self._named, self._warehouse = named, warehouse
        self._folders = None if callable(named) else _all_checked(named, warehouse)

    @property
    def folders(self) -> tuple[str, ...]:
        """Absolute paths. Raises FixRequest TS1227, and what the function raises."""
        if self._folders is None and callable(self._named):
            self._folders = _all_checked(self._named(), self._warehouse)
        return self._folders or ()

    def open(self, address: str, name: str) -> tuple[str, ExternalFolder]:
        """The path of the data file `name` that a manifest places at `address`, and what reads it.

        Raises Unsupported TS1191 unless one of the folders allows it.
        """
        path = _plain_path(address)
        if path is None or path.rpartition("/")[2] != name:
            raise _not_allowed(name, address, "it is no plain path of that file on this machine")
        for folder in self.folders:
            if path.startswith(f"{folder}/"):
                return path, open_folder(folder)
        allowed = ", ".join(self.folders) or "none here"
        raise _not_allowed(name, address, f"folders outside of the warehouse that may be read: {allowed}")


def _plain_path(address: str) -> str | None:
    """The absolute path of `file:/a/b`, `file:///a/b` or `/a/b`, as it is written; None for anything else."""
    path = address
    if address[: len(_SCHEME)].lower() == _SCHEME:
        path = address[len(_SCHEME) :]
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            path = slash + rest if host in _LOCAL_HOSTS else ""
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or "\0" in path or any(one in ("", ".", "..") for one in parts[1:]):
        return None
    return path


def _all_checked(named: Sequence[str], warehouse: str) -> tuple[str, ...]:
    if isinstance(named, str):
        raise _unusable(named, "expected a list of folders, got one text")
    return tuple(dict.fromkeys(_checked(str(one), warehouse) for one in named))


def _checked(named: str, warehouse: str) -> str:
    path = _plain_path(named.rstrip("/"))
    if path is None:
        raise _unusable(named, "expected the absolute path of a folder of this machine, without `.` and `..`")
    if not warehouse.startswith("/"):
        return path
    ours, theirs = os.path.realpath(warehouse), os.path.realpath(path)
    if f"{ours}/".startswith(f"{theirs.rstrip('/')}/") or f"{theirs}/".startswith(f"{ours.rstrip('/')}/"):
        raise _unusable(
            named, f"it has files in common with the warehouse {warehouse}, which are ours to delete"
        )
    return path


def _unusable(named: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1227",
        f"external_paths cannot have {named[:200]!r}",
        why=why,
        fix="name the folders of data-file.external-paths of the tables, as in external_paths: [/data/lake]",
    )


def _not_allowed(name: str, address: str, why: str) -> Unsupported:
    return Unsupported(
        "TS1191",
        f"data file {name} lies outside of its table and cannot be read",
        why=f"its manifest names the path {address[:200]!r}; {why}",
        fix="if you trust the writer of the table, add its folder to `external_paths` of the profile, or to "
        "Engine(…, external_paths=[…]); Spark's format(tablestore) reads no such file: use SQL or Table.read",
    )


NO_FOLDERS = ExternalFolders()
