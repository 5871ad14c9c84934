"""The page of a warehouse on the S3 server: the same parts as on a disk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from integration_tests.s3.warehouses import address, hurried
from tablestore_engine.api import Engine
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.ui.html_report import collect_report, has_trouble, render_report
from tablestore_engine.ui.page_answers import PageAnswers
from tests.unit.ui.page_world import SetClock, hold_back, orders


@pytest.mark.usefixtures("credentials")
def test_parts_of_a_table_on_an_object_store(s3_server: S3ServerInfo, bucket: str) -> None:
    """Snapshots, sizes, failing rows, a difference, a report; a store that is gone is a notice."""
    clock = SetClock()
    runtime = replace(hurried(), now_ms=clock)
    with Engine(address(bucket, "page", s3_server.url), runtime=runtime, environ={}) as engine:
        orders_table = engine.create_table("demo.orders", orders(1, 1), primary_key="order_id")
        orders_table.upsert(orders(1, 50))
        orders_table.upsert(orders(40, 60, 1))
        hold_back(engine, clock)
        answers = PageAnswers(engine, clock)
        assert ("table", "demo.orders") in ask(answers, "tables")["relations"]
        found = ask(answers, "table", name="demo.orders")["value"]
        assert [key for key, part in found.items() if isinstance(part, dict) and "trouble" in part] == []
        assert found["staged"]["value"][0]["red"] == ["orders_amount_is_positive"]
        assert (
            ask(answers, "difference", name="demo.orders", **{"from": "1", "to": "2"})["value"]["updated"]
            == 11
        )
        report = collect_report(engine, "demo.orders", clock.ms, asks_brokers=False)
        assert not has_trouble(report)
        assert len(render_report(report)) > 10_000
    gone = address("no-such-bucket", "page", s3_server.url)
    with Engine(gone, runtime=runtime, environ={}) as engine:
        assert ask(PageAnswers(engine, clock), "table", name="demo.orders")["trouble"]["fix"]


def ask(answers: PageAnswers, route: str, **query: str) -> Any:
    """One answer."""
    find = answers.find(route)
    assert find is not None
    return find({key: [value] for key, value in query.items()})
