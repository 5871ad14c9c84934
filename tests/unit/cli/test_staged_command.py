"""staged and publish on a real warehouse, without a broker."""

from __future__ import annotations

import pytest

from tablestore_engine.api import Engine, WriteSpec

from .conftest import KEYED, Run, orders

TEST_ID = "test.shop.unique_orders_order_id.ab12"


@pytest.fixture
def staged(engine: Engine) -> Engine:
    """Order 9 is staged under the name `try`."""
    engine.write("demo.orders", orders((9, "zed", 9.0)), WriteSpec(table=KEYED, stage="try"))
    return engine


def test_staged_lists_outcomes(run: Run, staged: Engine) -> None:
    """A staged snapshot is listed with its base and what its tests said."""
    staged.table("demo.orders").record_outcome("try", TEST_ID, "green")
    for words in ((), ("demo",), ("demo.orders",)):
        (found,) = run("staged", *words, "--json").json
        assert (found["table"], found["name"]) == ("demo.orders", "try")
        assert (found["snapshot"], found["base_snapshot"]) == (4, 3)
        assert found["outcomes"] == {TEST_ID: "green"}
    assert run("staged", "demo.events", "--json").json == []


def test_publish_staged(run: Run, staged: Engine) -> None:
    """Publishing a staged snapshot makes it the newest one of the table."""
    report = run("publish", "demo.orders", "--staged", "try", "--json").json
    assert (report["snapshot"], report["inserted"], report["offsets"]) == (4, 1, {})
    assert staged.table("demo.orders").latest_snapshot_id() == 4
    assert run("staged", "--json").json == []


def test_a_red_snapshot_needs_force(run: Run, staged: Engine) -> None:
    """While a test is red nothing is published, unless --force says so."""
    staged.table("demo.orders").record_outcome("try", TEST_ID, "red")
    refused = run("publish", "demo.orders", "--staged", "try")
    assert refused.status == 1
    assert "TS1923" in refused.err
    assert "unique_orders_order_id" in refused.err
    assert staged.table("demo.orders").latest_snapshot_id() == 3
    assert run("publish", "demo.orders", "--staged", "try", "--force").status == 0
    assert staged.table("demo.orders").latest_snapshot_id() == 4


def test_publish_without_a_log(run: Run) -> None:
    """A table without a log system has nothing to publish to, and the error says how to give it one."""
    done = run("publish", "demo.orders")
    assert done.status == 1
    assert "TS1922" in done.err


def test_reset_and_staged_exclude_each_other(run: Run, staged: Engine) -> None:
    """A new beginning of the log beside a staged snapshot would be passed over in silence: wrong usage."""
    with pytest.raises(SystemExit) as stopped:
        run("publish", "demo.orders", "--staged", "try", "--reset", "0")
    assert stopped.value.code == 2
    assert [one.name for one in staged.staged("demo.orders")] == ["try"]
