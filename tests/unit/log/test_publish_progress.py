"""Lines while publishing takes long: when they come, and what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.log.kafka.publish_progress import PublishProgress, progress_line
from tablestore_engine.runtime.progress import SILENT, Meter


@dataclass
class Clock:
    """Goes on when it is told."""

    now: int = 1_000_000
    asked: int = 0
    lines: list[str] = field(default_factory=list)

    def now_ms(self) -> int:
        """As Runtime."""
        return self.now

    def count(self) -> int | None:
        """How many rows a snapshot has."""
        self.asked += 1
        return 1000


def test_short_work_says_nothing() -> None:
    """Up to 2 s there is no line, and nobody counts rows for one."""
    clock = Clock()
    progress = PublishProgress("d.t", clock.now_ms, clock.lines.append)
    progress.begin(1, 1, clock.count)
    for _ in range(20):
        clock.now += 99
        progress.sent(50)
    assert (clock.lines, clock.asked) == ([], 0)


def test_a_line_after_two_seconds_then_every_ten() -> None:
    """Of all snapshots of a call together, so that many small ones are no silence either."""
    clock = Clock()
    progress = PublishProgress("d.t", clock.now_ms, clock.lines.append)
    for snapshot_id in range(1, 31):
        progress.begin(snapshot_id, 30, clock.count)
        clock.now += 1000
        progress.sent(1000)
    assert [re.search(r"snapshot (\d+) of 30", line)[1] for line in clock.lines] == ["2", "12", "22"]  # type: ignore[index]


def test_what_a_line_says() -> None:
    """Rows, rate, what is left; without a total neither of all nor time."""
    assert (
        progress_line("d.t", 7, 9, 1_200_000, 4_000_000, 6_000)
        == "d.t: publishing snapshot 7 of 9: 1,200,000 of 4,000,000 rows, 200,000 rows/s, 14 s left"
    )
    assert progress_line("d.t", 9, 9, 500, None, 1000) == "d.t: publishing snapshot 9: 500 rows, 500 rows/s"


@given(st.integers(0, 10**12), st.none() | st.integers(0, 10**12), st.integers(0, 10**9))
def test_every_figure_gives_a_line(done: int, total: int | None, elapsed_ms: int) -> None:
    """Also the first ones, and a total that was too small; never more done than of all."""
    line = progress_line("d.t", 1, 1, done, total, elapsed_ms)
    assert f"{done:,}" in line
    if total is not None:
        assert f" of {max(total, done):,} rows" in line
        assert "-" not in line


@dataclass
class Bar(Meter):
    """What a meter was given."""

    label: str
    figures: list[int] = field(default_factory=list)
    is_over: bool = False

    def expect(self, amount: int) -> None:
        """As a negative figure."""
        self.figures.append(-amount)

    def advance(self, amount: int) -> None:
        """As a figure."""
        self.figures.append(amount)

    def __exit__(self, *_: object) -> None:
        self.is_over = True


@dataclass
class Shown:
    """Progress with meters in the place of lines."""

    is_shown: bool = True
    wants_lines: bool = False
    bars: list[Bar] = field(default_factory=list)

    def begin(self, label: str, unit: str) -> Meter:
        """Remembers it."""
        assert unit == "rows"
        self.bars.append(Bar(label))
        return self.bars[-1]


def test_a_meter_takes_the_place_of_lines() -> None:
    """After 2 s, with all rows of the snapshot and those that were sent before; one for each snapshot, and no line."""
    clock, shown = Clock(), Shown()
    progress = PublishProgress("d.t", clock.now_ms, clock.lines.append, shown)
    progress.begin(7, 9, clock.count)
    progress.sent(100)
    assert (shown.bars, clock.asked) == ([], 0)
    clock.now += 2000
    progress.sent(200)
    progress.sent(700)
    progress.begin(8, 9, clock.count)
    assert [(bar.label, bar.figures, bar.is_over) for bar in shown.bars] == [
        ("d.t: publishing snapshot 7 of 9", [-1000, 300, 700], True)
    ]
    clock.now += 60_000
    progress.sent(1)
    progress.end()
    assert [bar.is_over for bar in shown.bars] == [True, True]
    assert clock.lines == []


def test_a_command_in_a_pipe_says_nothing() -> None:
    """Neither lines nor meters, and nobody counts rows."""
    clock = Clock()
    progress = PublishProgress("d.t", clock.now_ms, clock.lines.append, SILENT)
    progress.begin(1, 1, clock.count)
    for _ in range(20):
        clock.now += 5_000
        progress.sent(50)
    progress.end()
    assert (clock.lines, clock.asked) == ([], 0)
