"""`tablestore demo --stream`: a PostgreSQL where flights depart all the time, and a dbt project that keeps up with it.

CHANGE     `tablestore demo --stream`
Steps      1 a PostgreSQL, a broker, Connect with Debezium   2 rounds: what the database has committed by now → its
           table → `dbt build`: a streaming model, tested, and totals by changed_keys → the topic
           3 somebody breaks delays in the database: the test goes red, models and topic stay   4 set right
           5 the database stands still: it, the totals and the topic say the same
INVARIANT  every number printed is read back behind the step, and checked: the topic grows by exactly the rows that
           the totals changed (TS1862), and what it comes to at the end is what the database says (TS1865).
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablestore_demo.dbt_session import BuildResult, DbtSession
from tablestore_demo.demo_broker import run_broker
from tablestore_demo.demo_place import DemoPlace
from tablestore_demo.demo_postgres import Postgres, end_left, run_postgres
from tablestore_demo.feed import load_flights
from tablestore_demo.live_flights import LiveFlights, break_delays, mend_delays, schedule
from tablestore_demo.picture import tell
from tablestore_demo.project_folder import (
    BROKER,
    Project,
    check_folder,
    clear_folder,
    write_project,
)
from tablestore_engine.api import Engine, FixRequest, SparkSettings
from tablestore_engine.spi import (
    ConnectInfo,
    EngineBug,
    SyncSpec,
    parse_source,
    start_connect,
    stop_connect,
    sync_database,
)

SOURCE, FEED = "airline", "airline.flights"
FLIGHTS, DELAYS = "demo.flights", "demo.airport_delays"
PAUSE_S = 0.02
_PASSWORD_ENV = "TABLESTORE_DATABASE_PASSWORD"  # noqa: S105 - the name of a variable
_CONNECT, _POSTGRES = "connect", ".postgres"
_IN_DATABASE = """select origin, to_char(scheduled_departure, 'YYYY-MM-DD HH24'), count(*), count(dep_delay),
coalesce(sum(dep_delay), 0) from flights group by 1, 2"""
_IN_TABLE = (
    f"select origin, date_format(hour, 'yyyy-MM-dd HH'), flights, departed, delay_minutes from {DELAYS}"
)


@dataclass(frozen=True)
class LiveDemo:
    """The parts of a running demo."""

    folder: Path
    server: Postgres
    connect: ConnectInfo
    environ: Mapping[str, str]
    engine: Engine
    dbt: DbtSession

    def sync(self) -> None:
        """What the database has committed by now is in its table behind this."""
        report = sync_database(
            self.engine, self.connect, SyncSpec(SOURCE), environ=self.environ, say=lambda _: None
        )
        for error in report.errors.values():
            raise error

    def standing(self) -> tuple[int | None, int | None, int]:
        """Newest snapshots of both models, and messages of the topic."""
        found = [self.engine.find_table(name) for name in (FLIGHTS, DELAYS)]
        first, second = (None if table is None else table.latest_snapshot_id() for table in found)
        return first, second, self.engine.count_log_messages(DELAYS) if found[1] is not None else 0


def run_live(folder: Path, rounds: int, *, keep_broker: bool) -> None:
    """The whole of it, in an empty folder of ours."""
    tell("Starting a PostgreSQL, a Kafka broker and Debezium (both fetched once) …")
    flights = load_flights()
    with ExitStack() as stack:
        password = secrets.token_hex(16)
        server = stack.enter_context(run_postgres(password, note=folder / _POSTGRES))
        planned, events = schedule(server, flights)
        url = stack.enter_context(_broker(folder, keep_broker=keep_broker))
        environ = {**os.environ, _PASSWORD_ENV: password}
        connect = stack.enter_context(_connect(folder, server, url, environ))
        place = DemoPlace.of_folder(folder)
        write_project(folder, place, url, Project.STREAM)
        log = {"kafka.bootstrap.servers": url}
        engine = Engine(place.address, spark=SparkSettings(master=place.master), log=log)
        stack.callback(engine.close)
        demo = LiveDemo(folder, server, connect, environ, engine, DbtSession(folder))
        live = LiveFlights(server, events, PAUSE_S)
        stack.callback(live.end)
        tell(
            f"{planned} flights are planned; from now on one of them departs, arrives or is cancelled every moment."
        )
        live.start()
        _keep_up(demo, live, rounds)
        _red_round(demo, live)
        _compare(demo, live)


def end_left_servers(folder: Path) -> None:
    """Those of a demo that died there."""
    if (folder / _CONNECT).exists():
        stop_connect(SOURCE, folder / _CONNECT)
    end_left(folder / _POSTGRES)


def clear_all(folder: Path) -> None:
    """A new folder, and nobody in the old one any more; somebody else's is not touched. Raises FixRequest TS1851."""
    check_folder(folder)
    end_left_servers(folder)
    if (folder / BROKER).exists():
        run_broker(folder, "stop")
    clear_folder(folder)


@contextmanager
def _broker(folder: Path, *, keep_broker: bool) -> Iterator[str]:
    try:
        yield str(json.loads(run_broker(folder, "start"))["url"])
    finally:
        if not keep_broker:
            run_broker(folder, "stop")


