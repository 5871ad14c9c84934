"""A log in trouble around a commit: before it nothing is written, behind it nothing is written twice."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import FixRequest, PublishPending, RetryError
from tablestore_engine.log.dev_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.runtime.system import Runtime


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
    log = {"kafka.bootstrap.servers": broker.url, "kafka.socket.timeout.ms": "2000"}
    with Engine(str(tmp_path), log=log, runtime=runtime) as engine:
        shop = Shop(
            engine, broker, actions, WriteSpec(table=TableSpec(options=options), mode=WriteMode.APPEND)
        )
        shop.append(1)
        yield shop


def test_a_broker_that_is_away_stops_the_write_before_its_commit(shop: Shop, own_broker: Path) -> None:
    """TS1702, and the table has neither a snapshot nor a row more."""
    stop_broker(own_broker)
    with pytest.raises(RetryError, match="TS1702"):
        shop.append(2)
    start_broker(own_broker)
    assert shop.ids() == ([1], [1])


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
    Path(table.store.location, "snapshot", "snapshot-2").unlink()
    with pytest.raises(FixRequest, match="TS1733") as caught:
        shop.append(4)
    assert "publish --reset" in str(caught.value)
    assert table.latest_snapshot_id() == 3
    table.reset_log(2)
    shop.append(4)
    assert shop.ids() == ([1, 2, 3, 4], [1, 3, 4])
