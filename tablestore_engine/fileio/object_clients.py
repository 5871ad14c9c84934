"""Clients of object stores: one set for each process and address, made at first use.

INVARIANT  no client retries on its own but `streams`: a repeated conditional put whose first answer was lost would look
           like another writer's (object_store.py repeats, and knows its own objects).
INVARIANT  a client never crosses a fork: obstore's runtime hangs there, so a forked child is refused (TS1265).
INVARIANT  every request has a time-out; credentials stay inside the client.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.store import AzureStore, GCSStore, S3Store

from tablestore_engine.errors import FixRequest, StorageError
from tablestore_engine.fileio.object_errors import read_answer
from tablestore_engine.fileio.store_address import StoreAddress
from tablestore_engine.runtime.locks import OrderedLock, Rank

if TYPE_CHECKING:
    from obstore.store import (
        AzureConfig,
        ClientConfig,
        GCSConfig,
        RetryConfig,
        S3Config,
    )  # exist for type checkers alone

ObjectStore = S3Store | GCSStore | AzureStore

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
    try:
        match address.scheme:
            case "s3":
                return S3Store(address.bucket, config=_s3(address), client_options=client, retry_config=retry)
            case "gs":
                return GCSStore(
                    address.bucket, config=_gcs(address), client_options=client, retry_config=retry
                )
            case _:
                return AzureStore(
                    address.bucket, config=_azure(address), client_options=client, retry_config=retry
                )
    except Exception as error:
        raise FixRequest(
            "TS1212",
            f"no client can be made for {address.root}",
            why=read_answer(error).why,
            fix="correct the address and the credentials in the environment (docs/object-stores.md)",
        ) from error


def _s3(address: StoreAddress) -> S3Config:
    settings = address.settings
    given: S3Config = {}
    if settings.endpoint is not None:
        given["endpoint"] = settings.endpoint
    if settings.region is not None:
        given["region"] = settings.region
    if not settings.path_style:
        given["virtual_hosted_style_request"] = True
    if settings.anonymous:
        given["skip_signature"] = True
    return given


def _gcs(address: StoreAddress) -> GCSConfig:
    settings = address.settings
    given: GCSConfig = {}
    if settings.endpoint is not None:
        given["base_url"] = settings.endpoint
    if settings.anonymous:
        given["skip_signature"] = True
    return given


def _azure(address: StoreAddress) -> AzureConfig:
    settings = address.settings
    given: AzureConfig = {}
    if settings.endpoint is not None:
        given["endpoint"] = settings.endpoint
    if settings.account is not None:
        given["account_name"] = settings.account
    if settings.anonymous:
        given["skip_signature"] = True
    return given
