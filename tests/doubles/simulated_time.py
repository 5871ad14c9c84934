"""Time of a simulation: a number that requests and pauses move on. Nothing sleeps, and no clock is read.

INVARIANT  calls that run together are made one after the other, in the thread of the caller, and each begins at the
           time at which its lane is free. So a run is the same each time, and the time is that of `width` lanes.
LIMITS     threads that somebody else starts count as a sequence: the time is never too short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
START_S = 1_700_000_000.0


@dataclass
class SimulatedTime:
    """`now_s`: seconds since 1970."""

    now_s: float = START_S

    def now_ms(self) -> int:
        """Epoch milliseconds, as Runtime wants them."""
        return int(self.now_s * 1000)

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.now_s += seconds

    def together(self, calls: Sequence[Callable[[], T]], width: int) -> Sequence[T]:
        """Results in order. After a failure the calls that had begun by then still end; then the first is raised."""
        lanes = [self.now_s] * min(len(calls), width)
        end, failed_s = self.now_s, float("inf")
        results: list[T] = []
        failures: list[Exception] = []
        for call in calls:
            lanes.sort()
            if lanes[0] >= failed_s:
                break
            self.now_s = lanes[0]
            try:
                results.append(call())
            except Exception as failure:  # noqa: BLE001 - raised below, when the others have ended
                failures.append(failure)
                failed_s = min(failed_s, self.now_s)
            lanes[0] = self.now_s
            end = max(end, self.now_s)
        self.now_s = end
        if failures:
            raise failures[0]
        return results
