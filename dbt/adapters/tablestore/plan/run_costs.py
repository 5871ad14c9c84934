"""Whether a run of a `changed_keys` model follows its changes or computes all rows: by what its earlier runs took.

CHANGE     when a `changed_keys` model computes all rows because that is cheaper
Rule       changes are followed, unless that takes longer than all rows by FACTOR and MARGIN_SECONDS. It takes what the
           fastest run took with changed rows of the same power of ten; where there is none, of the nearest smaller
           power, which is a lower bound; else it is tried. What all rows take grows with the rows of the inputs.
INVARIANT  both ways give the same rows: a wrong choice costs time, nothing else. A run that is AGE runs old is
           forgotten, so that its way is tried again.
CRASH      a run's seconds become known with its commit; a run that was killed has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

FACTOR, MARGIN_SECONDS = 1.25, 1.0
AGE = 30  # runs
_KEPT = 3  # runs of one way and one power of ten


@dataclass(frozen=True)
class PastRun:
    """`work`: rows of the inputs that changed; of a run that computed all rows (`is_whole`) all rows of the inputs.
    `number`: 1 for the first run.
    """

    is_whole: bool
    work: int
    seconds: float
    number: int

    @property
    def magnitude(self) -> int:
        """Digits of `work`."""
        return len(str(self.work))


@dataclass(frozen=True)
class Estimates:
    """Seconds of a run that follows its changes, and of one that computes all rows; None: there was none yet."""

    changes: float | None = None
    whole: float | None = None

    @property
    def is_whole_cheaper(self) -> bool:
        """By enough to be chosen."""
        if self.whole is None or self.changes is None:
            return False
        return self.whole * FACTOR + MARGIN_SECONDS < self.changes


@dataclass(frozen=True)
class RunHistory:
    """Of one query of one model, oldest run first. `begun`: the run whose commit carries this, without its seconds."""

    runs: tuple[PastRun, ...] = ()
    begun: PastRun | None = None
    begun_ms: int = 0

    def estimate(self, changed: int, total: int) -> Estimates:
        """`changed`, `total`: rows of the inputs."""
        whole = [one for one in self.runs if one.is_whole]
        partial = [one for one in self.runs if not one.is_whole and one.magnitude <= len(str(changed))]
        nearest = max((one.magnitude for one in partial), default=0)
        return Estimates(
            min((one.seconds for one in partial if one.magnitude == nearest), default=None),
            min((one.seconds * max(1.0, total / max(one.work, 1)) for one in whole), default=None),
        )

    def ended(self, end_ms: int) -> RunHistory:
        """With the run whose commit was made at `end_ms` (epoch milliseconds) among the runs."""
        if self.begun is None:
            return self
        seconds = max(end_ms - self.begun_ms, 0) / 1000
        done = PastRun(self.begun.is_whole, self.begun.work, seconds, self.begun.number)
        return RunHistory(_newest([*self.runs, done]))

    def beginning(self, work: int, now_ms: int, *, is_whole: bool) -> RunHistory:
        """For the commit of the next run."""
        number = 1 + max((one.number for one in self.runs), default=0)
        return RunHistory(self.runs, PastRun(is_whole, work, 0.0, number), now_ms)

    def text(self) -> str:
        """For a property of the commit."""
        runs = [[int(one.is_whole), one.work, round(one.seconds, 3), one.number] for one in self.runs]
        begun = None if self.begun is None else [int(self.begun.is_whole), self.begun.work, self.begun.number]
        return json.dumps([runs, begun, self.begun_ms], separators=(",", ":"))

    @classmethod
    def read(cls, text: str | None) -> RunHistory:
        """Of a property; none, and none that can be read, is no history."""
        try:
            runs, begun, begun_ms = json.loads(text or "[[],null,0]")
            made = None if begun is None else PastRun(bool(begun[0]), int(begun[1]), 0.0, int(begun[2]))
            found = tuple(PastRun(bool(one[0]), int(one[1]), float(one[2]), int(one[3])) for one in runs)
            return cls(found, made, int(begun_ms))
        except (ValueError, TypeError, IndexError):
            return cls()


def _newest(runs: Iterable[PastRun]) -> tuple[PastRun, ...]:
    ordered = sorted(runs, key=lambda one: one.number)
    last = ordered[-1].number
    kept: list[PastRun] = []
    for one in reversed(ordered):
        alike = [each for each in kept if (each.is_whole, each.magnitude) == (one.is_whole, one.magnitude)]
        if len(alike) < _KEPT and last - one.number < AGE:
            kept.append(one)
    return tuple(reversed(kept))
