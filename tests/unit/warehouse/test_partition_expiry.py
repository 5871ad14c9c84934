"""Expiry of partitions behind commits: when it looks, what it may not do, and what goes to the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import SparkSettings, Table, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import PublishPending
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.write.requested_compaction import CompactionRequest
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write_report import WriteReport
from tests.unit.warehouse.memory_log import MemorySystem

NAME = Identifier("d", "t")
OLD, YOUNG = "2023-11-01", "2023-11-14"
HOUR_MS = 3_600_000


@dataclass
class Clock:
    """Stands still until somebody moves it; begins at 2023-11-14T22:13:20."""

    ms: int = 1_700_000_000_000


class Shop:
    """A warehouse of one table with a log in memory, unless `options` say otherwise."""

    def __init__(self, root: Path, **options: str) -> None:
        self.clock, self.log = Clock(), MemorySystem()
        runtime = replace(SYSTEM, now_ms=lambda: self.clock.ms)
        self.warehouse = Warehouse(str(root), SparkSettings(), self.log, runtime)
        said = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
        self.spec = TableSpec(
            primary_key=("dt", "id"),
            partition_by=("dt",),
            options={
                "log.system": "kafka",
                "kafka.topic": "t",
                "partition.expiration-time": "7 d",
                **said,
            },
        )

    def write(self, *rows: tuple[str, int], **spec: object) -> WriteReport:
        """One commit of (dt, id)."""
        days, ids = [dt for dt, _ in rows], [number for _, number in rows]
        arrow = pa.table({"dt": days, "id": ids, "v": ["x"] * len(rows)})
        asked = WriteSpec(table=self.spec, **spec)  # type: ignore[arg-type]
        return self.warehouse.write_incoming(NAME, from_arrow(arrow), asked)

    @property
    def table(self) -> Table:
        """As users have it."""
        return Table(self.warehouse, NAME, self.warehouse.stores.get(NAME))

    @property
    def days(self) -> set[str]:
        """Partitions with rows."""
        return set(self.table.scan().to_arrow().column("dt").to_pylist())


def test_a_commit_looks_at_once_and_then_by_the_interval(tmp_path: Path) -> None:
    """The report has what went, the log has its deletes; within the interval nobody looks, behind it again."""
    shop = Shop(tmp_path)
    first = shop.write((OLD, 1), (YOUNG, 1))
    assert first.partitions is not None
    assert (first.partitions.partitions, first.partitions.rows) == ((f"dt={OLD}",), 1)
    assert first.summary().endswith(f" · 1 partition expired (dt={OLD}), 1 rows, snapshot 2")
    kinds = [(one.snapshot_id, one.kind) for one in shop.table.log_messages()]
    assert kinds == [(1, RowKind.INSERT), (1, RowKind.INSERT), (2, RowKind.DELETE)]
    shop.clock.ms += HOUR_MS
    assert shop.write((OLD, 2)).partitions is None
    assert shop.days == {OLD, YOUNG}
    shop.clock.ms += 1
    again = shop.write((YOUNG, 2))
    assert again.partitions is not None
    assert shop.days == {YOUNG}
    assert [number for number, _ in shop.log.logs["t"].sent][-1] == shop.table.latest_snapshot_id()


def test_an_interval_of_nothing_looks_always(tmp_path: Path) -> None:
    """With each commit, and with compactions that find nothing to fold."""
    shop = Shop(tmp_path, partition__expiration_check_interval="0 ms")
    for number in range(3):
        shop.write((OLD, number), (YOUNG, number))
        assert shop.days == {YOUNG}
    shop.clock.ms += 30 * 24 * HOUR_MS
    done = shop.warehouse.compact(NAME, CompactionRequest())
    assert done.is_empty
    assert done.summary().startswith(f"nothing is due · 1 partition expired (dt={YOUNG})")
    assert shop.days == set()


def test_who_leaves_expiry_to_a_job_keeps_all(tmp_path: Path) -> None:
    """tablestore.expire-on-commit speaks of both expiries; the job finds them."""
    shop = Shop(tmp_path, tablestore__expire_on_commit="false")
    assert shop.write((OLD, 1)).partitions is None
    assert shop.table.expire_partitions(dry_run=True).partitions == (f"dt={OLD}",)
    assert shop.table.expire_partitions().rows == 1
    assert shop.days == set()


def test_what_was_not_to_be_sent_is_not_sent(tmp_path: Path) -> None:
    """A commit with publish=False makes no look; the next one that is sent does."""
    shop = Shop(tmp_path)
    assert shop.write((OLD, 1), publish=False).partitions is None
    assert shop.table.log_messages() == []
    assert shop.write((YOUNG, 1)).partitions is not None
    assert shop.days == {YOUNG}


def test_a_staged_snapshot_is_not_overtaken(tmp_path: Path) -> None:
    """While one waits no look commits; publishing it stays possible, and looks."""
    shop = Shop(tmp_path, partition__expiration_check_interval="0 ms")
    shop.write((YOUNG, 1))
    shop.clock.ms += 30 * 24 * HOUR_MS
    shop.write(("2023-12-14", 1), stage="gate")
    assert shop.warehouse.compact(NAME, CompactionRequest(full=True)).partitions is None
    assert shop.days == {YOUNG}
    done = shop.table.publish_staged("gate")
    assert done.partitions is not None
    assert shop.days == {"2023-12-14"}


@pytest.mark.parametrize("named", ["d.t", "d.other"])
def test_what_was_built_on_its_rows_is_not_overtaken(tmp_path: Path, named: str) -> None:
    """A staged snapshot of another table that names this one keeps its partitions; one that does not, does not."""
    shop = Shop(tmp_path, partition__expiration_check_interval="0 ms")
    shop.write((YOUNG, 1))
    shop.clock.ms += 30 * 24 * HOUR_MS
    parents = {"tablestore.parents": f'[{{"table": "{named}", "version": "1"}}]'}
    child = from_arrow(pa.table({"id": [1]}))
    spec = WriteSpec(table=TableSpec(primary_key=("id",)), stage="gate", properties=parents)
    shop.warehouse.write_incoming(Identifier("d", "child"), child, spec)
    shop.warehouse.compact(NAME, CompactionRequest())
    assert shop.days == ({YOUNG} if named == "d.t" else set())
    shop.warehouse.drop_staged(Identifier("d", "child"), "gate")
    shop.warehouse.compact(NAME, CompactionRequest())
    assert shop.days == set()


def test_a_log_in_trouble_keeps_the_partitions(tmp_path: Path) -> None:
    """The commit stands and says why nothing expired; asked for, it is an error and nothing is committed."""
    shop = Shop(tmp_path, partition__expiration_check_interval="0 ms")
    shop.write((YOUNG, 1))
    shop.clock.ms += 30 * 24 * HOUR_MS
    shop.log.broken.add("check")
    report = shop.warehouse.expiry.after_commit(NAME, WriteReport(NAME, 1))
    assert report.partitions is None
    assert "TS1799" in str(report.partitions_trouble)
    assert "expiring partitions: TS1799" in report.summary()
    assert shop.table.latest_snapshot_id() == 1
    assert shop.days == {YOUNG}


@pytest.mark.parametrize(
    "act",
    [
        lambda shop: shop.table.expire_partitions(),
        lambda shop: shop.warehouse.expiry.after_commit(NAME, WriteReport(NAME, 1)),
        lambda shop: shop.warehouse.compact(NAME, CompactionRequest()),
    ],
)
def test_a_log_that_breaks_behind_the_expiry_is_told(tmp_path: Path, act: Callable[[Shop], object]) -> None:
    """The rows are gone and the log is pending: TS1070 for who asked and for who committed before; sent later."""
    shop = Shop(tmp_path, partition__expiration_check_interval="0 ms")
    shop.write((OLD, 1), publish=False)
    shop.table.publish()
    shop.log.broken.add("publish")
    with pytest.raises(PublishPending, match=r"snapshot 2 of d\.t is committed, its log is pending"):
        act(shop)
    assert shop.days == set()
    shop.log.broken.clear()
    shop.table.publish()
    kinds = [(one.snapshot_id, one.kind) for one in shop.table.log_messages()]
    assert kinds == [(1, RowKind.INSERT), (2, RowKind.DELETE)]
