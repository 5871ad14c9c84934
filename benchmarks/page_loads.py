"""How long the page of `tablestore ui` takes in Chromium: a list of 1,000 tables, a table of 10,000 snapshots.

Steps      1 a warehouse of copies (tests/unit/ui/page_world.py), served by `tablestore ui`
           2 each load in a new context of the browser, the first
           one apart: it has no bytes in the operating system's cache  3 medians beside the limit
INVARIANT  a load ends when what it is about is drawn: names with figures of the visible lines, or the timeline.
Limit      LIMIT_S for each median; else the exit status is 1.
Usage      python -m benchmarks.page_loads [--repeats N]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from integration_tests.ui.chromium import get_chromium
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.ui.html_report import collect_report, render_report
from tests.unit.ui.page_world import SetClock, clone_snapshots, open_engine, orders

LIMIT_S = 1.0
TABLES, SNAPSHOTS, BIG = 1_000, 10_000, "demo.t0500"


def make_warehouse(folder: Path, clock: SetClock) -> Engine:
    """As the browser tests have it."""
    engine = open_engine(folder, clock)
    engine.write("demo.t0000", orders(1, 20), WriteSpec())
    for number in range(1, TABLES):
        shutil.copytree(folder / "demo.db" / "t0000", folder / "demo.db" / f"t{number:04}")
    clone_snapshots(folder, "demo", "t0500", SNAPSHOTS - 2, clock)
    engine = open_engine(folder, clock, seed=8)
    clock.wait(1)
    engine.write("demo.t0500", orders(5, 30, 1), WriteSpec())
    return engine


def wait_list(page: Page) -> None:
    """Names, and figures of the first lines."""
    page.locator("nav .line time").nth(10).wait_for()


def wait_timeline(page: Page) -> None:
    """All bars."""
    page.locator(".timeline .snap").last.wait_for()


def measure(browser: Browser, address: str, wait: Callable[[Page], None], repeats: int) -> list[float]:
    """Seconds of each load."""
    found = []
    for _ in range(repeats):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        begun = time.perf_counter()
        page.goto(address)
        wait(page)
        found.append(time.perf_counter() - begun)
        context.close()
    return found


@contextmanager
def served(warehouse: Path) -> Iterator[str]:
    """The address of `tablestore ui`."""
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "ui", "--no-open", "--warehouse"]
    with subprocess.Popen([*command, str(warehouse)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


def run(engine: Engine, address: str, browser: Browser, folder: Path, repeats: int) -> dict[str, list[float]]:
    """By what is loaded."""
    report = folder / "report.html"
    report.write_text(render_report(collect_report(engine, BIG, SetClock().ms, asks_brokers=False)), "ascii")
    return {
        f"list of {TABLES:,} tables": measure(browser, address, wait_list, repeats),
        f"table of {SNAPSHOTS:,} snapshots": measure(
            browser, f"{address}#table={BIG}", wait_timeline, repeats
        ),
        "report of that table, from its file": measure(browser, report.as_uri(), wait_timeline, repeats),
    }


def main() -> int:
    """A line for each load."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=11)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as made, sync_playwright() as play:
        folder = Path(made)
        browser = play.chromium.launch(executable_path=get_chromium(), chromium_sandbox=os.geteuid() != 0)
        engine = make_warehouse(folder / "warehouse", SetClock())
        with served(folder / "warehouse") as address:
            found = run(engine, address, browser, folder, repeats)
        browser.close()
    slow = 0
    for name, seconds in found.items():
        first, rest = seconds[0], seconds[1:] or seconds
        slow += statistics.median(rest) > LIMIT_S
        print(
            f"{name:<40} first {first:.2f} s, median {statistics.median(rest):.2f} s, slowest {max(rest):.2f} s"
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
