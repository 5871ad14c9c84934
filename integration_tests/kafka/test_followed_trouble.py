"""What goes wrong between a reader and a table's log on a real broker: each its error, and never a gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from integration_tests.kafka.acl_lines import READER_RIGHTS, reader_acl_lines
from integration_tests.kafka.eventual import open_engine, settings_of_table
from integration_tests.kafka.followed import BOTH, Change, changes, ended, expire, folded, made, rows, stored
from integration_tests.kafka.secure import LoggedTable, Realm
from integration_tests.kafka.source import with_timeout
from integration_tests.kafka.topic_reads import read_log_markers
from integration_tests.kafka.topics import topics_left
from tablestore_engine.api import Engine, Table, TableStream, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import FixRequest, NotFound, RetryError, TablestoreError
from tablestore_engine.log.kafka import kafka_sink
from tablestore_engine.log.kafka.kafka_client import make_admin
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import _delete
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka_rights import Resource
from tests.doses import cases

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def engine(tmp_path: Path, broker: BrokerInfo) -> Iterator[Engine]:
    """On the shared broker."""
    with open_engine(tmp_path, broker.url) as opened:
        yield opened


def _position(table: Table, **words: object) -> str:
    """Of a reader that got its first rows."""
    with ended(table, batch_rows=4, **words) as stream:
        next(stream)
        return stream.position


def _grow(table: Table) -> None:
    """Snapshots 2 to 4."""
    for number in range(3):
        table.write(rows(_1=f"b{number}", _2=f"b{number}"))


# what is needed is gone -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_retention_took_messages(engine: Engine, broker: BrokerInfo, consistency: str) -> None:
    """A position before them, live or stored, is TS1358; a reader that begins anew gets all rows and goes on."""
    table = made(engine, consistency)
    settings = settings_of_table(engine, "d.t", broker.url)
    _grow(table)
    position = _position(table)
    live = ended(table, batch_rows=1)
    next(live)
    marker = next(one for one in read_log_markers(KafkaLog(settings)) if one.snapshot_id == 3)
    gone = [TopicPartition(settings.topic, part, end) for part, (_, end) in marker.offsets.items()]
    admin = make_admin(settings.client, settings.topic)
    for future in admin.delete_records(gone).values():
        future.result(30)
    live.close()
    with pytest.raises(NotFound, match="TS1358"):
        changes(live)
    with pytest.raises(NotFound, match="TS1358"):
        table.stream(position=position)
    with pytest.raises(NotFound, match="TS1358"):
        ended(table, "from-snapshot", snapshot_id=2)
    for mode in ("earliest", "latest-full"):
        assert folded(changes(ended(table, mode))) == stored(table), mode


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_the_base_has_expired(engine: Engine, consistency: str) -> None:
    """A consumer id keeps the snapshot that its reader stands on; without one it is gone, and TS1337 in a log that does
    not have everything from the table's beginning.
    """
    table = made(engine, consistency)
    table.reset_log(1)
    with ended(table, "latest-full", batch_rows=4) as stream:
        changes(stream)
        table.write(rows(_1="b0"))
        next(stream)
        position = stream.position
    with ended(table, "latest-full", consumer_id="kept", position=position) as kept:
        table.write(rows(_1="b1"))
        kept.commit()
        table.write(rows(_1="b2"))
        expire(table)
        assert table.snapshot_ids() == (2, 3, 4)
        rest = changes(ended(table, consumer_id="kept"))
        assert folded(rest, stored(table, 2)) == stored(table)
    table.delete_consumer("kept")
    expire(table)
    with pytest.raises(NotFound, match="TS1337"):
        changes(ended(table, position=position))


@pytest.mark.parametrize("consistency", cases(BOTH, 1))
def test_a_consumer_goes_on_where_it_committed(engine: Engine, consistency: str) -> None:
    """In the middle of a snapshot: what it did not commit comes again, everything else once."""
    table = made(engine, consistency)
    _grow(table)
    with ended(table, "earliest", consumer_id=None) as first:
        position = first.position
    got = []
    with ended(table, position=position, consumer_id="c", batch_rows=3) as stream:
        for _ in range(2):
            got += [(row["_row_kind"], row["id"], row["v"]) for row in next(stream).to_pylist()]
        stream.commit()
        next(stream)
    [facts] = table.consumers()
    assert facts.name == "c"
    assert folded(changes(ended(table, consumer_id="c")), folded(got)) == stored(table)


def test_another_beginning_of_the_log(engine: Engine) -> None:
    """`publish --reset`: an old position is TS1357, live or stored; who begins anew has the table."""
    table = made(engine, "eventual")
    _grow(table)
    position, live = _position(table), ended(table)
    assert folded(changes(live)) == stored(table)
    table.reset_log(3)
    table.publish()
    for reader in (lambda: changes(live), lambda: table.stream(position=position)):
        with pytest.raises(FixRequest, match="TS1357"):
            reader()
    live.close()
    with pytest.raises(NotFound, match="TS1356"):
        ended(table, "from-snapshot", snapshot_id=2)
    assert folded(changes(ended(table, "latest-full"))) == stored(table)


@pytest.mark.parametrize("is_made_anew", cases([False, True], 1), ids=["deleted", "made anew"])
def test_the_topic_goes(engine: Engine, broker: BrokerInfo, *, is_made_anew: bool) -> None:
    """TS1705 for a topic that was deleted, TS1706 for another one of its name, at the start and for who goes on."""
    table = made(engine, "transactional")
    settings = settings_of_table(engine, "d.t", broker.url)
    position, live = _position(table), ended(table)
    changes(live)
    log = KafkaLog(settings).connected()
    _delete(log, [settings.topic])
    marker = {settings.marker_topic}
    assert topics_left(log.admin, settings.topic, marker) == marker
    if is_made_anew:
        [future] = log.admin.create_topics([NewTopic(settings.topic, 2, 1)]).values()
        future.result(30)
        assert topics_left(log.admin, settings.topic, both := {settings.topic, *marker}) == both
    code = "TS1706" if is_made_anew else "TS1705"
    for reader in (lambda: table.stream(position=position), lambda: ended(table)):
        with pytest.raises(TablestoreError, match=code):
            reader()
    live.close()


def test_a_table_that_is_dropped(engine: Engine) -> None:
    """TS1336 to who follows it."""
    table = made(engine, "transactional")
    with ended(table) as live:
        changes(live)
        engine.drop_table("d.t")
        with pytest.raises(NotFound, match="TS1336"):
            changes(live)


# brokers and rights ---------------------------------------------------------------------------------------------


def _impatient(settings: LogSettings | None) -> LogSettings | None:
    return None if settings is None else with_timeout(settings, 2.0)


@pytest.mark.nightly  # by day consumers that resume, above, and test_pending.py
def test_a_broker_that_stops_and_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error, and the next call goes on behind the last batch: nothing twice, nothing lost."""
    folder, resolve = tmp_path / "broker", kafka_sink.resolve_log
    monkeypatch.setattr(
        kafka_sink, "resolve_log", lambda *given, **named: _impatient(resolve(*given, **named))
    )
    broker = start_broker(folder)
    try:
        with open_engine(tmp_path / "wh", broker.url) as engine:
            table = made(engine, "eventual")
            with ended(table) as live:
                found = folded(changes(live))
                table.write(rows(_1="b"))
                stop_broker(folder)
                with pytest.raises(TablestoreError, match="TS17"):
                    changes(live)
                start_broker(folder)
                found = folded(_once_it_answers(live), found)
                table.write(rows(_2="c"))
                assert folded(changes(live), found) == stored(table)
    finally:
        stop_broker(folder)


