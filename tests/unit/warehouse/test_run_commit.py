"""Every commit of a warehouse goes one way: check, commit, publish, release, expire."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import SparkSettings, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import PublishPending, RetryError
from tablestore_engine.log.sink import LoggedTable
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.stage.staging import Staging
from tablestore_engine.store.write.requested_compaction import CompactionRequest
from tablestore_engine.warehouse.commit_steps import (
    ANALYZE,
    COMPACT,
    COMPACT_LEVEL_ZERO,
    CONVERT,
    EXPIRE_PARTITIONS,
    KINDS,
    PUBLISH_STAGED,
    RESCALE,
    RESTORE,
    WRITE,
    WRITE_UNSENT,
    CommitSteps,
    Sends,
)
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.maintenance.expiry import Expiry
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write_report import WriteReport
from tests.unit.warehouse.memory_log import MemorySink, MemorySystem

NAME = Identifier("d", "t")
COMMIT = WriteReport(NAME, 1)


class Steps:
    """A warehouse whose log and expiry write down when they are called; `fails` names the step that does."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.warehouse = Warehouse(str(root), SparkSettings(), MemorySystem(), SYSTEM)
        table = TableSpec(("id",), options={"log.system": "kafka", "kafka.topic": "orders"})
        self.warehouse.write_incoming(NAME, from_arrow(pa.table({"id": [1]})), WriteSpec(table=table))
        self.seen: list[str] = []
        self.fails: str | None = None

        def check(_: Logs, name: Identifier, wanted: object = None, *, current: object = None) -> None:
            self.step("check")

        def publish(_: Logs, name: Identifier, report: WriteReport) -> WriteReport:
            self.step("publish")
            return report

        def expire(
            _: Expiry, name: Identifier, report: WriteReport, *, publishes: bool = True
        ) -> WriteReport:
            self.step("expire" if publishes else "expire unpublished")
            return report

        monkeypatch.setattr(Logs, "check", check)
        monkeypatch.setattr(Logs, "check_staged", lambda *_: self.step("check"))
        monkeypatch.setattr(Staging, "discard", lambda *_: self.step("release"))
        monkeypatch.setattr(Logs, "published", publish)
        monkeypatch.setattr(Expiry, "after_commit", expire)

    def step(self, name: str) -> None:
        """Write it down."""
        self.seen.append(name)
        if name == self.fails:
            raise RetryError("TS9999", f"{name} failed", why="the test wants it", fix="none")

    def commit(self, report: WriteReport = COMMIT) -> WriteReport:
        """The commit itself."""
        self.step("commit")
        return report


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A table with a log in memory."""
    return Steps(tmp_path / "w", monkeypatch)


def test_a_commit_has_its_steps_in_order(steps: Steps) -> None:
    """What was kept for the commit is released only when the log has it, and expiry comes last."""
    steps.warehouse.run_commit(NAME, PUBLISH_STAGED, steps.commit, stage="s")
    assert steps.seen == ["check", "commit", "publish", "release", "expire"]


def test_a_staged_commit_ends_after_the_commit(steps: Steps) -> None:
    """Nobody sees it: the log gets nothing, and nothing expires."""
    steps.warehouse.run_commit(NAME, RESTORE, lambda: steps.commit(replace(COMMIT, staged="s")))
    assert steps.seen == ["check", "commit"]


def test_an_unpublished_commit_tells_expiry_so(steps: Steps) -> None:
    """Expired partitions would be rows that the log lacks."""
    steps.warehouse.run_commit(NAME, WRITE_UNSENT, steps.commit)
    assert steps.seen == ["commit", "expire unpublished"]


@pytest.mark.parametrize(
    ("fails", "error", "seen"),
    [
        ("check", RetryError, ["check"]),
        ("commit", RetryError, ["check", "commit"]),
        ("publish", PublishPending, ["check", "commit", "publish"]),
    ],
)
def test_a_step_that_fails_ends_it(steps: Steps, fails: str, error: type[Exception], seen: list[str]) -> None:
    """A log in trouble is seen before the commit; after it the error says that the commit stands."""
    steps.fails = fails
    with pytest.raises(error):
        steps.warehouse.run_commit(NAME, PUBLISH_STAGED, steps.commit, stage="s")
    assert steps.seen == seen


AROUND = {
    WRITE: ["commit", "publish", "expire"],
    WRITE_UNSENT: ["commit", "expire unpublished"],
    ANALYZE: ["commit", "publish", "expire"],
    COMPACT: ["commit", "publish", "expire"],
    COMPACT_LEVEL_ZERO: ["check", "commit", "publish", "expire"],
    RESTORE: ["check", "commit", "publish", "expire"],
    RESCALE: ["check", "publish", "commit", "publish", "expire"],
    CONVERT: ["commit", "publish", "expire"],
    PUBLISH_STAGED: ["check", "commit", "publish", "release", "expire"],
    EXPIRE_PARTITIONS: ["check", "commit", "publish"],
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.name)
def test_a_kind_of_commit_has_its_own_steps(steps: Steps, kind: CommitSteps) -> None:
    """The table of kinds is what is done; one without a changelog is sent only where everything pending is."""
    steps.warehouse.run_commit(NAME, kind, steps.commit, stage="s")
    assert steps.seen == AROUND[kind]
    steps.seen.clear()
    steps.warehouse.run_commit(NAME, kind, lambda: steps.commit(replace(COMMIT, is_empty=True)), stage="s")
    assert ("publish" in steps.seen) == (kind.sends is Sends.PENDING)


def test_the_log_of_a_table_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check, early rows, limit and publication of a write share one look; so do those of a table without a log."""
    looked: list[str] = []
    find = MemorySystem.find_sink

    def counted(system: MemorySystem, table: LoggedTable) -> MemorySink | None:
        looked.append(table.name)
        return find(system, table)

    warehouse = Warehouse(str(tmp_path / "w"), SparkSettings(), MemorySystem(), SYSTEM)
    for name, options in (("bare", {}), ("t", {"log.system": "kafka", "kafka.topic": "orders"})):
        place, spec = Identifier("d", name), WriteSpec(table=TableSpec(("id",), options=options))
        warehouse.write_incoming(place, from_arrow(pa.table({"id": [1]})), spec)
        with monkeypatch.context() as patch:
            patch.setattr(MemorySystem, "find_sink", counted)
            warehouse.write_incoming(place, from_arrow(pa.table({"id": [2]})), WriteSpec())
    assert len(looked) <= 2, looked
    assert warehouse.logs.find_publisher(NAME) is warehouse.logs.find_publisher(NAME)


def test_every_commit_of_a_warehouse_goes_this_way(steps: Steps) -> None:
    """Write, compaction, restore, rescale, staged publication."""
    warehouse, rows = steps.warehouse, from_arrow(pa.table({"id": [2]}))
    warehouse.write_incoming(NAME, rows, WriteSpec())
    assert steps.seen == ["check", "publish", "expire"]  # the writer checks, and commits itself
    steps.seen.clear()
    warehouse.rescale(NAME, 2)
    assert steps.seen == [
        "check",
        "publish",
        "publish",
        "expire",
    ]  # what is pending of the old buckets comes first
    steps.seen.clear()
    warehouse.write_incoming(NAME, from_arrow(pa.table({"id": [3]})), WriteSpec(stage="s"))
    assert steps.seen == ["check"]
    steps.seen.clear()
    warehouse.publish_staged(NAME, "s")
    assert steps.seen == ["check", "publish", "release", "expire"]
    steps.seen.clear()
    warehouse.compact(NAME, CompactionRequest(full=True))
    assert steps.seen == ["expire"]  # nothing of other writers came in
