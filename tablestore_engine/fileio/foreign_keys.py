"""Listings of folders with foreign objects whose keys are no paths: an empty part, `.`, `..`, control characters.

WHY        obstore refuses a whole listing because of one such key; the client of pyarrow lists any key. It is used for
           such folders alone.
INVARIANT  such an object is left out of every listing: the engine never reads, copies or deletes it, and names it in a
           warning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyarrow import fs

from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.fileio.store_address import StoreAddress

_NAMES_SHOWN = 5


@dataclass(frozen=True)
class FoundKeys:
    """What lies below a folder: `entries` with keys that are paths, by path; `foreign` keys, shown by `repr`."""

    entries: tuple[FileStatus, ...]
    foreign: tuple[str, ...]

    @property
    def shown(self) -> str:
        more = len(self.foreign) - _NAMES_SHOWN
        return ", ".join(self.foreign[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


ListAnyKeys = Callable[[str, bool], FoundKeys]


def s3_listing(address: StoreAddress) -> ListAnyKeys:
    """(key of a folder, whether with all folders below it) → its keys. Raises OSError."""

    def listed(key: str, recursive: bool) -> FoundKeys:
        prefix = f"{address.bucket}/{key}" if key else address.bucket
        selector = fs.FileSelector(prefix, allow_not_found=True, recursive=recursive)
        return sort_keys(f"{address.scheme}://", prefix, _client(address).get_file_info(selector))

    return listed


def sort_keys(scheme: str, prefix: str, found: Sequence[fs.FileInfo]) -> FoundKeys:
    """Keys that are paths, and others."""
    entries, foreign = [], []
    for one in found:
        rest = one.path[len(prefix) + 1 :]
        if is_path(rest):
            entries.append(_status(scheme, one))
        elif rest:
            foreign.append(repr(one.path.partition("/")[2]))
    return FoundKeys(tuple(sorted(entries, key=lambda one: one.path)), tuple(sorted(set(foreign))))


def is_path(key: str) -> bool:
    """Whether obstore takes it."""
    is_plain = not any(ord(one) < 0x20 or ord(one) == 0x7F for one in key)
    return is_plain and all(part not in ("", ".", "..") for part in key.split("/"))


def _status(scheme: str, one: fs.FileInfo) -> FileStatus:
    is_dir = one.type is fs.FileType.Directory
    modified_ms = 0 if is_dir or one.mtime_ns is None else one.mtime_ns // 1_000_000
    return FileStatus(f"{scheme}{one.path}", one.base_name, 0 if is_dir else one.size, modified_ms, is_dir)


def _client(address: StoreAddress) -> fs.S3FileSystem:
    """With the address's settings; credentials come from the environment or the machine, as obstore's do."""
    settings, endpoint = address.settings, address.endpoint(os.environ)
    scheme, _, host = (endpoint or "").partition("://")
    region = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        anonymous=settings.anonymous,
        region=region,
        endpoint_override=host.rstrip("/") or None,
        scheme=scheme.lower() or None,
        force_virtual_addressing=not settings.path_style,
        request_timeout=settings.timeout_s,
        connect_timeout=settings.timeout_s,
    )
