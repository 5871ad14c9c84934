"""Partitions marked as done: which, when, how; a mark that fails leaves the commit as it is."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.runtime.moments import DAY_MS
from tablestore_engine.store.expiry.done_partitions import mark_after_commit, mark_where
from tablestore_engine.store.expiry.done_rule import check_done_rule
from tablestore_engine.store.orphan_files.clean_orphans import OrphanRequest
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import seeded_runtime
from tests.unit.store.table_world import make_table, open_table, put, rows_of

_SEEDS = itertools.count(1)
HOUR_MS = DAY_MS // 24
NOON = 1_767_268_800_000  # 2026-01-01 12:00 UTC
IDLE = {"partition.idle-time-to-done": "2 h", "partition.time-interval": "1 d"}


def _make(root: Path, options: Mapping[str, str]) -> None:
    make_table(root, keys=(), partitions=("dt",), columns={"id": "BIGINT", "dt": "STRING"}, options=options)


def _commit(root: Path, at_ms: int, *days: str) -> tuple[str, ...]:
    """Rows of these days, written at that time; what the commit marked."""
    store = open_table(root, runtime=seeded_runtime(next(_SEEDS), start_ms=at_ms))
    put(store, *({"id": at_ms, "dt": day} for day in days))
    newest = store.latest()
    assert newest is not None
    return mark_after_commit(store.context, "demo.t", newest)


def _success(root: Path, day: str) -> dict[str, int]:
    found: dict[str, int] = json.loads((root / f"demo.db/t/dt={day}/_SUCCESS").read_text())
    return found


def test_each_commit_marks_its_partitions(tmp_path: Path) -> None:
    """end-input-to-done: the file of a partition keeps its first time, and gets that of its last mark."""
    _make(tmp_path, {"partition.end-input-to-done": "true"})
    assert _commit(tmp_path, NOON, "a", "b c/d") == ("dt=a", "dt=b c%2Fd")
    assert _commit(tmp_path, NOON + HOUR_MS, "a") == ("dt=a",)
    first, last = _success(tmp_path, "a").values()
    assert last - first >= HOUR_MS - 1_000
    assert len(set(_success(tmp_path, "b c%2Fd").values())) == 1


def test_commits_mark_what_is_idle_once(tmp_path: Path) -> None:
    """A day is done when it is over and nothing came for two hours; again only after new rows; no time, no mark."""
    _make(tmp_path, IDLE)
    assert _commit(tmp_path, NOON, "2026-01-01", "2025-12-30", "no time") == ()
    assert _commit(tmp_path, NOON + HOUR_MS, "2026-01-01") == ()
    assert _commit(tmp_path, NOON + 3 * HOUR_MS, "2026-01-02") == ("dt=2025-12-30",)
    assert _commit(tmp_path, NOON + 13 * HOUR_MS, "2026-01-02") == ()
    assert _commit(tmp_path, NOON + 15 * HOUR_MS, "2026-01-02") == ("dt=2026-01-01",)
    assert _commit(tmp_path, NOON + 16 * HOUR_MS, "2026-01-01") == ()
    assert _commit(tmp_path, NOON + 19 * HOUR_MS, "2026-01-02") == ("dt=2026-01-01",)
    assert _commit(tmp_path, NOON + 20 * HOUR_MS, "2026-01-02") == ()


def test_partitions_are_marked_by_name(tmp_path: Path) -> None:
    """A condition chooses them; one without a partition is refused; rows, checks and orphan files do not change."""
    _make(tmp_path, {})
    _commit(tmp_path, NOON, "a", "b")
    store = open_table(tmp_path, runtime=seeded_runtime(start_ms=NOON + 9 * DAY_MS))
    rows = rows_of(store)
    with pytest.raises(NotFound, match="TS1218"):
        mark_where(store.context, "demo.t", TextCondition("dt = 'c'"))
    with pytest.raises(FixRequest, match="TS1215"):
        mark_where(store.context, "demo.t", TextCondition("id = 1"))
    assert not list(tmp_path.rglob("_SUCCESS"))
    assert mark_where(store.context, "demo.t", TextCondition("dt < 'b'")) == ("dt=a",)
    assert [path.parent.name for path in tmp_path.rglob("_SUCCESS")] == ["dt=a"]
    assert mark_where(store.context, "demo.t", None) == ()
    assert rows_of(store) == rows
    assert store.verify() == ()
    assert store.orphans(OrphanRequest(delete=True)).found == ()
    assert list(tmp_path.rglob("_SUCCESS"))


@pytest.fixture
def server() -> Iterator[tuple[str, list[object], list[str]]]:
    """An address of this machine, the bodies that it got, and the results that it answers next."""
    got: list[object] = []
    answers: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"result": answers.pop(0)}).encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    found = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}/done", got, answers
    found.shutdown()
    thread.join()
    found.server_close()


def test_a_report_goes_to_the_server(tmp_path: Path, server: tuple[str, list[object], list[str]]) -> None:
    """Table, folder, partition and params; an answer without success, or no answer, is an error and no mark."""
    url, got, answers = server
    options = {
        "partition.mark-done-action": "http-report,success-file",
        "partition.mark-done-action.http.url": url,
        "partition.mark-done-action.http.params": "p",
    }
    _make(tmp_path, options)
    _commit(tmp_path, NOON, "a")
    store = open_table(tmp_path)
    answers += ["SUCCESS", "no"]
    where = TextCondition("dt = 'a'")
    assert mark_where(store.context, "demo.t", where) == ("dt=a",)
    assert got == [{"params": "p", "table": "demo.t", "path": store.location, "partition": "dt=a/"}]
    (tmp_path / "demo.db/t/dt=a/_SUCCESS").unlink()
    with pytest.raises(FixRequest, match="TS1219"):
        mark_where(store.context, "demo.t", where)
    store.alter(
        lambda schema: set_options(schema, {"partition.mark-done-action.http.url": "http://127.0.0.1:1"})
    )
    with pytest.raises(FixRequest, match="TS1219"):
        mark_where(open_table(tmp_path).context, "demo.t", where)
    assert not list(tmp_path.rglob("_SUCCESS"))


@pytest.mark.parametrize(
    "options",
    [
        {"partition.mark-done-action": "http-report"},
        {"partition.mark-done-action": "done-partition"},
        {
            "partition.mark-done-action": "http-report",
            "partition.mark-done-action.http.url": "file:/etc/passwd",
        },
        {"partition.idle-time-to-done": "1 h"},
        {"partition.time-interval": "1 h"},
        {
            **IDLE,
            "partition.mark-done-action": "http-report",
            "partition.mark-done-action.http.url": "http://h",
        },
    ],
)
def test_options_without_an_effect_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    """TS1217 where they are set; so are all of them on a table without partitions."""
    _make(tmp_path / "a", {})
    schema = open_table(tmp_path / "a").schema
    check_done_rule(set_options(schema, {"partition.end-input-to-done": "true"}))
    with pytest.raises(FixRequest, match="TS1217"):
        check_done_rule(set_options(schema, options))
    plain: TableStore = make_table(tmp_path / "b", keys=())
    with pytest.raises(FixRequest, match="TS1217"):
        check_done_rule(set_options(plain.schema, {"partition.end-input-to-done": "true"}))
    check_done_rule(set_options(plain.schema, {"partition.end-input-to-done": "false"}))
