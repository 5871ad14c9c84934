"""P3 on a real broker: changes are visible before their snapshot, and the topic folded by key becomes the table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.kafka.eventual import (
    Points,
    check_markers,
    open_engine,
    options_of,
    settings_of_table,
    stored_rows,
    topic_rows,
)
from integration_tests.kafka.source import with_timeout
from integration_tests.kafka.topic_reads import read_log_markers
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import FixRequest, PublishPending, RetryError
from tablestore_engine.log.kafka import kafka_sink
from tablestore_engine.log.kafka.bounded_reader import read_messages
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import _delete
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.runtime.outside_world import CRASH_ENV
from tests.doses import cases

CHILD = [sys.executable, "-m", "integration_tests.kafka.eventual_child"]


def _rows(**values: str) -> pa.Table:
    """`_1="a"`: row 1 has value a."""
    return pa.table({"id": [int(name[1:]) for name in values], "v": list(values.values())})


def _new_table(engine: Engine, url: str, **options: str) -> LogSettings:
    """Rows 1 to 9 in table d.t with an eventual log."""
    made = {**options_of(f"e-{uuid.uuid4().hex}"), "bucket": "2", **options}
    rows = _rows(**{f"_{n}": "a" for n in range(1, 10)})
    engine.write("d.t", rows, WriteSpec(table=TableSpec(primary_key=("id",), options=made)))
    return settings_of_table(engine, "d.t", url)


@pytest.fixture
def points() -> Points:
    """For an engine."""
    return Points()


@pytest.fixture
def engine(tmp_path: Path, broker: BrokerInfo, points: Points) -> Iterator[Engine]:
    """On the shared broker."""
    with open_engine(tmp_path, broker.url, points) as opened:
        yield opened


def test_rows_are_visible_before_their_snapshot(engine: Engine, broker: BrokerInfo, points: Points) -> None:
    """While the claim is still to come consumers have the new rows; behind it one marker is sent, and no row."""
    settings, seen = _new_table(engine, broker.url), []
    points.todo["commit.manifests"] = lambda: seen.append(
        (engine.table("d.t").latest_snapshot_id(), topic_rows(settings))
    )
    count = engine.count_log_messages("d.t")
    done = engine.write("d.t", _rows(_1="b", _2="b", _20="b"), WriteSpec())
    assert seen == [(1, stored_rows(engine, "d.t"))]
    assert topic_rows(settings) == {**dict.fromkeys(range(3, 10), "a"), 1: "b", 2: "b", 20: "b"}
    assert engine.count_log_messages("d.t") == count + 3
    assert done.log is not None
    assert sum(last - first for first, last in done.log.ranges.values()) == 3
    assert [one.snapshot_id for one in read_log_markers(KafkaLog(settings))] == [0, 1, 2]
    assert check_markers(engine, "d.t", settings) == 0


def test_every_kind_of_change_ends_as_the_table(engine: Engine, broker: BrokerInfo) -> None:
    """Deletes, updates, merges, overwrites, a compaction, a new column, nothing at all, a restore, a rewrite of all."""
    settings = _new_table(engine, broker.url)
    engine.sql("delete from d.t where id < 4")
    engine.sql("update d.t set v = 'u' where id = 5")
    engine.sql(
        "merge into d.t using (select 5 as id union select 50) s on d.t.id = s.id "
        "when matched then delete when not matched then insert (id, v) values (s.id, 'm')"
    )
    engine.sql("insert overwrite d.t values (6, 'o'), (7, 'a'), (70, 'o')")
    engine.table("d.t").compact(full=True)
    engine.sql("alter table d.t add columns (w int)")
    engine.sql("insert into d.t values (71, 'w', 1)")
    engine.sql("delete from d.t where id = -1")
    assert topic_rows(settings) == stored_rows(engine, "d.t") == {6: "o", 7: "a", 70: "o", 71: "w"}
    engine.table("d.t").restore(snapshot=2)
    engine.sql("delete from d.t")
    engine.sql("insert into d.t values (1, 'z', 1)")
    assert topic_rows(settings) == stored_rows(engine, "d.t") == {1: "z"}
    check_markers(engine, "d.t", settings)
    assert engine.table("d.t").verify() == ()


@pytest.mark.nightly  # by day rows before their snapshot; adapter/test_log.py: red rows
def test_what_waits_is_not_visible(engine: Engine, broker: BrokerInfo) -> None:
    """Staged rows and rows of a write that does not publish go behind their snapshot alone."""
    settings = _new_table(engine, broker.url)
    count = engine.count_log_messages("d.t")
    engine.write("d.t", _rows(_1="staged"), WriteSpec(stage="s"))
    engine.write("d.t", _rows(_2="kept"), WriteSpec(publish=False))
    assert engine.count_log_messages("d.t") == count
    engine.table("d.t").publish()
    assert engine.count_log_messages("d.t") == count + 1
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    newest = next(
        one for one in reversed(list(read_messages(KafkaLog(settings)))) if b'"id":2' in (one.key or b"")
    )
    assert (newest.snapshot_id, newest.early) == (2, None)
    check_markers(engine, "d.t", settings)


@pytest.mark.nightly  # by day tests/laws/test_eventual_laws.py; a write that fails, below
def test_a_lost_claim_is_planned_again(
    engine: Engine, broker: BrokerInfo, points: Points, tmp_path: Path
) -> None:
    """Another writer takes key 1 away before the claim: the first attempt's rows are unconfirmed and repaired."""
    settings = _new_table(engine, broker.url)
    with open_engine(tmp_path, broker.url) as other:

        def overtake() -> None:
            other.write("d.t", _rows(_1="other", _8="other"), WriteSpec())

        points.todo["commit.manifests"] = overtake
        engine.write("d.t", _rows(_1="mine", _2="mine"), WriteSpec())
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    assert stored_rows(engine, "d.t")[1] == "mine"
    assert stored_rows(engine, "d.t")[8] == "other"
    check_markers(engine, "d.t", settings)