def _once_it_answers(stream: TableStream) -> list[Change]:
    """A broker that has just started knows no leaders for a moment: the same reader is asked again."""
    got, deadline = list[Change](), time.monotonic() + 300
    while True:
        try:
            for batch in stream:
                got += [(row["_row_kind"], row["id"], row["v"]) for row in batch.to_pylist()]
        except RetryError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return got


def test_who_only_reads_needs_no_more_than_this(secure_broker: BrokerInfo, tmp_path: Path) -> None:
    """Read on both topics: a user who may write nothing follows the log; without one of them, TS1750 names it."""
    realm = Realm(secure_broker)
    writer = realm.new_user()
    table = LoggedTable(tmp_path, writer.topic)
    for _ in range(2):
        table.write(writer.settings)
    for missing in (None, *READER_RIGHTS):
        reader = replace(realm.new_user([]), topic=writer.topic)
        realm.give(reader, [one for one in READER_RIGHTS if one != missing])
        with Engine(str(tmp_path), log=reader.settings, environ={}) as engine:
            follow = _follow(engine)
            if missing is None:
                assert follow() == [1, 2]
                continue
            with pytest.raises(FixRequest, match="TS1750") as refused:
                follow()
            topic = writer.topic + ("__snapshots" if missing.resource is Resource.MARKER else "")
            assert missing.operation in refused.value.why
            assert f"on topic {topic};" in refused.value.why


def _follow(engine: Engine) -> Callable[[], list[int]]:
    def read() -> list[int]:
        stream = engine.table("d.t").stream("earliest", read_mode="log", until="now")
        return [row["id"] for batch in stream for row in batch.to_pylist()]

    return read


def test_the_page_says_what_readers_need() -> None:
    """docs/log-system.md has the lines for an administrator."""
    text = (_ROOT / "docs" / "log-system.md").read_text()
    for line in reader_acl_lines("User:reader", "orders", "orders__snapshots"):
        assert f"kafka-acls.sh {line}" in text


def test_a_first_look_at_a_log_that_is_pending(engine: Engine) -> None:
    """A table whose newest snapshots are not published yet: `from-snapshot` of one of them waits for the log."""
    table = made(engine, "transactional")
    table.write(rows(_1="b"), WriteSpec(publish=False))
    with ended(table, "from-snapshot", snapshot_id=2) as stream:
        assert changes(stream) == []
        table.publish()
        assert changes(stream) == [("-U", 1, "a"), ("+U", 1, "b")]
