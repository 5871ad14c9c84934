"""Progress of long work as a bar on a terminal, by tqdm: amount, rate, time left.

INVARIANT  only where stderr is a terminal and the output is for a person; nothing within the first 2 s; the bar goes
           away with the work, so that stdout and the notes around it stay as they are.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.progress import NO_PROGRESS, SILENT, Meter, WorkProgress

DELAY_S = 2.0
_WIDTH, _HEIGHT = 80, 24


def progress_for(stream: TextIO, *, as_json: bool) -> WorkProgress:
    return TerminalProgress(stream, delay_s=DELAY_S) if stream.isatty() and not as_json else SILENT


class TerminalProgress:
    """Bars on a terminal. A copy of it in another process (Spark) shows nothing."""

    is_shown = True
    wants_lines = False

    def __init__(self, stream: TextIO, *, delay_s: float = DELAY_S) -> None:
        self._stream = stream
        self._delay_s = delay_s

    def begin(self, label: str, unit: str) -> Meter:
        """A bar that appears when the work has taken a while."""
        tqdm: Callable[..., Any] = importlib.import_module("tqdm").tqdm  # 40 ms, and only for a terminal
        has_size = _columns(self._stream) > 0  # a terminal over a serial line says 0
        ascii_only = (self._stream.encoding or "ascii").lower().replace("-", "") != "utf8"
        return _Bar(
            tqdm(
                total=0,
                desc=label,
                unit=f" {unit}",
                unit_scale=True,
                delay=self._delay_s,
                leave=False,
                file=self._stream,
                dynamic_ncols=has_size,
                **({} if has_size else {"ncols": _WIDTH, "nrows": _HEIGHT}),
                ascii=ascii_only,
            )
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _nothing, ()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return 0


def _nothing() -> WorkProgress:
    return NO_PROGRESS


class _Bar(Meter):
    def __init__(self, bar: Any) -> None:  # noqa: ANN401 - tqdm has no types
        self._bar = bar
        self._lock = OrderedLock("a progress bar", Rank.PROCESS)

    def expect(self, amount: int) -> None:
        with self._lock:
            self._bar.total += amount

    def advance(self, amount: int) -> None:
        with self._lock:
            self._bar.total = max(self._bar.total, self._bar.n + amount)
            self._bar.update(amount)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._bar.close()


def command_progress(*, as_json: bool) -> WorkProgress:
    return progress_for(sys.stderr, as_json=as_json)