def test_a_write_that_fails_takes_its_rows_back(engine: Engine, broker: BrokerInfo, points: Points) -> None:
    """Rows that were out already get their old value, new keys a tombstone, at once."""
    settings, seen = _new_table(engine, broker.url), []

    def fail() -> None:
        seen.append(topic_rows(settings))
        raise RetryError("TS1305", "overtaken", why="-", fix="-")

    points.todo["commit.manifests"] = fail
    with pytest.raises(RetryError, match="TS1305"):
        engine.write("d.t", _rows(_1="never", _100="never"), WriteSpec())
    assert seen == [{**dict.fromkeys(range(2, 10), "a"), 1: "never", 100: "never"}]
    assert topic_rows(settings) == stored_rows(engine, "d.t") == dict.fromkeys(range(1, 10), "a")
    check_markers(engine, "d.t", settings)


def _impatient(settings: LogSettings | None) -> LogSettings | None:
    return None if settings is None else with_timeout(settings, 2.0)


def _run(command: list[str], crash: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, CRASH_ENV: crash}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


_CRASHES = (
    *("log.early:2", "commit.claimed:1", "log.marker:1", "log.early:1", "write.data_files:1"),
    *("commit.manifests:1", "commit.done:1", "log.early:3", "commit.manifests:2"),
)
_BY_DAY = (("log.early:2", "json"),)


@pytest.mark.parametrize(
    ("crash", "value_format"),
    [
        pytest.param(*one, marks=[] if one in _BY_DAY else pytest.mark.nightly)
        for one in product(_CRASHES, ("debezium-json", "json"))
    ],
)
def test_killed_between_every_two_steps(
    engine: Engine, broker: BrokerInfo, tmp_path: Path, crash: str, value_format: str
) -> None:
    """Whoever publishes next takes back what the dead process left; the same command again is written once."""
    settings = _new_table(engine, broker.url, **{"log.format": value_format})
    command = [*CHILD, str(tmp_path), broker.url, "w", "7", "0", "2"]
    assert _run(command, crash).returncode == -signal.SIGKILL
    engine.table("d.t").publish()
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    check_markers(engine, "d.t", settings)
    again = _run(command)
    assert again.returncode == 0, again.stderr
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    check_markers(engine, "d.t", settings)
    identities = [(one.commit_user, one.commit_identifier) for one in engine.table("d.t").snapshots()]
    assert [one for one in identities if one[0] == "w"] == [("w", 0), ("w", 1)]


