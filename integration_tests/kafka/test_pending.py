"""A log in trouble around a commit: before it nothing is written, behind it nothing is written twice."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import FixRequest, PublishPending, RetryError
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.spi import PENDING, PUBLISHED, REFUSED, Outcome, Staged, Verdict, stage_properties


@dataclass
class Shop:
    """An append-only table `d.t` of one snapshot on a broker of its own; `at` runs actions at crash points."""

    engine: Engine
    broker: BrokerInfo
    at: dict[str, Callable[[], object]]
    spec: WriteSpec

    def append(self, number: int, **identity: object) -> object:
        """One row."""
        rows = pa.table({"id": [number]})
        return self.engine.write("d.t", rows, WriteSpec(**{**vars(self.spec), **identity}))

    def stage(self, number: int) -> Staged:
        """One row that waits, and its test is green."""
        planned = stage_properties(Staged("d.t", "gate", "", gates=("t",), owner="d.t"))
        self.append(number, stage="gate", properties=planned)
        (item,) = self.staged()
        self.engine.gate.record(item, Outcome("t", Verdict.GREEN, (item.as_read,)))
        return self.staged()[0]

    def staged(self) -> tuple[Staged, ...]:
        """What waits, as whoever comes next reads it."""
        return self.engine.gate.read_book("d.t").staged

    def lose(self, snapshot_id: int) -> None:
        """A snapshot that no log has expires."""
        Path(self.engine.table("d.t").store.location, "snapshot", f"snapshot-{snapshot_id}").unlink()

    def ids(self) -> tuple[list[int], list[int]]:
        """Keys in the table, and number of messages per snapshot in the topic."""
        table = self.engine.table("d.t")
        rows = sorted(table.scan().to_arrow()["id"].to_pylist())
        return rows, [message.snapshot_id or 0 for message in table.log_messages()]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose broker the tests may stop."""
    folder = tmp_path_factory.mktemp("pending-broker")
    yield folder
    stop_broker(folder)


@pytest.fixture
def shop(own_broker: Path, tmp_path: Path) -> Iterator[Shop]:
    """See Shop."""
    broker = start_broker(own_broker)
    actions: dict[str, Callable[[], object]] = {}
    runtime = Runtime(on_crash_point=lambda name: actions.pop(name, lambda: None)())
    options = {"log.system": "kafka", "kafka.topic": f"pending-{uuid.uuid4().hex}"}
    log = {"kafka.bootstrap.servers": broker.url, "kafka.default.api.timeout.ms": "3000"}
    with Engine(str(tmp_path), log=log, runtime=runtime) as engine:
        shop = Shop(
            engine, broker, actions, WriteSpec(table=TableSpec(options=options), mode=WriteMode.APPEND)
        )
        shop.append(1)
        yield shop


@pytest.mark.nightly  # by day test_stream_sink.py: without the broker nothing is committed
def test_a_broker_that_is_away_stops_the_write_before_its_commit(shop: Shop, own_broker: Path) -> None:
    """TS1702, and the table has neither a snapshot nor a row more."""
    stop_broker(own_broker)
    with pytest.raises(RetryError, match="TS1702"):
        shop.append(2)
    start_broker(own_broker)
    assert shop.ids() == ([1], [1])


@pytest.mark.nightly  # by day test_rights.py: a right that goes after the commit
def test_a_broker_that_goes_behind_the_commit_leaves_a_pending_log(shop: Shop, own_broker: Path) -> None:
    """TS1070 names the snapshot; the same write again, by its identity, only publishes."""
    shop.at["commit.done"] = lambda: stop_broker(own_broker)
    with pytest.raises(
        PublishPending, match=r"TS1070 snapshot 2 of d\.t is committed, its log is pending"
    ) as caught:
        shop.append(2, commit_user="me", commit_identifier=1)
    assert caught.value.facts["snapshot"] == 2
    start_broker(own_broker)
    assert shop.ids() == ([1, 2], [1])
    shop.append(2, commit_user="me", commit_identifier=1)
    assert shop.ids() == ([1, 2], [1, 2])


def test_a_gap_is_told_before_the_commit_and_names_the_way_out(shop: Shop) -> None:
    """An unpublished snapshot that is deleted: TS1733 with --reset, nothing written; after the reset all goes on."""
    shop.append(2, publish=False)
    shop.append(3, publish=False)
    table = shop.engine.table("d.t")
    shop.lose(2)
    with pytest.raises(FixRequest, match="TS1733") as caught:
        shop.append(4)
    assert "publish --reset" in str(caught.value)
    assert table.latest_snapshot_id() == 3
    table.reset_log(2)
    shop.append(4)
    assert shop.ids() == ([1, 2, 3, 4], [1, 3, 4])


