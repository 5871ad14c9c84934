"""One S3 server for the run, a new bucket for each module, a proxy for each test that asks for one.

The server is compiled by the first run on a machine. Where there is no way to do that, these tests fail with TS1917:
a run that skipped them would prove nothing about object stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.s3.fault_proxy import FaultProxy
from tablestore_engine.devservers.s3_server import S3ServerInfo, make_bucket, start_s3_server, stop_s3_server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3ServerInfo]:
    """A running server with no bucket."""
    folder = tmp_path_factory.mktemp("s3")
    yield start_s3_server(folder, say=print)
    assert stop_s3_server(folder)


@pytest.fixture(scope="module")
def bucket(s3_server: S3ServerInfo) -> str:
    """The name of an empty bucket; it is a folder below `objects`."""
    name = f"bucket-{len(list((Path(s3_server.data_dir) / 'objects').iterdir()))}"
    make_bucket(s3_server, name)
    return name


@pytest.fixture
def proxy(s3_server: S3ServerInfo) -> Iterator[FaultProxy]:
    """It passes everything on until a test sets its `plan`."""
    with FaultProxy(s3_server.url) as made:
        yield made
    assert made.errors == []


@pytest.fixture
def credentials(s3_server: S3ServerInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment, where the engine looks for them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