@pytest.mark.nightly  # by day the kills above; tests/laws/test_eventual_laws.py
@pytest.mark.parametrize(
    "point",
    [
        "log.marker:1",
        *(pytest.param(one, marks=pytest.mark.nightly) for one in ("log.repairs:1", "log.committed:1")),
    ],
)
def test_killed_while_setting_right(engine: Engine, broker: BrokerInfo, tmp_path: Path, point: str) -> None:
    """A process that dies while it repairs what another one left: nothing of it is visible, the next one does it."""
    settings = _new_table(engine, broker.url)
    command = [*CHILD, str(tmp_path), broker.url, "w", "3", "0", "1"]
    assert _run(command, "commit.manifests:1").returncode == -signal.SIGKILL
    dirty = topic_rows(settings)
    assert dirty != stored_rows(engine, "d.t")
    healer = [sys.executable, "-m", "tablestore_engine.cli.main", "publish", "d.t"]
    healer += ["--warehouse", str(tmp_path), "--bootstrap", broker.url]
    assert _run(healer, point).returncode == -signal.SIGKILL
    if point != "log.committed:1":
        assert topic_rows(settings) == dirty
    healed = _run(healer)
    assert healed.returncode == 0, healed.stderr
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    check_markers(engine, "d.t", settings)


@pytest.mark.nightly  # by day exactly_once::test_two_publishers_at_once
def test_two_writers_at_once(engine: Engine, broker: BrokerInfo, tmp_path: Path) -> None:
    """Two processes with the same keys, fencing each other: in the end every marker holds."""
    settings = _new_table(engine, broker.url)
    commands = [[*CHILD, str(tmp_path), broker.url, f"w{n}", str(n), "0", "8"] for n in range(2)]
    both = [
        subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for one in commands
    ]
    for process in both:
        errors = process.communicate(timeout=240)[1]
        assert process.returncode == 0, errors
    engine.table("d.t").publish()
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    check_markers(engine, "d.t", settings)
    users = [one.commit_user for one in engine.table("d.t").snapshots()]
    assert [users.count("w0"), users.count("w1")] == [8, 8]


