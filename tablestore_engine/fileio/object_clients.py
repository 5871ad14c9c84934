"""Clients of object stores: one set for each process and address, made at first use.

INVARIANT  no client retries on its own but `streams`: a repeated conditional put whose first answer was lost would look
           like another writer's (object_store.py repeats, and knows its own objects).
INVARIANT  a client never crosses a fork: obstore's runtime hangs there, so a forked child is refused (TS1265).
INVARIANT  every request has a time-out; credentials stay inside the client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.store import AzureStore, GCSStore, S3Store

from tablestore_engine.errors import FixRequest, StorageError
from tablestore_engine.fileio.object_errors import read_answer
from tablestore_engine.fileio.store_address import StoreAddress
from tablestore_engine.runtime.locks import OrderedLock, Rank

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig  # exist for type checkers alone

ObjectStore = S3Store | GCSStore | AzureStore

# config: an own typed dictionary for each class, of which `_config` gives the keys that the scheme takes
_MAKERS: Mapping[str, Callable[..., ObjectStore]] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}

_CONNECT_SECONDS = 5
_STREAM_RETRIES = 6
_LOCK = OrderedLock("clients of object stores", Rank.PROCESS)
_CLIENTS: dict[StoreAddress, Clients] = {}
_FIRST_USE: list[int] = []  # the process that made the first client


@dataclass(frozen=True)
class Clients:
    """`single`: one attempt for each request; `streams`: parts of large files, which the library repeats itself."""

    single: ObjectStore
    streams: ObjectStore


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
            _CLIENTS[address] = Clients(_open(address, 0), _open(address, _STREAM_RETRIES))
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
