"""A real browser, and pages that it opens: nothing may be asked of another host, no error may reach the console."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from integration_tests.ui.chromium import get_chromium
from tablestore_engine.api import Engine
from tablestore_engine.ui.page_answers import PageAnswers
from tablestore_engine.ui.page_server import LOOPBACK, PageServer
from tests.unit.ui.page_world import SetClock, build_hostile, build_warehouse

WAIT_MS = 30_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One per session. Without Chromium the suite fails: a page that no browser has shown is not tested."""
    try:
        program = get_chromium()
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=program, chromium_sandbox=os.geteuid() != 0, args=["--disable-dev-shm-usage"]
        )
        yield started
        started.close()


@dataclass(frozen=True)
class Served:
    """A warehouse behind its page."""

    engine: Engine
    clock: SetClock
    address: str

    def of(self, table: str) -> str:
        """The address of a table."""
        return f"{self.address}#table={table}"


@contextmanager
def serve(engine: Engine, clock: SetClock) -> Iterator[Served]:
    """Until the block ends."""
    server = PageServer(PageAnswers(engine, lambda: clock.ms))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Served(engine, clock, server.address)
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The warehouse of the pictures; REQUIRES that nobody writes into it."""
    clock = SetClock()
    with serve(build_warehouse(tmp_path_factory.mktemp("shop") / "warehouse", clock), clock) as served:
        yield served


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Hostile texts wherever the engine takes them."""
    clock = SetClock()
    with serve(build_hostile(tmp_path_factory.mktemp("hostile") / "warehouse", clock), clock) as served:
        yield served


@dataclass
class Watched:
    """What a page has asked for and complained of."""

    page: Page
    requests: Counter[str] = field(default_factory=Counter)
    elsewhere: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, address: str) -> Page:
        """Until all of it is drawn."""
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]", timeout=WAIT_MS)
        return self.page

    def count_nodes(self) -> int:
        """Elements of the document."""
        return int(self.page.evaluate("document.querySelectorAll('*').length"))


Open = Callable[..., Watched]


@pytest.fixture
def watch(browser: Browser) -> Iterator[Open]:
    """`watch(width=…, color_scheme=…)` opens a tab; at the end none may have complained, or asked another host."""
    tabs: list[Watched] = []

    def make(*, width: int = 1280, height: int = 900, **more: Any) -> Watched:
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        context.set_default_timeout(WAIT_MS)
        tab = Watched(context.new_page())
        tabs.append(tab)

        def ask(route: Any) -> None:
            address = route.request.url
            if address.startswith((f"http://{LOOPBACK}:", "file://", "data:")):
                tab.requests[address.partition("/api/")[2].partition("?")[0] or "page"] += 1
                route.continue_()
            else:
                tab.elsewhere.append(address)
                route.abort()

        context.route("**/*", ask)
        tab.page.on(
            "console", lambda said: said.type in ("error", "warning") and tab.complaints.append(said.text)
        )
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.page.on(
            "dialog", lambda dialog: (tab.complaints.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        tab.page.add_init_script(
            "document.addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective));"
        )
        return tab

    yield make
    for tab in tabs:
        tab.page.context.close()
    assert [tab.elsewhere for tab in tabs if tab.elsewhere] == []
    assert [tab.complaints for tab in tabs if tab.complaints] == []


@pytest.fixture
def report_file(tmp_path: Path) -> Callable[[Served, str], str]:
    """The address of a report as a file."""
    from tablestore_engine.ui.html_report import collect_report, render_report

    def make(served: Served, table: str) -> str:
        file = tmp_path / "report.html"
        text = render_report(collect_report(served.engine, table, served.clock.ms, asks_brokers=False))
        file.write_text(text, "ascii")
        return file.as_uri()

    return make
