"""A finding made small: its model alone, then fewer changes and fewer rows, as long as it is still found."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from integration_tests.soak.query_attack.changes import Overwrite, Put, Recreate, Remove, Step
from integration_tests.soak.query_attack.findings import Finding, Report
from integration_tests.soak.query_attack.history import History
from integration_tests.soak.query_attack.play import play

_T = TypeVar("_T")


def shrunk(history: History, finding: Finding, budget: int = 40) -> tuple[History, Finding] | None:
    """A smaller history and what it finds; None when the model alone is right. `budget`: plays at most."""
    small = replace(history.only(finding.model.name), rounds=history.rounds[: finding.round])
    small = small.only(finding.model.name)
    found = _find(small, finding)
    if found is None:
        return None
    tries = _Tries(finding, budget - 1)
    for cut in (_without_steps, _without_rows, _without_step_rows, _without_steps):
        small, found = tries.reduced(small, found, cut)
    return small, found


class _Tries:
    """Plays smaller histories until the budget is spent."""

    def __init__(self, finding: Finding, budget: int) -> None:
        self._finding, self._budget = finding, budget

    def reduced(
        self, small: History, found: Finding, cut: Callable[[History], Iterator[History]]
    ) -> tuple[History, Finding]:
        """The smallest that one way of cutting gives, greedily."""
        progress = True
        while progress and self._budget > 0:
            progress = False
            for smaller in cut(small):
                if self._budget <= 0:
                    break
                self._budget -= 1
                again = _find(smaller, self._finding)
                if again is not None:
                    small, found, progress = smaller, again, True
                    break
        return small, found


def _find(history: History, finding: Finding) -> Finding | None:
    """The same kind of finding of the same model."""
    folder, report = Path(tempfile.mkdtemp(prefix="attack-")), Report()
    try:
        play(history, folder, report)
    except Exception as error:  # noqa: BLE001 - a smaller history may not make sense
        print(f"a smaller history cannot be played: {str(error)[:200]}", flush=True)
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    same = [
        one for one in report.findings if one.model.name == finding.model.name and one.kind == finding.kind
    ]
    return same[0] if same else None


def _chunks(ones: Sequence[_T]) -> Iterator[tuple[_T, ...]]:
    """The sequence without a half, a quarter, … of it."""
    size = len(ones)
    while size >= 1:
        for start in range(0, len(ones), size):
            yield (*ones[:start], *ones[start + size :])
        size //= 2


def _without_steps(history: History) -> Iterator[History]:
    flat = [(number, step) for number, steps in enumerate(history.rounds) for step in steps]
    for kept in _chunks(flat):
        rounds = tuple(
            tuple(step for at, step in kept if at == number) for number in range(len(history.rounds))
        )
        yield replace(history, rounds=tuple(steps for steps in rounds if steps))


def _without_rows(history: History) -> Iterator[History]:
    for name, rows in history.rows.items():
        for kept in _chunks(rows):
            yield replace(history, rows={**history.rows, name: kept})


def _without_step_rows(history: History) -> Iterator[History]:
    for number, steps in enumerate(history.rounds):
        for at, step in enumerate(steps):
            if isinstance(step, Put | Remove | Recreate | Overwrite) and len(step.rows) > 1:
                for kept in _chunks(step.rows):
                    if kept:
                        fresh: Step = replace(step, rows=kept)
                        changed = (*steps[:at], fresh, *steps[at + 1 :])
                        yield replace(
                            history, rounds=(*history.rounds[:number], changed, *history.rounds[number + 1 :])
                        )


def shown(history: History) -> str:
    """Tables, rows, views, models and changes as text."""
    lines = []
    for table in history.tables:
        columns = ", ".join(
            f"{one.name} {one.type}{'' if one.null else ' not null'}" for one in table.columns
        )
        lines.append(f"table {table.name} ({columns}) key {table.key} {dict(table.options) or ''}")
        lines += [f"    {_row(row)}" for row in history.rows[table.name]]
    lines += [
        f"view {one.name}{' (ephemeral)' if one.ephemeral else ''}: {one.texts[0]}" for one in history.views
    ]
    lines += [f"model {one.name} key {one.key}: {one.text}" for one in history.models]
    for number, steps in enumerate(history.rounds, 1):
        lines += [f"round {number}: {_step(step)}" for step in steps]
    return "\n".join(lines)


def _row(row: object) -> str:
    return str(row).replace("datetime.date", "date").replace("Decimal", "")


def _step(step: Step) -> str:
    return _row(step)
