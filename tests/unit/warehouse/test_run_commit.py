"""Every commit of a warehouse goes one way: check, commit, publish, release, expire."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import SparkSettings, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import PublishPending, RetryError
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.maintenance.expiry import Expiry
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write_report import WriteReport
from tests.unit.warehouse.memory_log import MemorySystem

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

    def release(self) -> None:
        """What the commit kept goes."""
        self.step("release")


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A table with a log in memory."""
    return Steps(tmp_path / "w", monkeypatch)


def test_a_commit_has_its_steps_in_order(steps: Steps) -> None:
    """What was kept for the commit is released only when the log has it, and expiry comes last."""
    steps.warehouse.run_commit(NAME, steps.commit, release=steps.release)
    assert steps.seen == ["check", "commit", "publish", "release", "expire"]


def test_a_staged_commit_ends_after_the_commit(steps: Steps) -> None:
    """Nobody sees it: the log gets nothing, and nothing expires."""
    steps.warehouse.run_commit(NAME, lambda: steps.commit(replace(COMMIT, staged="s")), release=steps.release)
    assert steps.seen == ["check", "commit"]


def test_an_unpublished_commit_tells_expiry_so(steps: Steps) -> None:
    """Expired partitions would be rows that the log lacks."""
    steps.warehouse.run_commit(NAME, steps.commit, publishes=False)
    assert steps.seen == ["check", "commit", "expire unpublished"]


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
        steps.warehouse.run_commit(NAME, steps.commit, release=steps.release)
    assert steps.seen == seen


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
    assert steps.seen == ["publish", "expire"]  # check_staged asks the log itself
    assert warehouse.stores.get(NAME).staging.find("s") is None
