"""`tablestore demo`: an airline's change feed becomes tested snapshots and an exactly-once Kafka topic.

CHANGE     `tablestore demo`
Steps      1 a project folder, a broker   2 one `dbt build` per day of the feed: rows, snapshot, topic
           3 a poisoned day: the test goes red, table and topic stay as they are   4 the corrected day
           5 time travel and a diff   6 the same table in another reader   7 a picture, and what to type next
INVARIANT  every number printed is read back from the table or the topic after the step, and checked:
           the topic grows by exactly the rows inserted, updated and deleted; a mismatch ends the demo with TS1852.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import polars as pl
import pyarrow as pa

from tablestore_demo.dbt_session import BuildResult, DbtSession
from tablestore_demo.demo_broker import run_broker
from tablestore_demo.demo_place import S3, DemoPlace, open_place
from tablestore_demo.feed import (
    EXTRAS,
    STREAM_EXTRAS,
    check_extras,
    day_events,
    load_flights,
    poisoned,
)
from tablestore_demo.paimon_rust_reader import count_with_paimon_rust
from tablestore_demo.picture import bars, tell
from tablestore_demo.project_folder import write_project
from tablestore_demo.stream_command import clear_all, run_live
from tablestore_engine.api import Engine, FixRequest, SparkSettings, TableSpec, WriteMode, WriteSpec
from tablestore_engine.spi import EngineBug

FEED = "airline.flight_events"
FLIGHTS = "demo.flights"
DAYS, DAYS_MAX = 14, 364
ROUNDS = 8
SEEDED = ("--exclude-resource-type", "seed")  # airports and airlines do not change from day to day


@dataclass(frozen=True)
class Demo:
    """The parts of a running demo."""

    folder: Path
    place: DemoPlace
    engine: Engine
    dbt: DbtSession
    flights: pl.DataFrame
    has_kafka: bool

    def write_day(self, day: int, *, poison: bool = False, replace: bool = False) -> int:
        """Put one day of the feed into the source table; `replace` overwrites the day's partition."""
        events = day_events(self.flights, day)
        rows = poisoned(events) if poison else events
        feed_day = pa.array([day] * rows.num_rows, pa.int32())
        mode = WriteMode.OVERWRITE_PARTITIONS if replace else WriteMode.APPEND
        spec = WriteSpec(table=TableSpec(partition_by=("feed_day",)), mode=mode)
        self.engine.write(FEED, rows.append_column("feed_day", feed_day), spec)
        return int(rows.num_rows)

    def topic_rows(self) -> int:
        """Messages that a read_committed consumer of the flights topic sees."""
        return self.engine.count_log_messages(FLIGHTS) if self.has_kafka else 0

    def snapshot_id(self) -> int | None:
        """Current published snapshot of flights."""
        found = self.engine.find_table(FLIGHTS)
        return found.latest_snapshot_id() if found else None


def _check_growth(before: int, after: int, changed: int) -> None:
    if after - before != changed:
        raise EngineBug(
            "TS1852",
            "the topic did not grow by what the snapshot changed",
            why=f"expected {changed} new messages, got {after - before}",
            fix="report this with the folder of the demo",
        )


def _build_day(demo: Demo, day: int) -> BuildResult:
    """One green round: feed, build, and the line that says what happened."""
    started = time.monotonic()
    before = demo.topic_rows() if day > 1 else 0
    events = demo.write_day(day)
    result = demo.dbt.invoke("build", *(SEEDED if day > 1 else ()))
    node = result.node("flights")
    if not result.success or node is None:
        raise FixRequest(
            "TS1853",
            f"dbt build of day {day} did not succeed",
            why=result.error
            or "; ".join(f"{n.name}: {n.message}" for n in result.nodes if n.status != "success"),
            fix=f"look into {demo.folder}/logs/dbt.log",
        )
    counts = [int(node.facts.get(key, 0)) for key in ("rows_inserted", "rows_updated", "rows_deleted")]
    after = demo.topic_rows()
    if demo.has_kafka:
        _check_growth(before, after, sum(counts))
    inserted, updated, deleted = counts
    topic = f"  topic {after:>6} (+{after - before})" if demo.has_kafka else ""
    tell(
        f"  day {day:>3}  {events:>5} events  snapshot {demo.snapshot_id():>3}  "
        f"+{inserted:<5} ~{updated:<5} -{deleted:<4}{topic}  {time.monotonic() - started:4.1f} s"
    )
    return result


def _tell_unit_tests(day: int, result: BuildResult) -> None:
    passed = [one.name for one in result.nodes if one.resource_type == "unit_test" and one.status == "pass"]
    if day == 1:
        tell(f"         {len(passed)} unit tests passed before it: {', '.join(passed)}")


