"""The topic of a table with a real broker behind the page: pending, published, and a broker that is stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

from integration_tests.ui.conftest import Open, Served, serve
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.doubles.faults import SimulatedCrash, crashing
from tests.unit.ui.page_world import SetClock

TOPIC = "shop-orders"
OPTIONS = {"log.system": "kafka", "kafka.topic": TOPIC}
SPEC = WriteSpec(table=TableSpec(primary_key=("id",), options=OPTIONS))


@pytest.fixture
def live(tmp_path: Path) -> Iterator[BrokerInfo]:
    """A broker that the test may stop."""
    folder = tmp_path / "broker"
    yield start_broker(folder, say=print)
    stop_broker(folder)


@pytest.fixture
def logged(live: BrokerInfo, tmp_path: Path) -> Iterator[Served]:
    """demo.orders: snapshot 1 is published. Snapshot 2 changed two rows; its writer died before it published them."""
    folder = str(tmp_path / "warehouse")
    log = {"kafka.bootstrap.servers": live.url, "kafka.socket.timeout.ms": "2000"}
    with Engine(folder, log=log, environ={}) as writer:
        writer.write("demo.orders", pa.table({"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0]}), SPEC)
    dies = crashing(SYSTEM, "commit.done")
    with Engine(folder, log=log, environ={}, runtime=dies) as killed, pytest.raises(SimulatedCrash):
        killed.write("demo.orders", pa.table({"id": [2, 3], "amount": [4.0, 5.0]}), SPEC)
    with Engine(folder, log=log, environ={}) as engine, serve(engine, SetClock()) as served:
        yield served


def topic_of(page: Page) -> Locator:
    """The part of the page."""
    return page.locator("section").filter(has=page.get_by_role("heading", name="Topic", exact=True))


def cells_of(page: Page) -> list[str]:
    """Published, newest, lag in rows and in time, whether a transaction is open."""
    return page.get_by_role("region", name="State of the topic").locator("td").all_inner_texts()


@pytest.mark.nightly  # by day test_topic.py, and tests/unit/ui
def test_lag_notice_and_recovery_of_a_live_topic(watch: Open, logged: Served, live: BrokerInfo) -> None:
    """One snapshot of four changes is pending, then none; a stopped broker is a notice, until it answers again."""
    page = watch().open(logged.of("demo.orders"))
    expect(topic_of(page)).to_contain_text("lags by 1 snapshot")
    expect(topic_of(page)).to_contain_text(TOPIC)
    published, newest, rows, age, is_open = cells_of(page)
    assert (published, newest, rows, is_open) == ("1", "2", "4", "no")
    assert re.fullmatch(r"\d+ (second|minute)s?", age)

    logged.engine.table("demo.orders").publish()
    page.reload()
    expect(topic_of(page)).to_contain_text("up to date")
    assert cells_of(page)[:3] == ["2", "2", "0"]

    assert stop_broker(Path(live.data_dir))
    page.reload()
    notice = topic_of(page).get_by_role("note")
    expect(notice).to_contain_text("TS1702")
    expect(notice).to_contain_text(live.url)
    expect(notice).to_contain_text("Next: ")
    assert page.locator("main .trouble[role=note]").count() == 1
    expect(page.locator(".timeline .snap")).to_have_count(2)

    start_broker(Path(live.data_dir))
    logged.clock.wait(10)
    page.reload()
    expect(topic_of(page)).to_contain_text("up to date")
