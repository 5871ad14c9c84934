"""For every reader: keys alone, both themes with enough contrast, names of controls, narrow windows, less motion."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import expect

from integration_tests.ui.conftest import Open, Served
from tests.doses import case_rows, cases

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
UNNAMED = (Path(__file__).parent / "unnamed.js").read_text()


def show_everything(page: object) -> None:
    """A difference, and all that is folded."""
    page.locator('.snap[data-end="33"]').click()  # type: ignore[attr-defined]
    page.locator('.snap[data-end="36"]').click()  # type: ignore[attr-defined]
    page.get_by_role("heading", name="Difference").wait_for()  # type: ignore[attr-defined]
    for summary in page.locator("details > summary").all():  # type: ignore[attr-defined]
        summary.click()


@pytest.mark.parametrize(
    ("scheme", "table"),
    case_rows([*product(("light", "dark"), ("demo.orders", "demo.returns", "", "demo.daily_totals"))], 3),
)
def test_every_text_has_contrast(watch: Open, shop: Served, scheme: str, table: str) -> None:
    """At least 4.5 to 1, in both themes, with everything open."""
    page = watch(color_scheme=scheme).open(shop.of(table) if table else shop.address)
    if table == "demo.orders":
        show_everything(page)
    expect(page.locator("nav .line", has_text=re.compile("^…$"))).to_have_count(0)
    assert page.evaluate(CONTRAST) == []


def test_theme_follows_the_system_and_the_button(watch: Open, shop: Served) -> None:
    """The button goes through system, light and dark, and the choice stays after a reload."""
    page = watch(color_scheme="dark").open(shop.address)
    paper = "() => getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(paper)
    button = page.get_by_role("button", name="Theme")
    button.click()
    light = page.evaluate(paper)
    assert (button.inner_text(), light == dark) == ("Theme: light", False)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(paper) == light
    button.click()
    assert page.evaluate(paper) == dark
    page.emulate_media(color_scheme="light")
    assert page.evaluate(paper) == dark
    button.click()
    assert page.evaluate(paper) == light


def test_keys_alone_find_a_difference(watch: Open, shop: Served) -> None:
    """From the address bar to the rows that differ, without a mouse; the focus is always to be seen."""
    page = watch().open(shop.address)
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    press("Tab")
    press("Tab")
    assert page.evaluate("document.activeElement.id") == "theme"
    press("Tab")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("orders")
    press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.name") == "demo.orders"
    press("ArrowDown")
    press("ArrowUp")
    press("Enter")
    page.locator(".timeline").wait_for()
    for _ in range(12):
        if page.evaluate("document.activeElement.classList.contains('snap')"):
            break
        press("Tab")
    assert page.evaluate("document.activeElement.dataset.end") == "@staged:run"
    style = "getComputedStyle(document.activeElement.querySelector('.hit')).strokeWidth"
    assert page.evaluate(style) == "2px"
    press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.end") == "36"
    press("Enter")
    press("PageUp")
    assert page.evaluate("document.activeElement.dataset.end") == "26"
    press("Space")
    page.get_by_role("heading", name="Difference, snapshot 36 to 26").wait_for()
    press("Home")
    assert page.evaluate("document.activeElement.dataset.end") == "1"
    assert "Snapshot 1, append" in page.locator(".readout").inner_text()
    press("Escape")
    expect(page.locator('.snap[aria-pressed="true"]')).to_have_count(0)
    press("End")
    press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    press("Enter")
    expect(page.locator("details[open] table")).to_be_visible()


def test_controls_and_parts_have_names(watch: Open, shop: Served) -> None:
    """One heading of the first level, landmarks, and no control without a name; tables have captions."""
    page = watch().open(shop.of("demo.orders"))
    show_everything(page)
    assert page.evaluate(UNNAMED) == []
    assert page.locator("h1").count() == 1
    for role in ("banner", "navigation", "main"):
        assert page.get_by_role(role).count() == 1
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("html").get_attribute("lang") == "en"
    names = [one.inner_text() for one in page.locator("main h2").all()]
    assert names == [
        "Snapshots (36)",
        "Staged snapshots",
        "Rows",
        "Levels and sizes",
        "Streams",
        "Definition",
    ]


@pytest.mark.parametrize("table", cases(["demo.orders", "demo.order_events", ""], 1))
def test_narrow_window_scrolls_in_one_direction(watch: Open, shop: Served, table: str) -> None:
    """At 420 pixels only tables and the timeline scroll sideways, in their own frames."""
    page = watch(width=420).open(shop.of(table) if table else shop.address)
    if table == "demo.orders":
        show_everything(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 420


@pytest.mark.nightly  # by day the theme of the system, as asked for in the same way
def test_less_motion_where_asked(watch: Open, shop: Served) -> None:
    """No smooth scrolling."""
    page = watch(reduced_motion="reduce").open(shop.address)
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_nothing_is_said_by_color_alone(watch: Open, shop: Served) -> None:
    """Without colors the marks still have a sign and a word."""
    page = watch(forced_colors="active").open(shop.of("demo.orders"))
    assert page.locator("svg text.bad").text_content() == "✕ held back"
    marks = page.locator(".mark").all_inner_texts()
    assert all(len(one.split()) >= 2 for one in marks)