def _red_day(demo: Demo, day: int) -> None:
    """A poisoned day: show that nothing moves, look at the staged rows, then correct it."""
    snapshot, messages = demo.snapshot_id(), demo.topic_rows()
    tell(f"\nDay {day} arrives broken: a partner sends delays in seconds instead of minutes.")
    demo.write_day(day, poison=True)
    result = demo.dbt.invoke("build", *SEEDED)
    tell(f"  dbt build is red: {', '.join(result.failed_tests())}")
    staged = demo.engine.staged(FLIGHTS)
    if result.success or demo.snapshot_id() != snapshot or demo.topic_rows() != messages or not staged:
        raise EngineBug(
            "TS1854",
            "a failed test did not hold the snapshot back",
            why=f"snapshot {snapshot} -> {demo.snapshot_id()}, topic {messages} -> {demo.topic_rows()}",
            fix="report this with the folder of the demo",
        )
    held = f"snapshot is still {snapshot}" + (
        f", the topic still has {messages} messages" if demo.has_kafka else ""
    )
    tell(f"  {held}")
    bad = demo.engine.sql(f"select max(dep_delay) from `demo__at_branch_{staged[-1].name}`.flights")
    tell(f"  the staged rows can be looked at: longest delay there {bad.rows[0][0]} minutes")
    tell("The partner sends the day again; its partition of the feed is overwritten.")
    demo.write_day(day, replace=True)
    after = demo.dbt.invoke("build", *SEEDED)
    tell(
        f"  dbt build is {'green' if after.success else 'red'}: snapshot {demo.snapshot_id()}"
        + (f", topic {demo.topic_rows()} messages" if demo.has_kafka else "")
    )


def _look_around(demo: Demo) -> int:
    """Time travel, a diff, and another reader; the early snapshot that was looked at."""
    table = demo.engine.table(FLIGHTS)
    ids = table.snapshot_ids()
    early = ids[min(2, len(ids) - 2)]
    old = demo.engine.sql(f"select count(*) from demo.flights version as of {early}").rows[0][0]
    now = demo.engine.sql("select count(*) from demo.flights").rows[0][0]
    tell(f"\nTime travel: {old} flights at snapshot {early}, {now} now.")
    changes = table.diff(early, ids[-1])
    tell(
        f"Diff of snapshots {early} and {ids[-1]}: +{changes.inserted} ~{changes.updated} -{changes.deleted}"
    )
    other = count_with_paimon_rust(demo.place.objects, FLIGHTS)
    tell(f"The same table opened by Apache Paimon's Rust reader: {other} flights")
    if other != now:
        raise EngineBug(
            "TS1855", "two readers disagree", why=f"ours {now}, Paimon's {other}", fix="report this"
        )
    return early


_DELAYS = """
select cast(flight_date as string),
       cast(sum(average_delay_minutes * flights_departed) / sum(flights_departed) as double)
from demo.airport_delays group by flight_date order by flight_date
"""


def _draw(demo: Demo) -> None:
    """Delays per day, from the published table."""
    rows = demo.engine.sql(_DELAYS).rows
    tell("\nAverage departure delay per day, minutes (demo.airport_delays):")
    for line in bars([(str(day), float(str(value))) for day, value in rows]):
        tell(f"  {line}")


def _next_steps(folder: Path, commands: Sequence[str]) -> None:
    tell("\nNow yours:")
    activate = Path(sys.executable).with_name("activate")
    found = shutil.which("tablestore")  # another environment's would open the tables with another version
    is_ours = found is not None and Path(found).parent == activate.parent
    for text in (
        *([] if is_ours or not activate.exists() else [f"source {shlex.quote(str(activate))}"]),
        f"cd {shlex.quote(str(folder))}",
        *commands,
    ):
        tell(f"  {text}")


def _of_days(early: int) -> Sequence[str]:
    return (
        "tablestore snapshots demo.flights",
        f"tablestore diff demo.flights {early} {early + 1}",
        f"tablestore changelog demo.flights --since {early}",
        f'tablestore sql "select count(*) from demo.flights version as of {early}"',
        f"dbt test --select flights --vars '{{tablestore_as_of: {{flights: {early}}}}}'",
    )


OF_STREAM = (
    "tablestore snapshots demo.airport_delays",
    "tablestore changelog demo.airport_delays --since 2",
    "tablestore streams demo",
    'tablestore sql "select origin, sum(delay_minutes) from demo.airport_delays group by origin"',
    "dbt test --select airport_delays",
)


