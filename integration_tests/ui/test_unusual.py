"""Tables that are not as most are: empty, staged only, with hundreds of tags and columns, with one large commit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from integration_tests.ui.conftest import Open, Served, serve
from tablestore_engine.api import TableSpec, WriteSpec
from tests.unit.store.table_world import make_table, put, row
from tests.unit.store.test_changelog import foreign_level_zero
from tests.unit.ui.page_world import SetClock, hold_back, open_engine, orders


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One table of each kind."""
    clock = SetClock()
    engine = open_engine(tmp_path_factory.mktemp("unusual") / "warehouse", clock)
    engine.create_table("demo.empty", orders(1, 1), primary_key="order_id")
    hold_back(engine, clock, "demo.staged_only")
    spec = WriteSpec(table=TableSpec(primary_key=("order_id",)))
    engine.write("demo.uneven", orders(1, 50_000), spec)
    for turn in range(6):
        clock.wait(3)
        engine.write("demo.uneven", orders(turn, turn + turn % 3, turn + 1), spec)
    for number in range(200):
        engine.table("demo.uneven").tag(f"tag_{number}_of_a_long_series", 1 + number % 7)
    wide = pa.table({f"a_column_with_a_long_name_{at}": [at] for at in range(300)})
    engine.write("demo.wide", wide, WriteSpec())
    waiting = make_table(engine.warehouse)
    put(waiting, row(1))
    foreign_level_zero(waiting, [row(7), row(8)], [0, 0])
    with serve(engine, clock) as served:
        yield served


def test_empty_table(watch: Open, unusual: Served) -> None:
    """It says so, part by part."""
    page = watch().open(unusual.of("demo.empty"))
    page.get_by_text("Nothing was committed yet.").wait_for()
    text = page.locator("main").inner_text()
    assert "none yet" in text
    assert "There are no data files." in text
    assert page.locator(".trouble").count() == 0


def test_rows_that_wait_for_a_compaction_are_shown(watch: Open, unusual: Served) -> None:
    """Another engine wrote them; a table without any has no such fact."""
    page = watch().open(unusual.of("demo.t"))
    text = page.locator("dl.facts").inner_text()
    assert "Waiting for a compaction" in text
    assert "2 rows" in text
    assert "Waiting" not in watch().open(unusual.of("demo.wide")).locator("dl.facts").inner_text()


@pytest.mark.nightly  # by day test_page.py: the staged snapshot of the timeline
def test_table_that_only_has_a_staged_snapshot(watch: Open, unusual: Served) -> None:
    """A first build that is held back is in the list, with its failing rows."""
    page = watch().open(unusual.of("demo.staged_only"))
    assert page.locator(".timeline .snap").count() == 1
    page.get_by_role("region", name="Rows that fail orders_amount_is_positive").wait_for()
    assert "The first snapshot of the table" in page.locator("#staged").inner_text()


@pytest.mark.nightly  # by day the timeline in test_page.py
def test_one_large_commit_does_not_hide_the_others(watch: Open, unusual: Served) -> None:
    """The scale is logarithmic then, and says so; each commit has a bar to be seen."""
    page = watch().open(unusual.of("demo.uneven"))
    page.get_by_text("logarithmic scale").wait_for()
    heights = page.locator(".timeline .snap").evaluate_all(
        "(all) => all.map((one) => [...one.querySelectorAll('[class*=-fill]')].map((bar) => bar.getBBox().height))"
    )
    assert len(heights) == 7
    assert min(max(one) for one in heights) >= 2
    assert max(max(one) for one in heights) > 100


@pytest.mark.nightly  # by day tests/unit/ui/test_table_parts.py: tags
def test_200_tags(watch: Open, unusual: Served) -> None:
    """Flags have the first and the number of others; the table has all."""
    page = watch().open(unusual.of("demo.uneven"))
    page.locator("details > summary", has_text="Snapshots as a table").click()
    table = page.get_by_role("region", name="Snapshots of this part")
    assert "tag_199_of_a_long_series" in table.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


@pytest.mark.nightly  # by day the other unusual tables; narrow windows in test_access.py
def test_300_columns(watch: Open, unusual: Served) -> None:
    """A difference shows the first ones in a frame that scrolls."""
    page = watch(width=420).open(unusual.of("demo.wide"))
    page.get_by_label("From").fill("0")
    page.get_by_label("To", exact=True).fill("1")
    page.get_by_role("button", name="Show the difference").click()
    page.get_by_text("TS1302").wait_for()
    page.locator("details > summary", has_text="Columns (300)").click()
    assert page.get_by_role("region", name="Columns").locator("tbody tr").count() == 300
    assert page.evaluate("document.documentElement.scrollWidth") == 420
