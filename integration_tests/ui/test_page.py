"""The page in a real browser: what it shows of the shop, of hostile texts, and of a damaged table."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from integration_tests.ui.conftest import Open, Served
from tests.doses import cases
from tests.unit.ui.page_world import HOSTILE

Report = Callable[[Served, str], str]
# without pictures, whose width is that of the window
WORDS = """(main) => {
  const copy = main.cloneNode(true);
  copy.querySelectorAll("svg").forEach((one) => one.remove());
  return copy.textContent;
}"""


def test_list_has_all_tables_with_their_state(watch: Open, shop: Served) -> None:
    """Rows and age of each; the one that is held back and the damaged one are marked, in words too.

    By text contents: a line of the list has no inner text before the frame in which it is first painted.
    """
    page = watch().open(shop.address)
    lines = page.locator("nav a.entry")
    assert lines.count() == 6
    expect(page.locator("nav .line", has_text=re.compile("^…$"))).to_have_count(0)
    texts = dict(
        zip(
            lines.locator(".title").all_text_contents(),
            lines.locator(".line").all_text_contents(),
            strict=True,
        )
    )
    assert texts["demo.orders"] == "✕ held back · 678 rows · 5 hours ago"
    assert texts["demo.returns"] == "⚠ TS1111 cannot be read"
    assert texts["demo.large_orders"] == "view"
    streams = page.get_by_role("region", name="Tables that follow others")
    streams.wait_for()
    assert "48.1 kB" in streams.inner_text()


def test_start_page_has_the_state_of_all_tables(watch: Open, shop: Served) -> None:
    """What is held back first, the damaged one next; rows and sizes; a name leads to its table and back."""
    page = watch().open(shop.address)
    states = page.get_by_role("region", name="State of all tables")
    states.wait_for()
    lines = states.locator("tbody tr").all_inner_texts()
    assert len(lines) == 5
    assert [one.split("\t")[:2] for one in lines[:2]] == [
        ["demo.orders", "✕ held back"],
        ["demo.returns", "⚠ TS1111 cannot be read"],
    ]
    assert "\t678\t" in lines[0]
    assert "kB" in lines[0]
    assert "1 table held back" in page.locator("main").inner_text()
    states.get_by_role("link", name="demo.orders").click()
    page.get_by_role("heading", name="demo.orders").wait_for()


@pytest.mark.nightly  # by day tests/unit/ui/test_table_parts.py: first rows
def test_first_rows_are_read_on_request(watch: Open, shop: Served) -> None:
    """20 of the table's rows, and no request for them before."""
    tab = watch()
    page = tab.open(shop.of("demo.orders"))
    assert tab.requests["rows"] == 0
    page.get_by_role("button", name="Show the first rows").click()
    rows = page.get_by_role("region", name="20 of 678 rows")
    rows.wait_for()
    assert rows.locator("tbody tr").count() == 20
    assert rows.locator("th").all_inner_texts() == ["order_id", "customer", "amount", "status"]
    assert tab.requests["rows"] == 1


def test_filter_takes_parts_of_names(watch: Open, shop: Served) -> None:
    """Several words, in any order; the address of a table is a link."""
    page = watch().open(shop.address)
    page.get_by_role("searchbox").fill("ord lar")
    expect(page.locator("#counted")).to_have_text("1 of 6")
    assert page.locator("nav a.entry .title").all_text_contents() == ["demo.large_orders"]
    page.locator("nav a.entry").click()
    page.get_by_role("heading", name="demo.large_orders").wait_for()
    assert "amount > 50" in page.locator("pre").inner_text()
    assert page.title() == "demo.large_orders – tablestore"


def test_timeline_has_each_snapshot_and_the_staged_one(watch: Open, shop: Served) -> None:
    """36 commits and one staged snapshot; tags and the expiry horizon are drawn and in words."""
    page = watch().open(shop.of("demo.orders"))
    snaps = page.locator(".timeline .snap")
    assert snaps.count() == 37
    label = snaps.nth(0).get_attribute("aria-label")
    assert label is not None
    assert label.startswith("Snapshot 1, append, 2026-01-31")
    assert "300 inserted, 0 updated, 0 deleted" in label
    staged = snaps.nth(36).get_attribute("aria-label")
    assert staged is not None
    assert "held back: 1 test failed" in staged
    assert page.locator("svg text.on-flag").all_text_contents() == ["month_end", "audit_2026"]
    assert page.locator("line.horizon").count() == 2  # in the picture and in its legend
    assert "expire with the next commit" in page.locator("main").inner_text()


def test_two_clicks_show_a_difference(watch: Open, shop: Served) -> None:
    """Counts and rows of `tablestore diff`; a third click begins again; the form does the same."""
    page = watch().open(shop.of("demo.orders"))
    page.locator('.snap[data-end="33"]').click()
    page.locator('.snap[data-end="36"]').click()
    page.get_by_role("heading", name="Difference, snapshot 33 to 36").wait_for()
    counts = shop.engine.table("demo.orders").diff(33, 36)
    assert page.locator(".totals").inner_text().split("\n")[0].startswith(f"+{counts.inserted} inserted")
    expect(page.locator('.snap[aria-pressed="true"]')).to_have_count(2)
    page.locator('.snap[data-end="@staged:run"]').click()
    expect(page.locator('.snap[aria-pressed="true"]')).to_have_count(1)
    page.get_by_label("From").fill("36")
    page.get_by_label("To", exact=True).fill("@staged:run")
    page.get_by_role("button", name="Show the difference").click()
    page.get_by_role("heading", name="Difference, snapshot 36 to 37 (@staged)").wait_for()
    page.get_by_label("To", exact=True).fill("999")
    page.get_by_role("button", name="Show the difference").click()
    page.get_by_text("TS1302").wait_for()


