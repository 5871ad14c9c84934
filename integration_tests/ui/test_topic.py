"""The topic of a table is a question of its own: brokers that do not answer delay nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration_tests.ui.conftest import Open, Served

LAGGING = {
    "published": 34,
    "newest": 36,
    "lag": {"snapshots": 2, "rows": 50, "seconds": 3720.0, "since": None},
    "writer": {"open": False},
    "trouble": None,
}
AWAY = {"code": "TS1702", "what": "no Kafka broker answered", "why": "10 s", "fix": "start the brokers"}


def with_topic(route: Any) -> None:
    """The table has a topic."""
    answer = route.fetch()
    found = answer.json()
    found["value"]["facts"]["value"]["topic"] = "orders"
    route.fulfill(response=answer, body=json.dumps(found))


def test_page_is_complete_while_the_brokers_are_silent(watch: Open, shop: Served) -> None:
    """Everything else is drawn; then the answer comes, and it is a notice in its own part."""
    page = watch().page
    waiting: list[Any] = []

    def keep(route: Any) -> None:
        waiting.append(route)

    page.route("**/api/table?*", with_topic)
    page.route("**/api/topic?*", keep)
    page.goto(shop.of("demo.orders"))
    page.get_by_role("heading", name="Definition").wait_for()
    page.locator(".timeline").wait_for()
    page.get_by_text("Asking the brokers").wait_for()
    waiting.pop().fulfill(json={"trouble": AWAY})
    page.get_by_text("TS1702 no Kafka broker answered").wait_for()
    assert page.locator("main .trouble[role=note]").count() == 1


def test_lag_of_a_topic(watch: Open, shop: Served) -> None:
    """In words and in a table."""
    page = watch().page
    page.route("**/api/table?*", with_topic)
    page.route("**/api/topic?*", lambda route: route.fulfill(json={"value": LAGGING}))
    page.goto(shop.of("demo.orders"))
    page.get_by_text("lags by 2 snapshots").wait_for()
    cells = page.get_by_role("region", name="State of the topic").locator("td").all_inner_texts()
    assert cells == ["34", "36", "50", "62 minutes", "no"]


@pytest.mark.nightly  # by day the lag of a topic
def test_topic_that_is_up_to_date_shows_no_null(watch: Open, shop: Served) -> None:
    """What a part of the page leaves out is not written as a word."""
    page = watch().page
    page.route("**/api/table?*", with_topic)
    current = {**LAGGING, "published": 36, "lag": {"snapshots": 0, "rows": 0, "seconds": 0.0, "since": None}}
    page.route("**/api/topic?*", lambda route: route.fulfill(json={"value": current}))
    page.goto(shop.of("demo.orders"))
    page.get_by_text("up to date").wait_for()
    card = page.locator("section.card", has=page.get_by_role("heading", name="Topic")).inner_text()
    assert not {"null", "undefined", "false"} & set(card.split())
