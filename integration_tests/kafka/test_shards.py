"""A log whose partitions several publishers share, on a real broker: once and in order, whoever sends and dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import NewPartitions

from integration_tests.kafka.eventual import fold, open_engine, settings_of_table, stored_rows
from integration_tests.kafka.topic_reads import read_after, read_log_markers
from tablestore_engine.api import Engine, LogStatus, TableSpec, WriteMode, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, NotFound, RetryError
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.log.kafka.bounded_reader import read_messages
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import find_topics
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.runtime.outside_world import CRASH_ENV
from tablestore_engine.spark.shard_executors import ShardExecutors
from tablestore_engine.spark.shard_task import ShardTask
from tablestore_engine.warehouse.log import table_publisher
from tests.doses import cases

CLI = [sys.executable, "-m", "tablestore_engine.cli.main"]
BUCKETS, SHARDS = 4, 3


@pytest.fixture
def engine(tmp_path: Path, broker: BrokerInfo) -> Iterator[Engine]:
    """On the shared broker."""
    with open_engine(tmp_path, broker.url) as opened:
        yield opened


def rows(first: int, last: int, value: str) -> pa.Table:
    """Keys from `first` up to `last`, all of one value."""
    return pa.table({"id": range(first, last), "v": [value] * (last - first)})


def new_table(engine: Engine, url: str, **options: str) -> LogSettings:
    """d.t with keys 0 to 19, published; three publishers for four partitions."""
    made = {
        "log.system": "kafka",
        "kafka.topic": f"s-{uuid.uuid4().hex}",
        "log.publish.shards": str(SHARDS),
        "bucket": str(BUCKETS),
        **options,
    }
    engine.write("d.t", rows(0, 20, "a"), WriteSpec(table=TableSpec(primary_key=("id",), options=made)))
    return settings_of_table(engine, "d.t", url)


def change(engine: Engine, count: int, publish: bool = False) -> None:
    """Commits: puts, and a delete of the whole table in between; some buckets get nothing of some of them."""
    for number in range(count):
        if number % 4 == 3:
            engine.write(
                "d.t", rows(30, 33, f"o{number}"), WriteSpec(mode=WriteMode.OVERWRITE_TABLE, publish=publish)
            )
        else:
            engine.write("d.t", rows(number, number + 2, f"v{number}"), WriteSpec(publish=publish))


def check(engine: Engine, settings: LogSettings) -> None:
    """Every change once, in order of snapshots in each partition; hybrid readers behind any snapshot have the rest."""
    messages = list(read_messages(KafkaLog(settings)))
    table, latest = engine.table("d.t"), engine.table("d.t").latest_snapshot_id() or 0
    told = table.changes(0, latest).to_pylist()
    wanted = Counter((row["_snapshot_id"], row["_row_kind"]) for row in told if row["_row_kind"] != "-U")
    assert Counter((m.snapshot_id, m.kind.short_string) for m in messages if m.kind is not None) == wanted
    for partition in range(settings.partitions):
        places = [(m.snapshot_id or 0, m.sequence or 0) for m in messages if m.partition == partition]
        assert places == sorted(set(places)), "once and in order"
    assert fold(messages) == stored_rows(engine, "d.t")
    for snapshot in range(1, latest + 1):
        behind = list(read_after(KafkaLog(settings), snapshot))
        assert all((m.snapshot_id or 0) > snapshot for m in behind)
        assert len(behind) == sum((m.snapshot_id or 0) > snapshot for m in messages)
        assert fold(behind, stored_rows(engine, "d.t", snapshot)) == stored_rows(engine, "d.t")


def status_of(engine: Engine) -> LogStatus:
    """As `tablestore log show`."""
    found = engine.table("d.t").log_status()
    assert found is not None
    return found


def run(*words: str, point: str | None = None) -> subprocess.CompletedProcess[str]:
    """A process, killed at a point where one is named."""
    environ = {key: text for key, text in os.environ.items() if key != CRASH_ENV}
    if point is not None:
        environ[CRASH_ENV] = point
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def test_the_driver_sends_all_shards(engine: Engine, broker: BrokerInfo) -> None:
    """Each partition belongs to one marker partition; a commit is published when write returns."""
    settings = new_table(engine, broker.url)
    change(engine, 5, publish=True)
    check(engine, settings)
    newest = {one.shard: one for one in read_log_markers(KafkaLog(settings))}
    assert {shard: (one.snapshot_id, one.shards) for shard, one in newest.items()} == dict.fromkeys(
        range(SHARDS), (6, SHARDS)
    )
    parts = {shard: sorted(one.offsets) for shard, one in newest.items()}
    assert parts == {0: [0, 3], 1: [1], 2: [2]}
    assert status_of(engine).state.reached == 6
    engine.table("d.t").publish()
    assert len(read_log_markers(KafkaLog(settings))) == SHARDS * 7


@pytest.mark.parametrize(
    "point",
    [
        "log.committed:1",
        *(pytest.param(one, marks=pytest.mark.nightly) for one in ("log.rows:5", "log.committed:7")),
    ],
)
def test_killed_between_shards(engine: Engine, broker: BrokerInfo, tmp_path: Path, point: str) -> None:
    """Wherever the driver dies: the log is where its last shard is, and the next publication sends what is missing."""
    settings = new_table(engine, broker.url)
    change(engine, 3)
    command = [*CLI, "publish", "d.t", "--warehouse", str(tmp_path), "--bootstrap", broker.url]
    assert run(*command, point=point).returncode == -signal.SIGKILL
    seen = status_of(engine)
    reached = [shard.reached or 0 for shard in seen.state.shards]
    assert seen.state.reached == min(reached) < 4
    assert seen.pending is not None
    assert seen.pending.snapshots == 4 - min(reached)
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert status_of(engine).state.reached == 4
    check(engine, settings)


@pytest.mark.nightly  # by day a kill between shards; tests/unit/cli/test_log_show.py
def test_what_a_shard_says_of_itself(engine: Engine, broker: BrokerInfo, tmp_path: Path) -> None:
    """`log show` has a line for each shard, and is asked of the slowest."""
    new_table(engine, broker.url)
    change(engine, 1)
    command = [*CLI, "publish", "d.t", "--warehouse", str(tmp_path), "--bootstrap", broker.url]
    assert run(*command, point="log.committed:1").returncode == -signal.SIGKILL
    told = run(*CLI, "log", "show", "d.t", "--warehouse", str(tmp_path), "--bootstrap", broker.url).stdout
    assert "[0] snapshot 2" in told
    assert "[1] snapshot 1" in told
    assert "1 snapshots, 2 rows" not in told  # an update is two rows of the changelog
    assert "lag              1 snapshots" in told


@pytest.mark.parametrize(
    "how", cases([{"bucket": "-1", "log.system.partitions": "4"}, {"bucket": "4", "bucket-key": "id"}], 1)
)
def test_a_table_without_a_key(engine: Engine, broker: BrokerInfo, how: dict[str, str]) -> None:
    """Its rows are spread over all partitions, and each shard sends its own of them; also those of a difference."""
    options = {
        "log.system": "kafka",
        "kafka.topic": f"s-{uuid.uuid4().hex}",
        "log.publish.shards": "2",
        **how,
    }
    spec = TableSpec(options={**options, "changelog-producer": "none"})
    engine.write("d.t", rows(0, 50, "a"), WriteSpec(table=spec, mode=WriteMode.APPEND))
    engine.write("d.t", rows(0, 10, "b"), WriteSpec(table=spec, mode=WriteMode.APPEND, publish=False))
    engine.write("d.t", rows(0, 5, "c"), WriteSpec(table=spec, mode=WriteMode.OVERWRITE_TABLE))
    sent = Counter(m.kind for m in engine.table("d.t").log_messages())
    assert sent == {RowKind.INSERT: 65, RowKind.DELETE: 60}
    assert len({m.partition for m in engine.table("d.t").log_messages()}) == 4
    held: Counter[tuple[int, str]] = Counter()
    for row in engine.table("d.t").log_rows().to_pylist():
        held[row["id"], row["v"]] += 1 if row["_ROW_KIND"] in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    assert set(held.elements()) == {(number, "c") for number in range(5)}


@pytest.mark.nightly  # by day exactly_once::test_two_publishers_at_once
def test_two_writers_at_once(engine: Engine, broker: BrokerInfo, tmp_path: Path) -> None:
    """Two processes that fence each other in every shard: nothing is lost, nothing comes twice."""
    settings = new_table(engine, broker.url)
    child = [sys.executable, "-m", "integration_tests.kafka.eventual_child", str(tmp_path), broker.url]
    both = [
        subprocess.Popen(
            [*child, f"w{n}", str(n), "0", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for n in range(2)
    ]
    for process in both:
        errors = process.communicate(timeout=240)[1]
        assert process.returncode == 0, errors
    engine.table("d.t").publish()
    check(engine, settings)
    assert engine.table("d.t").latest_snapshot_id() == 7


@pytest.mark.nightly  # by day tests/unit/spark/test_shard_executors.py; test_eventual.py: Spark tasks send
def test_large_logs_are_sent_by_spark_tasks(
    broker: BrokerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard in each task, none by the driver; behind it the driver goes on, with the same identities."""
    asked: list[int] = []
    real = ShardExecutors.plan

    def plan(executors: ShardExecutors, pending: int, shards: int) -> object:
        asked.append(pending)
        return real(executors, pending, shards)

    def refuse(*_: object) -> None:
        raise AssertionError("sent by the driver")

    with open_engine(tmp_path, broker.url, master="local[2]") as engine:
        settings = new_table(engine, broker.url)
        change(engine, 5)
        with monkeypatch.context() as large:
            large.setattr("tablestore_engine.spark.task_placement.SMALL_BYTES", -1)
            large.setattr(ShardExecutors, "plan", plan)
            large.setattr(table_publisher, "send_shard", refuse)
            report = engine.table("d.t").publish()
        assert asked[0] > 0
        assert report.log is not None
        assert sorted(report.log.ranges) == list(range(BUCKETS))
        check(engine, settings)
        change(engine, 2, publish=True)
        check(engine, settings)


