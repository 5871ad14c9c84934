"""Progress on a pseudo terminal: which commands show it, what it says, and that pipes and --json have none."""

from __future__ import annotations

import os
import pickle
import pty
import re
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TextIO

import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.cli import terminal_progress
from tablestore_engine.cli.terminal_progress import TerminalProgress
from tablestore_engine.errors import TablestoreError
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.runtime.progress import NO_PROGRESS, Meter
from tests.doses import cases

from .conftest import KEYED, Run, orders


@dataclass
class Terminal:
    """What was sent to a terminal."""

    master: int
    stream: TextIO
    said: str = ""

    def attach(self, patch: pytest.MonkeyPatch) -> None:
        """stderr of this process from now on; pytest sets its own one before each test."""
        patch.setattr(sys, "stderr", self.stream)

    def read(self) -> str:
        """All of it so far."""
        while select.select([self.master], [], [], 0.2)[0]:
            self.said += os.read(self.master, 65536).decode()
        return self.said


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal for stderr, on which bars come at once."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(terminal_progress, "DELAY_S", 0.0)
        yield Terminal(master, stream)
        monkeypatch.undo()
    os.close(master)


def _garbage(engine: Engine) -> None:
    spec = WriteSpec(TableSpec(KEYED.primary_key, options={"tablestore.expire-grace": "0 ms"}))
    for number in range(4):
        engine.write("demo.now", orders((number, "ann", 1.0)), spec)
    engine.write("demo.now", orders((9, "eve", 9.0)), WriteSpec(stage="no"))
    engine.table("demo.now").drop_staged("no")


_LONG = {
    ("verify", "demo.now"): "demo.now: verifying",
    ("compact", "demo.now", "--full"): "demo.now: rewriting rows",
    ("rescale", "demo.now", "--buckets", "2"): "demo.now: rewriting rows",
    ("expire", "demo.now", "--keep", "1"): "demo.now: deleting files",
    ("orphans", "demo.now", "--older-than", "0ms", "--delete"): "demo.now: deleting files",
    ("gc", "demo.now", "--keep", "1", "--yes"): "demo.now: deleting files",
}


@pytest.mark.parametrize("words", cases(_LONG, 3), ids=lambda words: words[0])
def test_long_work_has_a_bar_on_a_terminal(
    words: tuple[str, ...], engine: Engine, run: Run, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Label and unit; what is printed on stdout is the same, and the bar is gone at the end."""
    _garbage(engine)
    terminal.attach(monkeypatch)
    done = run(*words)
    said = terminal.read()
    assert done.status == 0, said
    assert _LONG[words] in said
    assert ("rows/s" in said) or ("files/s" in said)
    assert "verifying" not in done.out
    assert said.split("\r")[-1].strip() == ""


@pytest.mark.parametrize("words", cases(_LONG, 3), ids=lambda words: words[0])
def test_json_has_no_bar(
    words: tuple[str, ...], engine: Engine, run: Run, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For programs nothing but the document, on a terminal too."""
    _garbage(engine)
    terminal.attach(monkeypatch)
    assert run(*words, "--json").json
    assert terminal.read() == ""


def test_a_pipe_has_no_bar(engine: Engine, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """stderr that is no terminal gets nothing."""
    monkeypatch.setattr(terminal_progress, "DELAY_S", 0.0)
    _garbage(engine)
    for words in _LONG:
        if words[0] not in ("rescale", "gc"):
            assert run(*words).err == ""


def test_short_work_has_no_bar(
    engine: Engine, run: Run, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the delay nothing is drawn."""
    monkeypatch.setattr(terminal_progress, "DELAY_S", 60.0)
    terminal.attach(monkeypatch)
    assert run("verify").status == 0
    assert "verifying" not in terminal.read()


def test_a_bar_says_amount_rate_and_time_left() -> None:
    """Half of the rows: percentage, rows per second and an estimate; more than was expected is no error."""
    master, slave = pty.openpty()
    with (
        os.fdopen(slave, "w", encoding="utf-8") as stream,
        TerminalProgress(stream, delay_s=0.0).begin("d.t", "rows") as bar,
    ):
        said = Terminal(master, stream)
        bar.expect(2_000_000)
        time.sleep(0.3)
        bar.advance(1_000_000)
        half = said.read()
        assert "d.t:  50%" in half
        assert "1.00M/2.00M" in half
        assert "rows/s" in half
        assert re.search(r"<\d\d:\d\d", half)
        bar.advance(9_000_000)
        time.sleep(0.2)
        bar.advance(1)
        assert "100%" in said.read()
    os.close(master)


def test_progress_stays_in_its_process() -> None:
    """A copy in a worker of Spark shows nothing."""
    assert pickle.loads(pickle.dumps(TerminalProgress(sys.stderr))) is NO_PROGRESS


# what is counted -------------------------------------------------------------------------------------------------


@dataclass
class _Counted(Meter):
    label: str
    total: int = 0
    done: int = 0
    is_over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, amount: int) -> None:
        with self._lock:
            self.total += amount

    def advance(self, amount: int) -> None:
        with self._lock:
            self.done += amount

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_over = True


@dataclass
class _Counting:
    meters: list[_Counted] = field(default_factory=list)
    is_shown: bool = True
    wants_lines: bool = False

    def begin(self, label: str, unit: str) -> Meter:
        """Remembers it."""
        self.meters.append(_Counted(f"{label} ({unit})"))
        return self.meters[-1]


_WORK: dict[str, Callable[[Engine], object]] = {
    "verify": lambda engine: engine.table("demo.now").verify(),
    "compact": lambda engine: engine.table("demo.now").compact(full=True),
    "rescale": lambda engine: engine.table("demo.now").rescale(3),
    "expire": lambda engine: engine.table("demo.now").expire(keep=1),
    "orphans": lambda engine: engine.table("demo.now").orphans(delete=True, older_than_ms=0),
    "files": lambda engine: engine.table("demo.events").compact(full=True),
}


@pytest.mark.parametrize("work", _WORK)
def test_all_that_was_expected_is_done(work: str, warehouse: Path, engine: Engine) -> None:
    """Each meter ends with as much done as was expected, so that the time left is right."""
    _garbage(engine)
    engine.write("demo.events", engine.table("demo.events").scan().to_arrow(), WriteSpec(mode="append"))
    counting = _Counting()
    with Engine(str(warehouse), runtime=replace(SYSTEM, progress=counting)) as watched:
        _WORK[work](watched)
    assert counting.meters
    for one in counting.meters:
        assert one.is_over
        assert one.done == one.total > 0, one


def test_a_meter_ends_with_an_error(warehouse: Path, engine: Engine) -> None:
    """The bar goes away when a file cannot be read."""
    _garbage(engine)
    counting = _Counting()
    for path in (warehouse / "demo.db/now").glob("bucket-*/data-*.parquet"):
        path.write_bytes(b"broken")
    with Engine(str(warehouse), runtime=replace(SYSTEM, progress=counting)) as watched:
        with pytest.raises(TablestoreError):
            watched.table("demo.now").compact(full=True)
        assert watched.table("demo.now").verify()
    assert counting.meters
    assert all(one.is_over for one in counting.meters)
