"""10,000 snapshots cost a page of files and no listing of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api import Engine, Table, WriteSpec
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.ui.page_answers import PageAnswers
from tablestore_engine.ui.snapshot_pages import HISTORY_POINTS, PAGE_MAX, read_snapshot_page
from tests.unit.ui.page_world import SetClock, clone_snapshots, open_engine, orders

MANY = 10_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """demo.orders with 10,000 snapshots, the last one committed behind the copies."""
    clock = SetClock()
    engine = open_engine(tmp_path_factory.mktemp("many") / "w", clock)
    engine.write("demo.orders", orders(1, 20), WriteSpec())
    clone_snapshots(Path(engine.warehouse), "demo", "orders", MANY - 2, clock)
    engine = open_engine(Path(engine.warehouse), clock)
    clock.wait(1)
    done = engine.write("demo.orders", orders(5, 30, 1), WriteSpec())
    assert done.snapshot_id == MANY
    return engine


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Calls of the local file system by name."""
    calls: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "list", "exists"):
            own = getattr(LocalFileIO, name)

            def call(self: LocalFileIO, *given: Any, own: Any = own, name: str = name) -> Any:
                calls[name] += 1
                return own(self, *given)

            patch.setattr(LocalFileIO, name, call)
        yield calls


def test_newest_page_reads_one_page(engine: Engine) -> None:
    """And a sample of the history; the folder of snapshots is not listed."""
    with counted() as calls:
        page: Any = read_snapshot_page(engine.table("demo.orders"))
    assert [one["id"] for one in page["snapshots"]] == list(range(MANY - PAGE_MAX + 1, MANY + 1))
    assert (page["total"], page["oldest"], page["has_older"]) == (MANY, 1, True)
    assert len(page["history"]) == HISTORY_POINTS
    assert (page["history"][0]["id"], page["history"][-1]["id"]) == (1, MANY)
    assert calls["read"] <= PAGE_MAX + HISTORY_POINTS + 20
    assert calls["list"] <= 10


def test_whole_table_reads_as_little(engine: Engine) -> None:
    """All parts of the page together."""
    ask = PageAnswers(open_engine(Path(engine.warehouse), SetClock()), SetClock()).find("table")
    assert ask is not None
    with counted() as calls:
        answer: Any = ask({"name": ["demo.orders"]})
    assert "trouble" not in answer["value"]["snapshots"]
    assert calls["read"] <= PAGE_MAX + HISTORY_POINTS + 150
    assert calls["list"] <= 60
    assert calls["exists"] <= 200


def test_older_pages_meet(engine: Engine) -> None:
    """Page after page there is each snapshot once, down to the first."""
    table: Table = engine.table("demo.orders")
    before, seen = 400, []
    while True:
        page: Any = read_snapshot_page(table, before)
        ids = [one["id"] for one in page["snapshots"]]
        seen = ids + seen
        if not page["has_older"]:
            break
        before = ids[0]
    assert seen == list(range(1, 400))
    assert read_snapshot_page(table, 1)["snapshots"] == []


@pytest.mark.parametrize("before", ["", "x", "-5", "9" * 30, "1.5", "\u0663"])
def test_page_of_a_wrong_number_is_the_newest(engine: Engine, before: str) -> None:
    """The address is typed by nobody; a wrong one does no harm."""
    ask = PageAnswers(engine, SetClock()).find("snapshots")
    assert ask is not None
    answer: Any = ask({"name": ["demo.orders"], "before": [before]})
    assert answer["value"]["snapshots"][-1]["id"] == MANY


def test_list_of_1000_tables_opens_none(tmp_path: Path) -> None:
    """Names come from listings and existence checks: no file is read."""
    engine = open_engine(tmp_path / "w", SetClock())
    engine.write("demo.t0", orders(1, 1), WriteSpec())
    for number in range(1, 1000):
        (tmp_path / "w" / "demo.db" / f"t{number}" / "schema").mkdir(parents=True)
    ask = PageAnswers(engine, SetClock()).find("tables")
    assert ask is not None
    with counted() as calls:
        answer: Any = ask({})
    assert len(answer["relations"]) == 1000
    assert (calls["read"], calls["list"] <= 6, calls["exists"] <= 1010) == (0, True, True)
