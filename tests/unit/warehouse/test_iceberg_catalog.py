"""The entry of a table in an Iceberg catalog, by a catalog without a server: order, ownership, failures."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixRequest, TableSpec, WriteSpec
from tests.unit.store.iceberg_world import ICEBERG, metadata
from tests.unit.store.table_world import open_table

OPTIONS = {**ICEBERG, "metadata.iceberg.catalog": "prod"}
SPEC = WriteSpec(table=TableSpec(primary_key=("id",), options=OPTIONS))


class NoSuchTableError(Exception):
    """pyiceberg's."""


class TableAlreadyExistsError(Exception):
    """pyiceberg's."""


class RESTError(Exception):
    """pyiceberg's."""


class BadRequestError(RESTError):
    """pyiceberg's."""


class RestLike:
    """Entries by name, as a REST catalog has them."""

    name = "prod"

    def __init__(self) -> None:
        self.entries: dict[tuple[str, ...], str] = {}
        self.failure: Exception | None = None
        self.replaces = True

    def create_namespace_if_not_exists(self, namespace: Sequence[str]) -> None:
        """Fails when it shall."""
        if self.failure is not None:
            raise self.failure

    def load_table(self, key: tuple[str, ...]) -> SimpleNamespace:
        """The entry."""
        if key not in self.entries:
            raise NoSuchTableError
        return SimpleNamespace(metadata_location=self.entries[key])

    def register_table(self, key: tuple[str, ...], path: str, overwrite: bool = False) -> None:
        """As pyiceberg's."""
        if key in self.entries and not (overwrite and self.replaces):
            raise TableAlreadyExistsError("it is there already")
        self.entries[key] = path

    def drop_table(self, key: tuple[str, ...]) -> None:
        """Without files."""
        if self.failure is not None:
            raise self.failure
        if self.entries.pop(key, None) is None:
            raise NoSuchTableError


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> RestLike:
    """What pyiceberg.catalog.load_catalog gives."""
    made = RestLike()
    package, module = types.ModuleType("pyiceberg"), types.ModuleType("pyiceberg.catalog")
    module.load_catalog = lambda name: {"prod": made}[name]  # type: ignore[attr-defined]
    failures = types.ModuleType("pyiceberg.exceptions")
    for one in (NoSuchTableError, TableAlreadyExistsError, RESTError, BadRequestError):
        setattr(failures, one.__name__, one)
    monkeypatch.setitem(sys.modules, "pyiceberg", package)
    monkeypatch.setitem(sys.modules, "pyiceberg.exceptions", failures)
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", module)
    return made


def write(root: Path, number: int) -> str | None:
    """One commit; what is wrong with Iceberg."""
    return Engine(str(root)).write("demo.t", pa.table({"id": [number]}), SPEC).iceberg_trouble


def entry(catalog: RestLike) -> str:
    """The name of the metadata file."""
    return catalog.entries["demo", "t"].rpartition("/")[2]


def test_each_commit_moves_the_entry(tmp_path: Path, catalog: RestLike) -> None:
    """A tag, a rename and a drop too."""
    assert [write(tmp_path, number) for number in (1, 2)] == [None, None]
    assert entry(catalog) == "v2.metadata.json"
    engine = Engine(str(tmp_path))
    engine.table("demo.t").tag("a")
    assert entry(catalog) == "v3.metadata.json"
    engine.rename("demo.t", "demo.u")
    assert list(catalog.entries) == [("demo", "u")]
    assert "/u/metadata/" in catalog.entries["demo", "u"]
    engine.drop_table("demo.u")
    assert catalog.entries == {}


def test_a_failure_is_in_the_report_and_the_next_commit_catches_up(tmp_path: Path, catalog: RestLike) -> None:
    """The commit stands; sync says the error; DROP TABLE is done all the same."""
    write(tmp_path, 1)
    catalog.failure = OSError("no route to host")
    assert "no route to host" in str(write(tmp_path, 2))
    engine = Engine(str(tmp_path))
    assert engine.table("demo.t").count() == 2
    with pytest.raises(Exception, match="TS1585"):
        engine.table("demo.t").sync_iceberg()
    assert entry(catalog) == "v1.metadata.json"
    catalog.failure = None
    assert write(tmp_path, 3) is None
    assert entry(catalog) == "v3.metadata.json"
    catalog.failure = OSError("no route to host")
    engine.drop_table("demo.t")
    catalog.failure = None
    assert write(tmp_path, 1) is None
    assert entry(catalog) == "v1.metadata.json"


def test_an_entry_never_goes_back(tmp_path: Path, catalog: RestLike) -> None:
    """A writer that was overtaken leaves the newer version."""
    write(tmp_path, 1)
    location = catalog.entries["demo", "t"].replace("v1.", "v9.")
    Path(location).write_text("{}")
    catalog.entries["demo", "t"] = f"file://{location}"
    version_of_another = dict(catalog.entries)
    Path(location).with_name("version-hint.text").write_text("1")
    assert write(tmp_path, 2) is None
    assert catalog.entries == version_of_another


def test_the_entry_of_another_table_stays(tmp_path: Path, catalog: RestLike) -> None:
    """It is named, and nothing is changed."""
    catalog.entries["demo", "t"] = "s3://bucket/other/metadata/00001-a.metadata.json"
    assert "TS1586" in str(write(tmp_path, 1))
    assert catalog.entries["demo", "t"].startswith("s3://bucket/other")


def test_a_catalog_that_cannot_replace_is_refused(tmp_path: Path, catalog: RestLike) -> None:
    """The entry is not dropped for it."""
    catalog.replaces = False
    assert write(tmp_path, 1) is None
    assert "TS1587" in str(write(tmp_path, 2))
    assert entry(catalog) == "v1.metadata.json"
    assert metadata(open_table(tmp_path))["current-snapshot-id"] == 2


def test_metadata_that_a_server_cannot_read_are_refused(tmp_path: Path, catalog: RestLike) -> None:
    """With the version that it may know; the commit stands."""
    catalog.failure = BadRequestError("unknown spec version 3")
    trouble = str(write(tmp_path, 1))
    assert "TS1587" in trouble
    assert "metadata.iceberg.format-version" in trouble
    assert Engine(str(tmp_path)).table("demo.t").count() == 1


def test_a_catalog_without_metadata_is_refused(tmp_path: Path) -> None:
    """Before the table is there."""
    table = TableSpec(options={"metadata.iceberg.catalog": "prod"})
    with pytest.raises(FixRequest, match="TS1588"):
        Engine(str(tmp_path)).write("demo.t", pa.table({"id": [1]}), WriteSpec(table=table))
    assert not Engine(str(tmp_path)).exists("demo.t")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that has it."""
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    assert "dbt-tablestore[iceberg]" in str(write(tmp_path, 1))
