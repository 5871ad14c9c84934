"""Expiry behind commits, and how far a log has to be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.errors import FixRequest
from tablestore_engine.store.retention import Retention
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.maintenance.expiry import Expiry, wanted_rules
from tablestore_engine.warehouse.maintenance.partition_expiry import PartitionExpiry
from tablestore_engine.warehouse.write_report import WriteReport
from tests.doubles.faults import seeded_runtime
from tests.unit.store.table_world import make_table, put, row

SMALL = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "2",
    "tablestore.expire-grace": "0 ms",
}
NAME = Identifier("demo", "t")


def spec(**more: str) -> WriteSpec:
    """A keyed table that keeps two snapshots."""
    return WriteSpec(table=TableSpec(primary_key=("id",), options={**SMALL, **more}))


def rows(number: int) -> pa.Table:
    """One row."""
    return pa.table({"id": [number]})


def test_commits_expire_what_is_due(tmp_path: Path) -> None:
    """By every way to commit; the report counts, and a table that leaves it to a job keeps all."""
    engine = Engine(str(tmp_path))
    reports = [engine.write("demo.t", rows(number), spec()) for number in range(4)]
    assert [one.expired for one in reports] == [0, 0, 1, 1]
    assert engine.table("demo.t").snapshot_ids() == (3, 4)
    engine.write("demo.t", rows(9), WriteSpec(stage="gate"))
    assert engine.table("demo.t").snapshot_ids() == (3, 4)
    assert engine.table("demo.t").publish_staged("gate").expired == 1
    assert engine.table("demo.t").compact(full=True).expired == 1
    assert engine.table("demo.t").snapshot_ids() == (5, 6)
    assert engine.table("demo.t").verify() == ()
    for number in range(4):
        engine.write("demo.job", rows(number), spec(**{"tablestore.expire-on-commit": "false"}))
    assert engine.table("demo.job").snapshot_ids() == (1, 2, 3, 4)
    assert engine.table("demo.job").expire().snapshots == 2


def test_a_commit_whose_expiry_fails_stands(tmp_path: Path) -> None:
    """The report has the reason, in its summary too; the rows are there and nothing expired."""
    engine = Engine(str(tmp_path))
    for number in range(2):
        engine.write("demo.t", rows(number), spec())
    consumer = tmp_path / "demo.db/t/consumer/consumer-flink"
    consumer.parent.mkdir()
    consumer.write_text("{")
    report = engine.write("demo.t", rows(2), spec())
    assert report.snapshot_id == 3
    assert "TS1391" in str(report.not_expired)
    assert "old snapshots did not expire: TS1391" in report.summary()
    assert engine.table("demo.t").snapshot_ids() == (1, 2, 3)
    assert engine.table("demo.t").scan().to_arrow().num_rows == 3


@pytest.mark.parametrize(
    ("options", "left"),
    [({"write-only": "true"}, 4), ({"write-only": "false"}, 2), ({"tablestore.table-uuid": "u"}, 2)],
)
def test_a_table_of_another_engine_decides_by_write_only(
    tmp_path: Path, options: dict[str, str], left: int
) -> None:
    """Its write-only says that a job of its own expires; on tables of ours the word only speaks to others."""
    store = make_table(tmp_path, options={**SMALL, **options})
    for number in range(4):
        put(store, row(number))
    expiry(store, None).after_commit(NAME, WriteReport(NAME, 4))
    assert len(store.snapshots.list_ids()) == left


# logs -----------------------------------------------------------------------------------------------------------


@dataclass
class _Publisher:
    """Says how far a log is; counts who asks the brokers."""

    reached: int | None
    asked: int = 0

    def check(self, store: TableStore) -> int:
        """As TablePublisher."""
        self.asked += 1
        assert store.latest() is not None
        return 3


@dataclass
class _Of:
    """The one store, or the one publisher, of a warehouse of one table."""

    value: object

    def get(self, _: Identifier) -> object:
        """As OpenTables."""
        return self.value

    def find_publisher(self, _: Identifier) -> object:
        """As Logs."""
        return self.value


def expiry(store: TableStore, publisher: _Publisher | None) -> Expiry:
    """Of that table."""
    stores, logs = cast("OpenTables", _Of(store)), cast("Logs", _Of(publisher))
    catalog = cast("FilesystemCatalog", None)  # no table here has partitions
    return Expiry(stores, logs, PartitionExpiry(catalog, stores, Mock(), seeded_runtime()))


@pytest.mark.parametrize(("reached", "left"), [(None, (1, 2, 3, 4, 5)), (2, (2, 3, 4, 5)), (5, (4, 5))])
def test_behind_a_commit_the_log_is_not_asked(
    tmp_path: Path, reached: int | None, left: tuple[int, ...]
) -> None:
    """What this process knows from publishing decides; when it knows nothing, all stays."""
    options = {**SMALL, "log.system": "kafka", "kafka.topic": "t", "tablestore.table-uuid": "u"}
    store = make_table(tmp_path, options=options)
    for number in range(5):
        put(store, row(number))
    publisher = _Publisher(reached)
    report = expiry(store, publisher).after_commit(NAME, WriteReport(NAME, 5))
    assert report.not_expired is None
    assert store.snapshots.list_ids() == left
    assert not publisher.asked


def test_when_asked_the_log_is_asked(tmp_path: Path) -> None:
    """Up to the newest published snapshot, which stays; its place in the sentence."""
    options = {**SMALL, "log.system": "kafka", "kafka.topic": "t", "tablestore.table-uuid": "u"}
    store = make_table(tmp_path, options=options)
    for number in range(5):
        put(store, row(number))
    publisher = _Publisher(None)
    report = expiry(store, publisher).run(NAME, keep=1)
    assert report.reason == "the log has snapshots up to 3"
    assert store.snapshots.list_ids() == (3, 4, 5)
    assert publisher.asked == 1
    with pytest.raises(FixRequest, match="TS1088"):
        expiry(store, publisher).run(NAME, keep=0)


def test_what_is_asked_for_becomes_rules() -> None:
    """A number without regard to age; a time with the table's least number; both; neither: without the limit."""
    table = Retention(keep_min=10, keep_max=100, retained_ms=5, grace_ms=7, limit=50)
    assert wanted_rules(table, 3, None) == Retention(3, 3, 5, 7, None)
    assert wanted_rules(table, None, 9) == Retention(10, None, 9, 7, None)
    assert wanted_rules(table, 3, 9) == Retention(3, None, 9, 7, None)
    assert wanted_rules(table, None, None) == Retention(10, 100, 5, 7, None)