@pytest.mark.nightly  # by day test_pending.py: the broker goes behind the commit
def test_a_broker_that_goes_in_the_middle(
    tmp_path: Path, points: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows do not get through: the commit stands, its log is pending, and the next publication sends it."""
    folder, resolve = tmp_path / "broker", kafka_sink.resolve_log
    monkeypatch.setattr(
        kafka_sink, "resolve_log", lambda *given, **named: _impatient(resolve(*given, **named))
    )
    broker = start_broker(folder)
    try:
        with open_engine(tmp_path / "wh", broker.url, points) as engine:
            settings = _new_table(engine, broker.url)
            points.todo["log.early"] = lambda: stop_broker(folder)
            with pytest.raises(PublishPending, match="TS1070"):
                engine.write("d.t", _rows(_1="late", _2="late", _3="late"), WriteSpec())
            assert engine.table("d.t").latest_snapshot_id() == 2
            start_broker(folder)
            engine.write("d.t", _rows(_4="later"), WriteSpec())
            assert topic_rows(settings) == stored_rows(engine, "d.t")
            assert stored_rows(engine, "d.t")[1] == "late"
            check_markers(engine, "d.t", settings)
    finally:
        stop_broker(folder)


def test_a_first_write_that_is_killed_or_refused(engine: Engine, broker: BrokerInfo, points: Points) -> None:
    """Rows of a table that never came to be are taken back by the table that comes to its place."""
    topic = f"e-{uuid.uuid4().hex}"
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options_of(topic)))

    def refuse() -> None:
        raise RetryError("TS1305", "overtaken", why="-", fix="-")

    points.todo["commit.manifests"] = refuse
    with pytest.raises(RetryError):
        engine.write("d.t", _rows(_1="never", _2="never"), spec)
    engine.write("d.t", _rows(_1="here"), spec)
    settings = settings_of_table(engine, "d.t", broker.url)
    assert topic_rows(settings) == stored_rows(engine, "d.t") == {1: "here"}
    check_markers(engine, "d.t", settings)


@pytest.mark.nightly  # by day tests/laws/test_eventual_laws.py; a new beginning, below
def test_a_table_changes_its_consistency_twice(
    engine: Engine, broker: BrokerInfo, points: Points, tmp_path: Path
) -> None:
    """With what is pending and what another process left: nothing is lost, and late early rows are taken back."""
    settings = _new_table(engine, broker.url, **{"log.consistency": "transactional"})
    engine.write("d.t", _rows(_1="b"), WriteSpec(publish=False))
    engine.sql("alter table d.t set tblproperties ('log.consistency'='eventual')")
    engine.write("d.t", _rows(_2="c"), WriteSpec())
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    engine.write("d.t", _rows(_3="d"), WriteSpec())
    assert list(read_messages(KafkaLog(settings)))[-1].early is not None
    check_markers(engine, "d.t", settings)
    command = [*CHILD, str(tmp_path), broker.url, "w", "3", "0", "1"]
    assert _run(command, "commit.manifests:1").returncode == -signal.SIGKILL
    engine.sql("alter table d.t set tblproperties ('log.consistency'='transactional')")
    assert topic_rows(settings) != stored_rows(engine, "d.t")
    engine.write("d.t", _rows(_4="e"), WriteSpec())
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    last = [one for one in read_messages(KafkaLog(settings)) if b'"id":4' in (one.key or b"")][-1]
    assert last.early is None
    check_markers(engine, "d.t", settings)


def test_what_does_not_go_together_is_refused(engine: Engine, broker: BrokerInfo) -> None:
    """Without a key, with rows before changes; by a write and by ALTER TABLE, before anything is there."""
    options = options_of(f"e-{uuid.uuid4().hex}")
    with pytest.raises(FixRequest, match="TS1740"):
        engine.write("d.n", _rows(_1="a"), WriteSpec(table=TableSpec(options=options)))
    keyed = TableSpec(primary_key=("id",), options={**options, "log.changelog-mode": "all"})
    with pytest.raises(FixRequest, match="TS1741"):
        engine.write("d.n", _rows(_1="a"), WriteSpec(table=keyed))
    _new_table(engine, broker.url, **{"log.consistency": "transactional", "log.changelog-mode": "all"})
    with pytest.raises(FixRequest, match="TS1741"):
        engine.sql("alter table d.t set tblproperties ('log.consistency'='eventual')")
    assert engine.table("d.t").schema.options["log.consistency"] == "transactional"


@pytest.mark.parametrize("is_lost", cases([False, True], 1), ids=["reset", "markers lost"])
def test_a_new_beginning_takes_phantoms_back(
    engine: Engine, broker: BrokerInfo, tmp_path: Path, is_lost: bool
) -> None:
    """`publish --reset` begins behind a snapshot; what a dead process left before it is still taken back. Where the
    markers are gone nothing is guessed: TS1707, then the same.
    """
    settings = _new_table(engine, broker.url)
    command = [*CHILD, str(tmp_path), broker.url, "w", "3", "0", "1"]
    assert _run(command, "commit.manifests:1").returncode == -signal.SIGKILL
    if is_lost:
        _delete(KafkaLog(settings).connected(), [settings.marker_topic])
        with open_engine(tmp_path, broker.url) as fresh, pytest.raises(FixRequest, match="TS1707"):
            fresh.table("d.t").publish()
    engine.table("d.t").reset_log(1)
    engine.write("d.t", _rows(_5="z"), WriteSpec())
    assert topic_rows(settings) == stored_rows(engine, "d.t")
    check_markers(engine, "d.t", settings)


def test_large_writes_send_from_spark_tasks(
    broker: BrokerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a frame go out from the workers that made them, all of them before the claim; nothing is sent again."""
    points, seen = Points(), []
    monkeypatch.setattr("tablestore_engine.warehouse.write.frame_rows.collect_small", lambda _, **__: None)
    monkeypatch.setattr("tablestore_engine.spark.task_placement.SMALL_BYTES", 0)
    with ExitStack() as stack:
        engine = stack.enter_context(open_engine(tmp_path, broker.url, points, master="local[2]"))
        settings = _new_table(engine, broker.url, bucket="4")
        points.todo["commit.manifests"] = lambda: seen.append(len(list(read_messages(KafkaLog(settings)))))
        engine.sql("insert into d.t select id, 'w' from range(5, 3000)")
        assert seen == [9 + 2995]
        points.todo["commit.manifests"] = lambda: seen.append(len(list(read_messages(KafkaLog(settings)))))
        engine.sql(
            "insert overwrite d.t select id, 'o' from range(1000, 2000)"
        )  # stored rows go by bucket tasks
        assert seen[1] == seen[0] + 2999
        messages = list(read_messages(KafkaLog(settings)))
        assert len(messages) == seen[1]
        assert len({one.early for one in messages}) >= 8
        assert topic_rows(settings) == stored_rows(engine, "d.t")
        assert check_markers(engine, "d.t", settings) == 0