@pytest.mark.nightly  # by day tests/unit/spark/test_shard_executors.py
def test_a_worker_without_a_client_of_the_log(
    broker: BrokerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task could not do the driver does."""
    real = ShardExecutors.plan

    def plan(executors: ShardExecutors, pending: int, shards: int) -> Callable[[list[ShardTask]], object]:
        assert real(executors, pending, shards) is None  # little is pending
        return lambda tasks: [None if number % 2 else task.run() for number, task in enumerate(tasks)]

    with open_engine(tmp_path, broker.url) as engine:
        settings = new_table(engine, broker.url)
        change(engine, 3)
        monkeypatch.setattr(ShardExecutors, "plan", plan)
        engine.table("d.t").publish()
        check(engine, settings)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("point", "master", "is_done"),
    [("log.committed:1", "local[2,9]", True), ("log.rows:1", "local[2,2]", False)],
)
def test_killed_tasks(
    engine: Engine, broker: BrokerInfo, tmp_path: Path, point: str, master: str, is_done: bool
) -> None:
    """Workers that are killed again and again: one that dies behind each commit gets through by its repetitions;
    else the job fails, the log is pending, and the next publication sends the rest, once.
    """
    settings = new_table(engine, broker.url)
    change(engine, 3)
    child = [sys.executable, "-m", "integration_tests.kafka.shard_child", str(tmp_path), broker.url, master]
    done = run(*child, point=point)
    assert "ready" in done.stdout, done.stderr
    assert (done.returncode == 0) is is_done, done.stderr
    assert status_of(engine).state.reached == (4 if is_done else 1)
    engine.table("d.t").publish()
    check(engine, settings)


@pytest.mark.nightly
def test_tasks_and_a_driver_at_once(engine: Engine, broker: BrokerInfo, tmp_path: Path) -> None:
    """One publishes by tasks while others publish by themselves: fenced or not, everything is there once."""
    settings = new_table(engine, broker.url)
    change(engine, 6)
    child = [
        sys.executable,
        "-m",
        "integration_tests.kafka.shard_child",
        str(tmp_path),
        broker.url,
        "local[2,9]",
    ]
    process = subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with ThreadPoolExecutor(1) as one:
        while process.poll() is None:
            try:
                one.submit(engine.table("d.t").publish).result()
            except RetryError:
                continue
    engine.table("d.t").publish()
    check(engine, settings)


@pytest.mark.nightly  # by day tests/laws/test_shard_laws.py; test_rescale.py, test_reset.py
def test_its_life(engine: Engine, broker: BrokerInfo) -> None:
    """More buckets, a new beginning, and the end: partitions stay with their shard, all shards begin anew, all goes."""
    settings = new_table(engine, broker.url)
    engine.table("d.t").rescale(7)
    engine.write("d.t", rows(0, 40, "b"), WriteSpec())
    wider = settings_of_table(engine, "d.t", broker.url)
    assert {m.partition for m in read_messages(KafkaLog(wider)) if m.snapshot_id == 3} == set(range(7))
    in_order = sorted(read_messages(KafkaLog(wider)), key=lambda message: message.snapshot_id or 0)
    assert fold(in_order) == stored_rows(engine, "d.t")
    before = len(list(read_messages(KafkaLog(wider))))
    engine.table("d.t").reset_log(2)
    assert status_of(engine).state.reached == 2
    engine.table("d.t").publish()
    assert len(list(read_messages(KafkaLog(wider)))) == before + 40
    assert status_of(engine).state.reached == 3
    engine.drop_table("d.t")
    topics = find_topics(KafkaLog(settings).connected())
    assert (topics.data, topics.marker) == (None, None)


@pytest.mark.nightly  # by day test_trouble.py: a marker topic deleted; tests/laws/test_shard_laws.py
def test_markers_that_are_lost(engine: Engine, broker: BrokerInfo) -> None:
    """Each shard finds its place by the rows of its own partitions; nothing comes twice."""
    settings = new_table(engine, broker.url)
    change(engine, 1, publish=True)
    change(engine, 1)
    log = KafkaLog(settings).connected()
    log.admin.delete_topics([settings.marker_topic])[settings.marker_topic].result()
    while find_topics(log).marker is not None:
        pass
    engine.table("d.t").publish()
    check(engine, settings)
    topics = find_topics(log)
    assert topics.marker is not None
    assert topics.marker.partitions == SHARDS


@pytest.mark.parametrize("shards", cases(["1", "3"], 1))
def test_what_another_process_has_set_right(
    engine: Engine, broker: BrokerInfo, tmp_path: Path, shards: str
) -> None:
    """The topic was deleted and the log begun anew elsewhere: whoever had it open goes on, without a refusal."""
    settings = new_table(engine, broker.url, **{"log.publish.shards": shards})
    log = KafkaLog(settings).connected()
    log.admin.delete_topics([settings.topic])[settings.topic].result()
    while find_topics(log).data is not None:
        pass
    with open_engine(tmp_path, broker.url) as other:
        with pytest.raises(NotFound, match="TS1705"):
            other.table("d.t").publish()
        other.table("d.t").reset_log(0)
    engine.write("d.t", rows(3, 9, "b"), WriteSpec())
    check(engine, settings)


def test_another_number_of_shards_is_refused(engine: Engine, broker: BrokerInfo) -> None:
    """By ALTER TABLE, by a write, and by whoever finds a marker topic that was made for another number."""
    settings = new_table(engine, broker.url)
    with pytest.raises(FixRequest, match="TS1022"):
        engine.sql("alter table d.t set tblproperties ('log.publish.shards'='1')")
    with pytest.raises(FixRequest, match="TS1012"):
        engine.write("d.t", rows(0, 1, "x"), WriteSpec(table=TableSpec(options={"log.publish.shards": "2"})))
    log = KafkaLog(settings).connected()
    wanted = NewPartitions(settings.marker_topic, SHARDS + 1)
    log.admin.create_partitions([wanted])[settings.marker_topic].result()
    with pytest.raises(FixRequest, match="TS1776"):
        engine.write("d.t", rows(0, 1, "x"), WriteSpec())
    assert engine.table("d.t").latest_snapshot_id() == 1
    assert "TS1776" in (status_of(engine).trouble or "")


@pytest.mark.nightly  # by day test_followed_kinds.py: a log of several publishers
def test_readers_that_follow_the_log(engine: Engine, broker: BrokerInfo, tmp_path: Path) -> None:
    """While a shard is behind, readers end where all shards are; stopped and gone on anywhere they are told everything
    once, as the table's files tell it.
    """
    new_table(engine, broker.url)
    change(engine, 5)
    command = [*CLI, "publish", "d.t", "--warehouse", str(tmp_path), "--bootstrap", broker.url]
    assert (
        run(*command, point="log.committed:8").returncode == -signal.SIGKILL
    )  # a shard, and half of another
    reached = status_of(engine).state.reached
    assert reached is not None
    assert 1 <= reached < 6

    def told(**how: object) -> tuple[Counter[tuple[object, ...]], str]:
        stream = engine.table("d.t").stream(read_mode="log", until="now", **how)  # type: ignore[arg-type]
        found = [row for batch in stream for row in batch.to_pylist()]
        return Counter(tuple(row.values()) for row in found), stream.position

    first, position = told(mode="earliest")
    engine.table("d.t").publish()
    rest, _ = told(position=position)
    from_files = engine.table("d.t").changes(0, 6).to_pylist()
    assert first + rest == Counter(tuple(row.values()) for row in from_files)
    last = len([name for name in from_files[0] if not name.startswith("_")]) + 1
    assert {row[last] for row in first} == set(range(1, reached + 1))
    behind = engine.table("d.t").changes(3, 6).to_pylist()
    assert told(mode="from-snapshot", snapshot_id=4)[0] == Counter(tuple(row.values()) for row in behind)
