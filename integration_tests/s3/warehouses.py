"""Addresses of warehouses on the test server, and file systems on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.fileio.object_store import ObjectFileIO
from tablestore_engine.fileio.store_address import parse_address
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tests.doubles.faults import seeded_runtime


def address(
    bucket: str, prefix: str, url: str, *, timeout_s: int = 60, region: str = REGION, cache_mb: int = 0
) -> str:
    """A warehouse that is reached at `url`: the server itself, or a proxy. Without a disk cache unless a test asks."""
    return f"s3://{bucket}/{prefix}?endpoint={url}&region={region}&timeout_s={timeout_s}&cache_mb={cache_mb}"


def hurried(sleep: Callable[[float], None] = lambda _: None) -> Runtime:
    """Tokens of claims as they are, and pauses that take no time."""
    return replace(seeded_runtime(), new_uuid=SYSTEM.new_uuid, sleep=sleep)


def open_files(place: str, *, runtime: Runtime | None = None) -> ObjectFileIO:
    """Its file system; pauses take no time unless a runtime says so."""
    return ObjectFileIO(parse_address(place), runtime or hurried())
