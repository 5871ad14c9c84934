"""Which address scheme leads to which store, and the FileIO of each. The only place that decides this.

CHANGE     which address leads to which store
Steps      a new store: its FileIO in a file beside local.py, which passes tests/unit/fileio/port_promises.py, and its
           scheme here (of object stores: in store_address.py)
INVARIANT  an address of a store that there is no code for is refused by its scheme; it never becomes a folder's name.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.fileio.store_address import (
    is_object_store,
    parse_address,
    unusable_setting,
    with_settings,
)
from tablestore_engine.runtime.ownership import Users, check_owner

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: one is a drive
NO_SETTINGS: Mapping[str, object] = MappingProxyType({})
_LOCAL_HOSTS = ("", "localhost")


def open_root(address: str, users: Users) -> tuple[str, FileIO]:
    """The root need not exist. Raises FixRequest TS1060, TS1210, TS1211, TS1992 (another user's)."""
    if is_object_store(address):
        from tablestore_engine.fileio.disk_cache import open_disk_cache
        from tablestore_engine.fileio.object_cache import CachedFileIO
        from tablestore_engine.fileio.object_store import ObjectFileIO
        from tablestore_engine.fileio.store_races import RaceCheck

        found = parse_address(address)
        store = found.store_name(os.environ)
        disk = open_disk_cache(store, found.settings.cache_mb << 20)
        return found.root, CachedFileIO(ObjectFileIO(found, before_claim=RaceCheck(store).ensure), disk=disk)
    scheme, _ = _split(address)
    return STORES[scheme](address, users)


def absolute_address(address: str, folder: Path, settings: Mapping[str, object] = NO_SETTINGS) -> str:
    """An address that means the same in every process: a relative folder lies in `folder`.

    `settings` of an object store are added to it. Raises FixRequest TS1060, TS1210, TS1211.
    """
    if is_object_store(address):
        return parse_address(with_settings(address, settings)).text
    if settings:
        raise unusable_setting(min(settings), f"the warehouse {address} is a folder, not an object store")
    return str((folder / Path(local_folder(address)).expanduser()).resolve())


def local_folder(address: str) -> str:
    """The path of a folder on this machine. Raises FixRequest TS1060 for another store or another host."""
    if is_object_store(address):
        raise _refused(address, "it is no folder of this machine")
    scheme, rest = _split(address)
    if scheme == "":
        return address
    if STORES[scheme] is not _open_local:
        raise _refused(address, "it is no folder of this machine")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in _LOCAL_HOSTS:
            raise _refused(address, f"{host!r} is another machine")
        rest = slash + path
    return unquote(rest)


def _split(address: str) -> tuple[str, str]:
    """Scheme, lower case, and what follows it. Raises FixRequest TS1060 for one that no store has."""
    match = _SCHEME.match(address)
    if match is None:
        return "", address
    if match[1].lower() not in STORES:
        raise _refused(address, f"there is no code for stores of scheme {match[1]!r}")
    return match[1].lower(), address[match.end() :]


def _open_local(address: str, users: Users) -> tuple[str, FileIO]:
    if "\0" in address:
        raise _refused(address, "no path has a NUL character")
    path = os.path.abspath(local_folder(address))
    fix = "name a warehouse of your own, or run as its owner"
    check_owner(Path(path), "warehouse", fix, users=users)
    return path, LocalFileIO(path)


def _refused(address: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1060",
        f"a warehouse cannot lie at {address}",
        why=why,
        fix="name a folder, as a path or file:///path, or an object store: s3://BUCKET/PREFIX, gs://…, az://… "
        "(write ./ in front of a relative folder whose name has a colon)",
    )


STORES: Mapping[str, Callable[[str, Users], tuple[str, FileIO]]] = {"": _open_local, "file": _open_local}
