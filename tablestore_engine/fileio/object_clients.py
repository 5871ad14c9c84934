"""Clients of object stores: one set for each process and address, made at first use.

Port       `StoreClient` and `open_upload` are what is used of obstore; a simulated store implements the same.
INVARIANT  no client retries on its own but that of `open_upload`: a repeated conditional put whose first answer was
           lost would look like another writer's (object_store.py repeats, and knows its own objects).
INVARIANT  a client never crosses a fork: obstore's runtime hangs there, so a forked child is refused (TS1265).
INVARIANT  every request has a time-out; credentials stay inside the client.
WHY        obstore refuses a whole listing because of one key that is no path; the client of pyarrow lists any key. It
           is used for such folders alone.
INVARIANT  an object with such a key is left out of every listing: the engine never reads, copies or deletes it, and
           names it in a warning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol

import obstore
from obstore.store import AzureStore, GCSStore, S3Store
from pyarrow import fs

from tablestore_engine.errors import FixRequest, StorageError
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.fileio.object_errors import read_answer
from tablestore_engine.fileio.object_output import Upload
from tablestore_engine.fileio.store_address import StoreAddress
from tablestore_engine.runtime.locks import OrderedLock, Rank

if TYPE_CHECKING:
    from obstore import GetOptions, ListResult, ObjectMeta, PutMode, PutResult
    from obstore.store import ClientConfig, RetryConfig  # exist for type checkers alone
    from typing_extensions import Buffer


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


ObjectStore = S3Store | GCSStore | AzureStore

# config: an own typed dictionary for each class, of which `_config` gives the keys that the scheme takes
_MAKERS: Mapping[str, Callable[..., ObjectStore]] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_LISTINGS: Mapping[str, Callable[[StoreAddress], ListAnyKeys]] = {"s3": s3_listing}

_CONNECT_SECONDS = 5
_STREAM_RETRIES = 6
_LOCK = OrderedLock("clients of object stores", Rank.PROCESS)
_CLIENTS: dict[StoreAddress, Clients] = {}
_FIRST_USE: list[int] = []  # the process that made the first client


class StoreObject(Protocol):
    """What is used of obstore's GetResult."""

    @property
    def meta(self) -> ObjectMeta:
        """Size, entity tag and version."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Metadata by name."""

    def bytes(self) -> Buffer:
        """The content."""


class StoreClient(Protocol):
    """What is used of obstore's stores. Raises FileNotFoundError and the classes of obstore.exceptions."""

    def get(self, path: str, *, options: GetOptions | None = None) -> StoreObject:
        """An object, a range of it, or its head."""

    def get_range(self, path: str, *, start: int, end: int) -> Buffer:
        """Bytes from `start` to before `end`."""

    def head(self, path: str) -> ObjectMeta:
        """Size, entity tag and version."""

    def list(self, prefix: str | None = None, *, chunk_size: int = 50) -> Iterable[Sequence[ObjectMeta]]:
        """All objects below a name."""

    def list_with_delimiter(self, prefix: str | None = None) -> ListResult[Sequence[ObjectMeta]]:
        """Objects directly below a name, and the names that have objects below them."""

    def put(
        self, path: str, file: bytes, *, attributes: dict[str, str], use_multipart: bool, mode: PutMode
    ) -> PutResult:
        """One put; `mode` has its condition."""

    def copy(self, from_: str, to: str) -> None:
        """A copy inside of the store."""

    def delete(self, paths: str | Sequence[str]) -> None:
        """One object, or many in bulk."""


@dataclass(frozen=True)
class Clients:
    """`single`: one attempt for each request; `open_upload`: a large file, whose parts the library repeats itself;
    `list_any`: keys that `single` refuses, None where there is no such client.
    """

    single: StoreClient
    open_upload: Callable[[str], Upload]
    list_any: ListAnyKeys | None = None


Connect = Callable[[StoreAddress], Clients]


def connect(address: StoreAddress) -> Clients:
    """The clients of this process. Raises FixRequest TS1212, StorageError TS1265."""
    with _LOCK:
        if not _FIRST_USE:
            _FIRST_USE.append(os.getpid())
        if _FIRST_USE[0] != os.getpid():
            raise StorageError(
                "TS1265",
                f"the object store {address.root} cannot be used in this process",
                why=f"process {_FIRST_USE[0]} used an object store and then forked process {os.getpid()}",
                fix="start worker processes with multiprocessing's `spawn` or `forkserver` method",
            )
        if address not in _CLIENTS:
            streams = _open(address, _STREAM_RETRIES)
            listing = _LISTINGS.get(address.scheme)
            uploads, list_any = partial(obstore.open_writer, streams), listing and listing(address)
            _CLIENTS[address] = Clients(_open(address, 0), uploads, list_any)
        return _CLIENTS[address]


def _open(address: StoreAddress, retries: int) -> ObjectStore:
    settings = address.settings
    client: ClientConfig = {
        "timeout": timedelta(seconds=settings.timeout_s),
        "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        "user_agent": "dbt-tablestore",
    }
    if settings.endpoint is not None and settings.endpoint.lower().startswith("http:"):
        client["allow_http"] = True
    retry: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=120)}
    config, maker = _config(address), _MAKERS[address.scheme]
    try:
        return maker(address.bucket, config=config, client_options=client, retry_config=retry)
    except Exception as error:
        raise FixRequest(
            "TS1212",
            f"no client can be made for {address.root}",
            why=read_answer(error).why,
            fix="correct the address and the credentials in the environment (docs/object-stores.md)",
        ) from error


def _config(address: StoreAddress) -> dict[str, str | bool]:
    """The address's settings in the client's words; what is not given comes from the environment."""
    settings = address.settings
    given: dict[str, str | bool | None] = {
        "base_url" if address.scheme == "gs" else "endpoint": settings.endpoint,
        "region": settings.region,
        "account_name": settings.account,
        "virtual_hosted_style_request": None if settings.path_style else True,
        "skip_signature": settings.anonymous or None,
    }
    return {key: value for key, value in given.items() if value is not None}