def test_failing_rows_are_there(watch: Open, shop: Served) -> None:
    """The notice leads to them; NULL is no text."""
    page = watch().open(shop.of("demo.orders"))
    page.get_by_role("link", name="See the failing rows").click()
    rows = page.get_by_role("region", name="Rows that fail orders_amount_is_positive").locator("tbody tr")
    assert rows.nth(2).locator("td").all_inner_texts() == ["711", "NULL", "-250.0", "returned"]
    assert rows.nth(2).locator("td.null").count() == 1


def test_damaged_table_breaks_nothing(watch: Open, shop: Served) -> None:
    """One notice with code, cause and fix; the next table is shown as ever."""
    page = watch().open(shop.of("demo.returns"))
    page.locator(".trouble").wait_for()
    assert page.locator(".trouble").count() == 1
    assert page.locator(".trouble .what").inner_text().startswith("⚠ TS1111")
    assert "Next: " in page.locator(".trouble").inner_text()
    page.locator("nav a.entry", has_text="customers").click()
    page.get_by_role("heading", name="demo.customers").wait_for()


def test_missing_table_and_ended_server(watch: Open, shop: Served) -> None:
    """A stale link, and a server that has ended, are notices."""
    tab = watch()
    page = tab.open(shop.of("demo.never"))
    page.get_by_text("TS1414").wait_for()
    page.context.unroute_all()
    page.context.route("**/api/**", lambda route: route.abort())
    page.locator("nav a.entry", has_text="customers").click()
    page.get_by_text("the server does not answer").wait_for()
    tab.complaints = [one for one in tab.complaints if "net::ERR_FAILED" not in one]


@pytest.mark.parametrize("as_report", cases([False, True], 1))
def test_hostile_texts_are_texts(watch: Open, hostile: Served, report_file: Report, as_report: bool) -> None:
    """Names, comments, values, tests and stages are shown letter by letter; no element comes of them."""
    address = report_file(hostile, "demo.hostile") if as_report else hostile.of("demo.hostile")
    page = watch().open(address)
    page.locator(".timeline").wait_for()
    page.get_by_label("From").fill("1")
    page.get_by_label("To", exact=True).fill("2")
    page.get_by_role("button", name="Show the difference").click()
    page.get_by_role("heading", name="Difference").wait_for()
    for summary in page.locator("details > summary").all():
        summary.click()
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe, object, main script, main b").count() == 0
    assert page.locator("p.comment bdi").text_content() == HOSTILE.replace("\u202e", "\\u202e")
    assert "</script>" in page.locator("main").inner_text()
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\u2028]", page.locator("main").text_content() or "")
    directions = page.locator("main td.value bdi, main h1 bdi, p.comment bdi").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).unicodeBidi)"
    )
    assert set(directions) == {"isolate"}


@pytest.mark.nightly  # by day tests/unit/ui/test_table_parts.py: hostile folders
def test_hostile_folders_are_notices(watch: Open, hostile: Served) -> None:
    """A folder of the warehouse whose name is markup: listed or refused as text."""
    page = watch().open(hostile.address)
    page.get_by_text("TS1401").first.wait_for()
    page.locator("nav a.entry", has_text="<b>").click()
    page.locator("main .trouble").wait_for()
    assert page.locator("nav b, main img").count() == 0


def test_report_is_the_page_without_a_server(watch: Open, shop: Served, report_file: Report) -> None:
    """Offline, from a file: the same words as the page; a difference that is not in it names the command."""
    live = watch().open(shop.of("demo.orders"))
    live.locator(".timeline").wait_for()
    tab = watch(offline=True)
    page = tab.open(report_file(shop, "demo.orders"))
    served = live.locator("main").evaluate(WORDS)
    assert page.locator("main").evaluate(WORDS) == served.replace("RowsShow the first rows", "")
    assert page.locator("nav").count() == 0
    page.locator('.snap[data-end="35"]').click()
    page.locator('.snap[data-end="36"]').click()
    page.get_by_role("heading", name="Difference, snapshot 35 to 36").wait_for()
    page.locator('.snap[data-end="1"]').click()
    page.locator('.snap[data-end="36"]').click()
    page.get_by_text("tablestore diff demo.orders 1 36").wait_for()
    assert set(tab.requests) <= {"page"}


def test_page_works_without_internet(watch: Open, shop: Served) -> None:
    """Nothing is asked of another host (see the fixture), and the policy has no other host in it."""
    tab = watch()
    page = tab.open(shop.of("demo.daily_totals"))
    page.get_by_role("region", name="Sources that this table follows").wait_for()
    assert tab.elsewhere == []
    resources = page.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).host)")
    assert set(resources) == {page.evaluate("location.host")}
