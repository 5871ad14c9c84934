"""The port of progress: long work reports its amount and what is done; a display is passed in.

INVARIANT  no layer of the engine imports what shows progress: a Runtime carries it. By default nothing is shown.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self


class Meter(AbstractContextManager["Meter"]):
    """Of one piece of work; this one shows nothing. Threads may share it."""

    def expect(self, amount: int) -> None:
        """There is so much more to do."""

    def advance(self, amount: int) -> None:
        """So much more is done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The work ended, whether or not all was done."""


class WorkProgress(Protocol):
    """`is_shown`: a meter is visible, so that counting the work beforehand is worth it. `wants_lines`: a line in the
    log now and then instead.
    """

    @property
    def is_shown(self) -> bool: ...

    @property
    def wants_lines(self) -> bool: ...

    def begin(self, label: str, unit: str) -> Meter:
        """`label`: the table and what is done, `unit`: of amounts, as `rows`."""


class _Hidden:
    """Shows nothing."""

    is_shown = False

    def __init__(self, *, wants_lines: bool) -> None:
        self.wants_lines = wants_lines

    def begin(self, label: str, unit: str) -> Meter:  # noqa: ARG002
        """A meter that shows nothing."""
        return NO_METER


NO_METER = Meter()
NO_PROGRESS: WorkProgress = _Hidden(wants_lines=True)
SILENT: WorkProgress = _Hidden(wants_lines=False)
