"""pyiceberg's SqlCatalog over SQLite: a table is registered by its commits, and read through the catalog.

The package is that of an environment of its own, behind the packages of this process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from integration_tests.interop.pyiceberg_config import configure_catalog
from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec

OPTIONS = {"metadata.iceberg.storage": "table-location", "metadata.iceberg.catalog": "shop"}
SPEC = WriteSpec(table=TableSpec(primary_key=("id",), options=OPTIONS))


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The catalog `shop` of pyiceberg's configuration, in an empty database."""
    settings = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"{tmp_path}/none"}
    configure_catalog(tmp_path, monkeypatch, type="sql", **settings)
    from pyiceberg.catalog.sql import SqlCatalog

    made = SqlCatalog("shop", **settings)
    yield made
    made.close()


def rows(*numbers: int) -> pa.Table:
    """Rows of these keys."""
    return pa.table({"id": list(numbers), "text": [f"{one}" for one in numbers]})


def seen(catalog: Any, name: str = "t") -> tuple[int, list[int]]:
    """Snapshot and keys that a reader of the catalog finds."""
    table = catalog.load_table(("demo", name))
    return table.current_snapshot().snapshot_id, sorted(table.scan().to_arrow()["id"].to_pylist())


def test_readers_of_the_catalog_see_each_commit(catalog: Any, tmp_path: Path) -> None:
    """Writes, deletes, a rename, and a drop, which deletes no file of others."""
    engine = Engine(str(tmp_path / "warehouse"))
    for number in (1, 2, 3):
        assert engine.write("demo.t", rows(number), SPEC).iceberg_trouble is None
        assert seen(catalog) == (number, list(range(1, number + 1)))
    engine.table("demo.t").delete("id = 2")
    assert seen(catalog) == (4, [1, 3])
    engine.rename("demo.t", "demo.u")
    assert not catalog.table_exists(("demo", "t"))
    assert seen(catalog, "u") == (4, [1, 3])
    engine.drop_table("demo.u")
    assert not catalog.table_exists(("demo", "u"))
    assert engine.write("demo.u", rows(7), SPEC).iceberg_trouble is None
    assert seen(catalog, "u") == (1, [7])


def test_an_entry_that_was_lost_is_made_again(catalog: Any, tmp_path: Path) -> None:
    """By sync, and an old one is brought up to date by the next commit."""
    engine = Engine(str(tmp_path / "warehouse"))
    engine.write("demo.t", rows(1), SPEC)
    old = catalog.load_table(("demo", "t")).metadata_location
    engine.write("demo.t", rows(2), SPEC)
    catalog.drop_table(("demo", "t"))
    engine.table("demo.t").sync_iceberg()
    assert seen(catalog) == (2, [1, 2])
    catalog.drop_table(("demo", "t"))
    catalog.register_table(("demo", "t"), old)
    engine.write("demo.t", rows(3), SPEC)
    assert seen(catalog) == (3, [1, 2, 3])


def test_writers_at_once_leave_the_newest_version(catalog: Any, tmp_path: Path) -> None:
    """Each has a catalog of its own; none fails, and none puts an older version over a newer one."""
    Engine(str(tmp_path / "warehouse")).write("demo.t", rows(0), SPEC)
    spec = WriteSpec(mode=WriteMode.UPSERT)
    failures: list[object] = []

    def run(first: int) -> None:
        engine = Engine(str(tmp_path / "warehouse"))
        try:
            for number in range(first, first + 5):
                failures.extend(filter(None, [engine.write("demo.t", rows(number), spec).iceberg_trouble]))
        except Exception as error:  # noqa: BLE001 - the test shows it
            failures.append(error)

    threads = [threading.Thread(target=run, args=(100 * at,)) for at in (1, 2, 3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    newest = Engine(str(tmp_path / "warehouse")).table("demo.t").latest_snapshot_id()
    snapshot, keys = seen(catalog)
    assert (snapshot, len(keys)) == (newest, 16)