def _check(arguments: argparse.Namespace) -> None:
    """Raises FixRequest TS1857."""
    what, why, fix = "", "", ""
    if arguments.days is not None and not 1 <= arguments.days <= DAYS_MAX:
        what = f"the demo cannot run {arguments.days} days"
        why = "the feed is the year 2013, and one more day is needed for the red one"
        fix = f"give --days from 1 to {DAYS_MAX}"
    elif arguments.rounds is not None and arguments.rounds < 1:
        what, why = (
            f"the demo cannot run {arguments.rounds} rounds",
            "it ends with a red one and a comparison",
        )
        fix = "give --rounds 1 or more"
    elif arguments.stream and (arguments.no_kafka or arguments.days is not None):
        what, why = (
            "the demo --stream has no days and no way without Kafka",
            "changes come by it and go into it",
        )
        fix = "leave --days and --no-kafka out"
    elif arguments.stream and (arguments.warehouse == S3 or arguments.cluster):
        what, why = "the demo --stream runs on this machine alone", "its servers are many already"
        fix = "leave --warehouse s3 and --cluster out"
    elif arguments.rounds is not None and not arguments.stream:
        what, why, fix = (
            "rounds are of --stream",
            "the other demo goes by days",
            "add --stream, or give --days",
        )
    if what:
        raise FixRequest("TS1857", what, why=why, fix=fix)


def _run(arguments: argparse.Namespace) -> int:
    """The whole demo."""
    started = time.monotonic()
    _check(arguments)
    signal.signal(signal.SIGTERM, _end_at_once)
    check_extras(STREAM_EXTRAS if arguments.stream else EXTRAS)
    folder = Path(arguments.folder).absolute()
    clear_all(folder)
    if arguments.stream:
        run_live(folder, arguments.rounds or ROUNDS, keep_broker=arguments.keep_broker)
        return _end(folder, OF_STREAM, started)
    url: str | None = None
    if not arguments.no_kafka:
        tell("Starting a Kafka broker (fetched once) and loading 336,776 flights …")
        url = json.loads(run_broker(folder, "start"))["url"]
    try:
        with open_place(
            folder,
            on_s3=arguments.warehouse == S3,
            on_cluster=arguments.cluster,
            keep=arguments.keep_broker,
        ) as place:
            early = _demo(arguments.days or DAYS, folder, place, url)
    finally:
        if url is not None and not arguments.keep_broker:
            run_broker(folder, "stop")
    commands = [one for one in _of_days(early) if not (arguments.cluster and one.startswith("dbt"))]
    return _end(folder, (*place.restart, *commands), started)


def _end_at_once(number: int, _: object) -> NoReturn:
    """As Ctrl-C does: whatever was started is ended on the way out."""
    raise SystemExit(128 + number)


def _end(folder: Path, commands: Sequence[str], started: float) -> int:
    _next_steps(folder, commands)
    tell(f"\nDone in {time.monotonic() - started:.0f} s.")
    return 0


def _demo(days: int, folder: Path, place: DemoPlace, url: str | None) -> int:
    write_project(folder, place, url)
    log = {"kafka.bootstrap.servers": url} if url else {}
    engine = Engine(place.address, spark=SparkSettings(place.master, dict(place.conf)), log=log)
    demo = Demo(folder, place, engine, DbtSession(folder), load_flights(), url is not None)
    try:
        where = (
            "" if place.address == str(place.objects) else f", tables in {place.address.partition('?')[0]}"
        )
        tell(
            f"Project in {folder}{where}. One dbt build per day; each runs its tests before anything is published:"
        )
        for day in range(1, days + 1):
            _tell_unit_tests(day, _build_day(demo, day))
        _red_day(demo, days + 1)
        early = _look_around(demo)
        _draw(demo)
        return early
    finally:
        engine.close()


def register(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Arguments of `tablestore demo`."""
    parser.add_argument(
        "--folder", default="tablestore-demo", help="where the project goes (default: tablestore-demo)"
    )
    parser.add_argument("--days", type=int, help=f"days of the feed (default {DAYS}, at most {DAYS_MAX})")
    text = "a PostgreSQL that changes all the time, instead of days: CDC, streaming models, changed_keys, the topic"
    parser.add_argument("--stream", action="store_true", help=text)
    parser.add_argument("--rounds", type=int, help=f"of --stream (default {ROUNDS})")
    text = "where the tables lie: a folder (default), or an object store on an S3 server that the demo starts"
    parser.add_argument("--warehouse", choices=("folder", S3), default="folder", help=text)
    text = "run on a Spark cluster with two workers, which the demo starts"
    parser.add_argument("--cluster", action="store_true", help=text)
    parser.add_argument("--no-kafka", action="store_true", help="files only: no broker is fetched or started")
    parser.add_argument(
        "--keep-broker", action="store_true", help="leave broker, S3 server and cluster running"
    )
    return _run
