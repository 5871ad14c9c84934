"""Which folder an address of a warehouse means.

Names      local_folder   path or `file:` address → path, relative ones as they are
           own_folder     the same, absolute; another user's is refused
INVARIANT  an address of a store that there is no code for is refused by its scheme; it never becomes a folder's name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.ownership import Users, check_owner

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: one is a drive
_LOCAL_HOSTS = ("", "localhost")


def local_folder(address: str) -> str:
    """The path of a folder on this machine. Raises FixRequest TS1060 for another store or another host."""
    match = _SCHEME.match(address)
    if match is None:
        return address
    rest = address[match.end() :]
    if match[1].lower() != "file":
        raise _refused(address, f"there is no code for stores of scheme {match[1]!r}")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in _LOCAL_HOSTS:
            raise _refused(address, f"{host!r} is another machine")
        rest = slash + path
    return unquote(rest)


def own_folder(address: str, users: Users) -> str:
    """The absolute path; it need not exist. Raises FixRequest TS1060, TS1992 (another user's)."""
    if "\0" in address:
        raise _refused(address, "no path has a NUL character")
    path = os.path.abspath(local_folder(address))
    fix = "name a warehouse of your own, or run as its owner"
    check_owner(Path(path), "warehouse", fix, users=users)
    return path


def _refused(address: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1060",
        f"a warehouse cannot lie at {address}",
        why=why,
        fix="name a folder of a local or mounted disk, as a path or file:///path "
        "(write ./ in front of a relative folder whose name has a colon)",
    )
