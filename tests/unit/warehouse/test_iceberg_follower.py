"""Each way to change a table through a warehouse is followed by its Iceberg metadata, and never fails for it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixRequest, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import RetryError
from tablestore_engine.format.schema_change import set_options
from tests.unit.store.iceberg_world import ICEBERG, assert_complete, metadata, snapshot_ids
from tests.unit.store.table_world import open_table

NAME = Identifier("demo", "t")
SPEC = WriteSpec(table=TableSpec(primary_key=("id",), options=ICEBERG))
HADOOP = {"metadata.iceberg.storage": "hadoop-catalog"}


def rows(*numbers: int) -> pa.Table:
    """Rows of these keys."""
    return pa.table({"id": list(numbers), "v": [f"{one}" for one in numbers]})


def written(root: Path, **options: str) -> Engine:
    """A table with two commits."""
    engine = Engine(str(root))
    spec = dataclasses.replace(SPEC, table=TableSpec(primary_key=("id",), options={**ICEBERG, **options}))
    for number in (1, 2):
        engine.write("demo.t", rows(number), spec)
    return engine


def test_a_write_is_followed(tmp_path: Path) -> None:
    """At once, in the same call."""
    engine = written(tmp_path)
    assert_complete(open_table(tmp_path))
    engine.table("demo.t").compact(full=True)
    engine.table("demo.t").restore(snapshot=1)
    engine.table("demo.t").rescale(3)
    assert_complete(open_table(tmp_path))
    assert metadata(open_table(tmp_path))["current-snapshot-id"] > 3


def test_a_staged_snapshot_is_followed_by_its_publication(tmp_path: Path) -> None:
    """By the statement, and as a group."""
    engine = written(tmp_path)
    engine.write("demo.t", rows(3), dataclasses.replace(SPEC, stage="one"))
    assert snapshot_ids(metadata(open_table(tmp_path))) == [1, 2]
    engine.table("demo.t").publish_staged("one")
    assert_complete(open_table(tmp_path))
    engine.write("demo.t", rows(4), dataclasses.replace(SPEC, stage="two"))
    gate = engine.gate
    [done] = gate.publish(gate.read_book("demo").staged)
    assert done.error is None
    assert_complete(open_table(tmp_path))
    assert snapshot_ids(metadata(open_table(tmp_path))) == [1, 2, 3, 4]


def test_a_failure_is_in_the_report_and_the_next_commit_makes_it_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit stands."""
    engine = written(tmp_path)

    def fails(_: object) -> None:
        raise RetryError("TS1371", "no metadata", why="a test", fix="none")

    with monkeypatch.context() as patch:
        patch.setattr("tablestore_engine.store.iceberg_metadata.iceberg_sync.sync_iceberg", fails)
        report = engine.write("demo.t", rows(3), SPEC)
    assert report.snapshot_id == 3
    assert report.has_trouble
    assert "TS1371" in str(report.iceberg_trouble)
    assert "Iceberg metadata was not written" in report.summary()
    assert snapshot_ids(metadata(open_table(tmp_path))) == [1, 2]
    assert not engine.write("demo.t", rows(4), SPEC).has_trouble
    assert_complete(open_table(tmp_path))


def test_a_tag_is_followed(tmp_path: Path) -> None:
    """Created and deleted."""
    engine = written(tmp_path)
    engine.table("demo.t").tag("first", 1)
    assert metadata(open_table(tmp_path))["refs"]["first"]["snapshot-id"] == 1
    engine.table("demo.t").delete_tag("first")
    assert set(metadata(open_table(tmp_path))["refs"]) == {"main"}


def test_a_new_name_has_new_paths(tmp_path: Path) -> None:
    """The metadata of the old name is gone with it."""
    engine = written(tmp_path, **HADOOP)
    assert (tmp_path / "iceberg/demo/t/metadata/version-hint.text").exists()
    engine._warehouse.relations.rename(NAME, Identifier("demo", "u"))
    assert not (tmp_path / "iceberg/demo/t").exists()
    value = metadata(open_table(tmp_path), f"{tmp_path}/iceberg/demo/u/metadata")
    assert value["location"] == f"{tmp_path}/iceberg/demo/u"
    assert snapshot_ids(value) == [1, 2]


def test_a_drop_takes_the_metadata_along(tmp_path: Path) -> None:
    """Also what is outside of the table's folder, and nothing of another table."""
    engine = written(tmp_path, **HADOOP)
    engine.write("demo.other", rows(1), dataclasses.replace(SPEC, table=TableSpec(options=HADOOP)))
    engine._warehouse.relations.drop_table(NAME)
    assert not (tmp_path / "iceberg/demo/t").exists()
    assert (tmp_path / "iceberg/demo/other/metadata/version-hint.text").exists()


def test_a_clone_is_followed(tmp_path: Path) -> None:
    """In its own place."""
    engine = written(tmp_path)
    engine._warehouse.relations.clone_table(NAME, Identifier("demo", "copy"))
    copy = engine.table("demo.copy").store
    assert_complete(copy)


def test_a_sync_of_a_table_without_the_option_is_refused(tmp_path: Path) -> None:
    """TS1028 names the option; with it the same call lists all snapshots."""
    engine = written(tmp_path)
    table = engine.table("demo.t")
    table.store.alter(lambda schema: set_options(schema, {"metadata.iceberg.storage": "disabled"}))
    with pytest.raises(FixRequest, match="TS1028"):
        table.sync_iceberg()
    table.store.alter(lambda schema: set_options(schema, ICEBERG))
    report = table.sync_iceberg()
    assert report is not None
    assert report.snapshot_id == table.latest_snapshot_id()
    assert_complete(open_table(tmp_path))