@contextmanager
def _connect(folder: Path, server: Postgres, url: str, environ: Mapping[str, str]) -> Iterator[ConnectInfo]:
    source = parse_source(SOURCE, server.url, ["public.flights"])
    try:
        yield start_connect(source, url, environ=environ, data_dir=folder / _CONNECT, say=lambda _: None)
    finally:
        stop_connect(SOURCE, folder / _CONNECT)


def _keep_up(demo: LiveDemo, live: LiveFlights, rounds: int) -> None:
    tell("\nEach round: what PostgreSQL has committed by now, tested, then published:")
    for number in range(1, rounds + 1):
        _round(demo, live, f"{number:>3}")


def _round(demo: LiveDemo, live: LiveFlights, title: str) -> None:
    """One green round, and the line that says what happened."""
    started, before = time.monotonic(), demo.standing()[2]
    done = live.counts()
    demo.sync()
    result = demo.dbt.invoke("build")
    flights, delays = (_facts(demo, result, name) for name in ("flights", "airport_delays"))
    after = demo.standing()[2]
    grown = sum(delays)
    if after - before != grown:
        raise EngineBug(
            "TS1862",
            "the topic did not grow by what the snapshot changed",
            why=f"expected {grown} new messages, got {after - before}",
            fix="report this with the folder of the demo",
        )
    tell(
        f"  {title}  {done.total():>5} events so far  flights {_counts(flights)}  totals {_counts(delays)}  "
        f"topic {after:>5} (+{grown})  {time.monotonic() - started:4.1f} s behind PostgreSQL"
    )


def _facts(demo: LiveDemo, result: BuildResult, name: str) -> tuple[int, int, int]:
    """Rows inserted, updated, deleted. Raises FixRequest TS1863."""
    node = result.node(name)
    if not result.success or node is None:
        raise FixRequest(
            "TS1863",
            "dbt build of an iteration did not succeed",
            why=result.error
            or "; ".join(f"{one.name}: {one.message}" for one in result.nodes if one.status != "success"),
            fix=f"look into {demo.folder}/logs/dbt.log",
        )
    inserted, updated, deleted = (
        int(node.facts.get(f"rows_{kind}", 0)) for kind in ("inserted", "updated", "deleted")
    )
    return inserted, updated, deleted


def _counts(rows: tuple[int, int, int]) -> str:
    inserted, updated, deleted = rows
    return f"+{inserted:<4} ~{updated:<4} -{deleted:<3}"


def _red_round(demo: LiveDemo, live: LiveFlights) -> None:
    """Broken rows come in by the database: nothing moves until they are right again."""
    broken = break_delays(demo.server)
    while not broken:  # nobody with such a delay has arrived yet
        time.sleep(0.5)
        live.counts()
        broken = break_delays(demo.server)
    tell(f"\nIn PostgreSQL somebody takes seconds for minutes, in {len(broken)} flights.")
    before = demo.standing()
    demo.sync()
    result = demo.dbt.invoke("build")
    if result.success or not result.failed_tests() or demo.standing() != before:
        raise EngineBug(
            "TS1864",
            "a failed test did not hold the snapshot back",
            why=f"snapshots and messages {before} -> {demo.standing()}; {result.error}",
            fix="report this with the folder of the demo",
        )
    tell(f"  dbt build is red: {', '.join(result.failed_tests())}")
    tell(f"  flights stay at snapshot {before[0]}, totals at {before[1]}, the topic has {before[2]} messages")
    mend_delays(demo.server, broken)
    tell("They are set right in PostgreSQL; the next round reads both changes:")
    _round(demo, live, "   ")


def _compare(demo: LiveDemo, live: LiveFlights) -> None:
    """With the database at rest, all three agree."""
    counts = live.end()
    said = ", ".join(f"{counts[kind]} {kind}" for kind in ("inserted", "updated", "deleted"))
    tell(f"\nPostgreSQL rests after {counts.total()} events ({said}). A last round:")
    _round(demo, live, "   ")
    expected = sorted(tuple(map(str, row)) for row in demo.server.rows(_IN_DATABASE))
    table = sorted(tuple(map(str, row)) for row in demo.engine.sql(_IN_TABLE).rows)
    topic = _fold(demo.engine)
    if table != expected or len(topic) != len(table):
        raise EngineBug(
            "TS1865",
            "database and totals disagree",
            why=f"{len(expected)} rows in the database, {len(table)} in the table, {len(topic)} in the topic",
            fix="report this with the folder of the demo",
        )
    rows = {
        (row["origin"], row["hour"]): row for row in demo.engine.table(DELAYS).scan().to_arrow().to_pylist()
    }
    if topic != rows:
        raise EngineBug(
            "TS1865",
            "topic and table disagree",
            why="of the same keys",
            fix="report this with the folder of the demo",
        )
    tell(f"  PostgreSQL, the table and the topic agree: {len(rows)} rows of totals, each of them.")


def _fold(engine: Engine) -> dict[tuple[Any, Any], dict[str, Any]]:
    """The totals, of the topic's messages alone."""
    rows: dict[tuple[Any, Any], dict[str, Any]] = {}
    with engine.table(DELAYS).stream("earliest", until="now", read_mode="log") as stream:
        for batch in stream:
            for row in batch.to_pylist():
                kind = row.pop("_row_kind")
                del row["_snapshot_id"]
                key = row["origin"], row["hour"]
                if kind in ("+I", "+U"):
                    rows[key] = row
                elif kind == "-D":
                    del rows[key]
    return rows
