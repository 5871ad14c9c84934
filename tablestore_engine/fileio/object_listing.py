"""Folders of an object store as entries: files directly in them, and folders below.

INVARIANT  a key that is no path (foreign_keys.py) hides no other one: it is left out, and a warning names it, once for
           each folder of a process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tablestore_engine.display import visible
from tablestore_engine.errors import ForeignKeyListed
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.fileio.object_clients import Clients
from tablestore_engine.fileio.object_errors import answer_unknown
from tablestore_engine.fileio.store_retries import Retries

_LOGGER = logging.getLogger("tablestore_engine.fileio")


@dataclass(frozen=True)
class ObjectListing:
    """`clients` of this process."""

    clients: Callable[[], Clients]
    retries: Retries
    _warned: set[str] = field(default_factory=set)

    def list_folder(self, path: str, key: str) -> Sequence[FileStatus]:
        """Sorted by name, without hidden ones."""
        try:
            found = self.retries.repeat(path, lambda: self.clients().single.list_with_delimiter(key or None))
        except ForeignKeyListed as refused:
            return _shown(self.list_any(path, key, refused, is_recursive=False))
        start = len(key) + 1 if key else 0
        entries = [
            FileStatus(
                f"{path}/{one['path'][start:]}",
                one["path"][start:],
                one["size"],
                int(one["last_modified"].timestamp() * 1000),
                is_dir=False,
                mark=one["e_tag"],
            )
            for one in found["objects"]
            if one["path"] != key
        ]
        entries += [
            FileStatus(f"{path}/{one[start:]}", one[start:], 0, 0, is_dir=True)
            for one in map(_without_slash, found["common_prefixes"])
        ]
        return _shown(entries)

    def list_any(
        self, path: str, key: str, refused: ForeignKeyListed, *, is_recursive: bool
    ) -> Sequence[FileStatus]:
        """What lies in a folder that the usual client refused to list. Raises `refused` where no other client can."""
        listing = self.clients().list_any
        if listing is None:
            raise refused
        try:
            found = listing(key, is_recursive)
        except OSError as error:
            raise answer_unknown(path, str(error)) from error
        if path not in self._warned:
            self._warned.add(path)
            _LOGGER.warning(
                "TS1292 %s holds objects whose keys are no paths: %s. They are left out of every listing and are never "
                "deleted. Delete them with a tool of the store.",
                path,
                found.shown or visible(refused.why),
            )
        return found.entries


def _shown(entries: Iterable[FileStatus]) -> Sequence[FileStatus]:
    return sorted((one for one in entries if not one.name.startswith(".")), key=lambda one: one.name)


def _without_slash(prefix: str) -> str:
    return prefix.rstrip("/")
