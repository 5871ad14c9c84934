"""1,000 tables and 10,000 snapshots: work is counted, not timed (benchmarks/page_loads.py measures seconds)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from integration_tests.ui.conftest import Open, Served, serve
from tablestore_engine.api import WriteSpec
from tests.unit.ui.page_world import SetClock, clone_snapshots, open_engine, orders

# by day tests/unit/ui/test_snapshot_pages.py: pages of snapshots and of names
pytestmark = pytest.mark.nightly
TABLES, SNAPSHOTS = 1_000, 10_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Copies of one table under other names; one of them with copies of its snapshot, and a commit behind these."""
    clock = SetClock()
    folder = tmp_path_factory.mktemp("large") / "warehouse"
    engine = open_engine(folder, clock)
    engine.write("demo.t0000", orders(1, 20), WriteSpec())
    for number in range(1, TABLES):
        shutil.copytree(folder / "demo.db" / "t0000", folder / "demo.db" / f"t{number:04}")
    clone_snapshots(folder, "demo", "t0500", SNAPSHOTS - 2, clock)
    engine = open_engine(Path(engine.warehouse), clock, seed=8)
    clock.wait(1)
    engine.write("demo.t0500", orders(5, 30, 1), WriteSpec())
    with serve(engine, clock) as served:
        yield served


def test_1000_tables_are_listed_at_once(watch: Open, large: Served) -> None:
    """One listing; figures for the visible lines alone; a bounded document."""
    tab = watch()
    page = tab.open(large.address)
    assert page.locator("#counted").inner_text() == "1,000 names"
    page.locator("nav .line time").nth(10).wait_for()
    assert (tab.requests["page"], tab.requests["tables"]) == (1, 1)
    assert tab.requests["summaries"] <= 3
    assert tab.requests["streams"] == 0
    assert tab.count_nodes() < 3_000
    expect(page.locator("nav a.entry")).to_have_count(250)
    page.get_by_role("button", name="Show 250 more").click()
    expect(page.locator("nav a.entry")).to_have_count(500)


def test_filter_reaches_all_1000(watch: Open, large: Served) -> None:
    """Names that the list has not drawn are found."""
    page = watch().open(large.address)
    page.get_by_role("searchbox").fill("t0999")
    expect(page.locator("nav a.entry")).to_have_count(1)
    page.locator("nav a.entry").click()
    page.get_by_role("heading", name="demo.t0999").wait_for()


def test_10000_snapshots_page_by_page(watch: Open, large: Served) -> None:
    """The newest 120, older ones by a button, any place by the curve; each page is one request."""
    tab = watch()
    page = tab.open(large.of("demo.t0500"))
    page.get_by_role("heading", name="Snapshots (10,000)").wait_for()
    ends = page.locator(".snap")
    assert (ends.count(), ends.last.get_attribute("data-end")) == (120, "10000")
    assert tab.count_nodes() < 6_000
    assert page.get_by_role("button", name="Newer").is_disabled()
    page.get_by_role("button", name="Older").click()
    page.locator('.snap[data-end="9761"]').wait_for()
    assert (ends.count(), ends.last.get_attribute("data-end")) == (120, "9880")
    page.get_by_role("button", name="Newer").click()
    page.locator('.snap[data-end="10000"]').wait_for()
    box = page.get_by_role("img", name="Stored rows from snapshot 1 to 10000").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 2, box["y"] + 10)
    page.locator('.snap[data-end="1"]').wait_for()
    page.get_by_role("button", name="Newest").click()
    page.locator('.snap[data-end="10000"]').wait_for()
    assert (tab.requests["table"], tab.requests["snapshots"]) == (1, 4)
    assert tab.count_nodes() < 6_000


def test_difference_at_the_end_of_10000(watch: Open, large: Served) -> None:
    """Of the real commit behind the copies."""
    page = watch().open(large.of("demo.t0500"))
    page.locator('.snap[data-end="9999"]').click()
    page.locator('.snap[data-end="10000"]').click()
    page.get_by_role("heading", name="Difference, snapshot 9999 to 10000").wait_for()
    assert page.locator(".totals").inner_text().startswith("+")