def test_what_the_log_lacks_does_not_expire(shop: Shop) -> None:
    """Neither behind commits nor when asked: what is sent later is every change, once; then it expires."""
    small = {
        **shop.spec.table.options,
        "kafka.topic": f"expiring-{uuid.uuid4().hex}",
        "snapshot.num-retained.min": "1",
        "snapshot.num-retained.max": "1",
        "tablestore.expire-grace": "0 ms",
    }
    spec = WriteSpec(table=TableSpec(options=small), mode=WriteMode.APPEND)
    write = lambda number, **more: shop.engine.write(  # noqa: E731 - the one line that differs
        "d.e", pa.table({"id": [number]}), replace(spec, **more)
    )
    table = shop.engine.table
    write(1)
    for number in (2, 3, 4):
        assert write(number, publish=False).not_expired is None
    assert table("d.e").snapshot_ids() == (1, 2, 3, 4)
    assert table("d.e").expire().reason == "the log has snapshots up to 1"
    assert write(5).expired == 4
    assert table("d.e").snapshot_ids() == (5,)
    assert [message.snapshot_id for message in table("d.e").log_messages()] == [1, 2, 3, 4, 5]
    last = write(6).snapshot_id  # behind a snapshot that joins the small files
    assert [message.snapshot_id for message in table("d.e").log_messages()] == [1, 2, 3, 4, 5, last]
    assert table("d.e").snapshot_ids() == (last,)


@pytest.mark.nightly  # by day the write of the first test
def test_a_broker_that_is_away_stops_the_claim_of_what_is_staged(shop: Shop, own_broker: Path) -> None:
    """TS1082 says that nothing was published, and nothing is; stage and verdict wait, and go out later, once."""
    item = shop.stage(2)
    stop_broker(own_broker)
    (refused,) = shop.engine.gate.publish((item,))
    start_broker(own_broker)
    assert refused.state == REFUSED
    assert "TS1082 nothing was published: the log of d.t cannot take staged snapshot gate" in refused.line()
    assert "TS1702" in refused.line()
    assert shop.ids() == ([1], [1])
    (waiting,) = shop.staged()
    assert waiting.is_green
    (done,) = shop.engine.gate.publish((waiting,))
    assert done.state == PUBLISHED
    assert (shop.ids(), shop.staged()) == (([1, 2], [1, 2]), ())


def test_a_gap_stops_a_whole_group_before_its_first_claim(shop: Shop) -> None:
    """A table without a log, which would go first, stays staged too; after the reset both go out."""
    shop.append(2, publish=False)
    shop.append(3, publish=False)
    item = shop.stage(4)
    shop.engine.write("d.plain", pa.table({"id": [1]}), WriteSpec(stage="gate", mode=WriteMode.APPEND))
    (plain,) = shop.engine.gate.read_book("d.plain").staged
    shop.lose(2)
    refused = shop.engine.gate.publish((plain, item))
    assert [(one.state, one.error and one.error.code) for one in refused] == [(REFUSED, "TS1082")] * 2
    assert "publish --reset" in refused[0].line()
    with pytest.raises(RetryError, match="TS1082"):
        shop.engine.table("d.t").publish_staged("gate")
    assert shop.engine.table("d.t").latest_snapshot_id() == 3
    assert shop.engine.table("d.plain").latest_snapshot_id() is None
    shop.engine.table("d.t").reset_log(2)
    assert [one.state for one in shop.engine.gate.publish((plain, item))] == [PUBLISHED] * 2
    assert shop.ids() == ([1, 2, 3, 4], [1, 3, 4])


def test_what_is_out_stays_pending_until_its_log_is_sent(shop: Shop) -> None:
    """A gap that appears behind the claim: pending each time, never `nothing was published`; after the reset sent."""
    shop.append(2, publish=False)
    shop.append(3, publish=False)
    item = shop.stage(4)
    shop.at["stage.published"] = lambda: shop.lose(2)
    for _ in range(2):
        (pending,) = shop.engine.gate.publish((item,))
        assert (pending.state, pending.error and pending.error.code) == (PENDING, "TS1733")
        (item,) = shop.staged()
        assert item.is_out
    with pytest.raises(PublishPending, match=r"snapshot 4 of d\.t is committed"):
        shop.engine.table("d.t").publish_staged("gate")
    shop.engine.table("d.t").reset_log(2)
    shop.engine.table("d.t").publish_staged("gate")
    assert (shop.ids(), shop.staged()) == (([1, 2, 3, 4], [1, 3, 4]), ())


def test_a_stage_that_brings_the_log_is_checked_with_it(shop: Shop) -> None:
    """Its topic is deleted while it waits: TS1082, and the table has neither the row nor the log."""
    shop.engine.write("d.later", pa.table({"id": [1]}), WriteSpec(mode=WriteMode.APPEND))
    topic = f"later-{uuid.uuid4().hex}"
    options = {"log.system": "kafka", "kafka.topic": topic}
    spec = WriteSpec(table=TableSpec(options=options), mode=WriteMode.APPEND, stage="gate")
    shop.engine.write("d.later", pa.table({"id": [2]}), spec)
    admin = AdminClient({"bootstrap.servers": shop.broker.url})
    admin.delete_topics([topic])[topic].result()
    table = shop.engine.table("d.later")
    with pytest.raises(RetryError, match="TS1082") as caught:
        table.publish_staged("gate")
    assert "TS1705" in str(caught.value)
    assert table.latest_snapshot_id() == 1
    assert "log.system" not in table.schema.options
