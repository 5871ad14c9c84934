"""`dbt build` killed with SIGKILL at every named point, run again, ends as if it had never been killed (P1, P2).

Steps      for each crash point: a project of its own builds day 1 in this process; a model gets a column; a child
           builds day 2 and dies at the point; the same command runs again here; then table and topic are compared with
           a project that was not killed
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from integration_tests.warehouse_address import warehouse_address
from tablestore_demo.dbt_session import DbtSession
from tablestore_demo.demo_place import DemoPlace
from tablestore_demo.feed import day_events, load_flights
from tablestore_demo.project_folder import write_project
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.runtime.outside_world import CRASH_ENV, CRASH_POINTS

FLIGHTS_OF_A_DAY = 40
TABLES = ("demo.flights", "demo.airport_delays")
GATED = ("build",)  # tests decide: staged first
AT_ONCE = ("run",)  # no test is run: published at once
POINTS = {
    "write.data_files": GATED,
    "commit.manifests": GATED,
    "commit.schema": AT_ONCE,
    "stage.made": GATED,
    "stage.claimed": GATED,
    "stage.published": GATED,
    "commit.claimed": AT_ONCE,
    "commit.done": AT_ONCE,
    "log.begin": GATED,
    "log.rows": GATED,
    "log.marker": GATED,
    "log.committed": AT_ONCE,
    "expire.hidden": GATED,
    "expire.data": AT_ONCE,
    "expire.metadata": AT_ONCE,
    "expire.snapshots": GATED,
}
# tests/crash kills the engine there, integration_tests/kafka/test_eventual.py at the two of an eventual log,
# tests/unit/warehouse/test_expired_stages.py at those of a drop of staged snapshots,
# integration_tests/kafka/test_replaced_logs.py at those of a table that takes another one's place, and
# tests/unit/store/test_iceberg_kills.py at those of Iceberg metadata
NOT_OF_A_BUILD = {
    *("rollback.kept", "orphans.begun", "orphans.looked", "log.early", "log.repairs"),
    *("replace.moved", "replace.placed", "replace.sent", "iceberg.files", "iceberg.claimed"),
    *("stage.dropping", "stage.dropped"),
    *("branch.copied", "branch.schema", "branch.created", "branch.hidden"),
    *("branch.forward_schema", "branch.forward"),
}
EXPIRING = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "tablestore.expire-grace": "0 s",
}
# Between snapshot and log; `make test-kills` and the nightly run try all. The engine alone is killed at every point in
# make test (tests/crash and integration_tests/kafka).
OF_MAKE_TEST = {"log.rows"}


@dataclass(frozen=True)
class Project:
    """One dbt project with its own warehouse and topics."""

    folder: Path
    url: str
    warehouse: str

    @classmethod
    def make(cls, folder: Path, url: str, name: str) -> Project:
        """A copy of the demo's project whose topics carry `name`."""
        folder.mkdir()
        warehouse = warehouse_address(str(folder / "warehouse"))
        write_project(folder, DemoPlace(warehouse, folder / "warehouse"), url)
        for model in (folder / "models").rglob("*.sql"):
            text = model.read_text()
            model.write_text(text.replace("kafka_topic='", f"kafka_topic='{name}_"))
        return cls(folder, url, warehouse)

    def add_column(self) -> None:
        """From now on the model of the delays has one column more."""
        model = self.folder / "models" / "marts" / "airport_delays.sql"
        changed = model.read_text().replace(
            "{{ config(", "{{ config(on_schema_change='append_new_columns', ", 1
        )
        last = "    max(flights.dep_delay) as longest_delay_minutes\n"
        assert last in changed
        longer = f"{last.rstrip()},\n    min(flights.dep_delay) as shortest_delay_minutes\n"
        model.write_text(changed.replace(last, longer))

    def keep_newest_only(self) -> None:
        """From now on every commit of the models expires all snapshots but its own."""
        for model in (self.folder / "models").rglob("*.sql"):
            text = model.read_text()
            model.write_text(text.replace("{{ config(", f"{{{{ config(tblproperties={EXPIRING}, ", 1))

    def engine(self) -> Engine:
        """A handle of its own, so that nothing is remembered from before the kill."""
        settings = SparkSettings(master="local[2]")
        return Engine(self.warehouse, spark=settings, log={"kafka.bootstrap.servers": self.url})

    def feed(self, events: pa.Table, day: int) -> None:
        """Put one day into the source table."""
        rows = events.append_column("feed_day", pa.array([day] * events.num_rows, pa.int32()))
        spec = WriteSpec(table=TableSpec(partition_by=("feed_day",)), mode=WriteMode.APPEND)
        self.engine().write("airline.flight_events", rows, spec)

    def run(self, command: tuple[str, ...]) -> None:
        """The command in this process; it must succeed."""
        result = DbtSession(self.folder).invoke(*command)
        assert result.success, [(node.name, node.message) for node in result.nodes] or result.error

    def run_killed(self, command: tuple[str, ...], point: str) -> int:
        """The command in a process that dies at `point`; its exit status."""
        dbt = [sys.executable, "-m", "dbt.cli.main", "--quiet", *command]
        place = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        environment = {**os.environ, CRASH_ENV: point}
        done = subprocess.run(
            [*dbt, *place], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode

    def state(self) -> dict[str, object]:
        """Rows of the tables, and keys and values of the topics in order."""
        engine = self.engine()
        found: dict[str, object] = {}
        for name in TABLES:
            table = engine.table(name)
            assert table.verify() == ()
            rows = pl.DataFrame(table.scan().to_arrow())
            found[name] = rows.sort(table.schema.primary_keys).rows()
            by_partition: dict[int, list[tuple[bytes | None, bytes | None]]] = {}
            for message in table.log_messages():
                by_partition.setdefault(message.partition, []).append((message.key, message.value))
            found[f"topic of {name}"] = by_partition
        engine.close()
        return found


@pytest.fixture(scope="module")
def days() -> tuple[pa.Table, pa.Table]:
    """Events of two days, of the first flights of each."""
    flights = load_flights().filter(pl.int_range(pl.len()).over("flight_date") < FLIGHTS_OF_A_DAY)
    return day_events(flights, 1), day_events(flights, 2)


@pytest.fixture(scope="module")
def unharmed(
    tmp_path_factory: pytest.TempPathFactory, broker: BrokerInfo, days: tuple[pa.Table, pa.Table]
) -> dict[str, object]:
    """What two builds without any kill end with."""
    project = Project.make(tmp_path_factory.mktemp("kills") / "unharmed", broker.url, "unharmed")
    project.feed(days[0], 1)
    project.run(GATED)
    project.add_column()
    project.feed(days[1], 2)
    project.run(GATED)
    return project.state()


def test_every_crash_point_is_tried() -> None:
    """The list above names all crash points, so that a new one is not forgotten."""
    assert set(POINTS) | NOT_OF_A_BUILD == set(CRASH_POINTS)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=() if point in OF_MAKE_TEST else (pytest.mark.whole,))
        for point in sorted(POINTS)
    ],
)
def test_a_killed_build_run_again_ends_as_if_never_killed(
    point: str,
    tmp_path: Path,
    broker: BrokerInfo,
    days: tuple[pa.Table, pa.Table],
    unharmed: dict[str, object],
) -> None:
    """Rows, changelog order and exactly-once survive a SIGKILL at this point."""
    project = Project.make(tmp_path / "project", broker.url, "k_" + point.replace(".", "_"))
    if point.startswith("expire."):
        project.keep_newest_only()
    project.feed(days[0], 1)
    project.run(GATED)
    project.add_column()
    project.feed(days[1], 2)
    assert project.run_killed(POINTS[point], point) == -signal.SIGKILL
    project.run(POINTS[point])
    assert project.state() == unharmed
