"""Signed rows as values: of a part of a plan, and where they enter it."""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.queryplan.plan_nodes import Path
from tablestore_engine.queryplan.trace_steps import Step


@dataclass(frozen=True)
class SignedPart:
    """Rows with these columns; the sign of a row is the product of the columns `signs`, +1 without any."""

    step: Step
    columns: frozenset[int]
    signs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Changes:
    """Changed rows of a table or of a node with a key, and the same under the opposite sign."""

    rows: SignedPart
    opposite: SignedPart


@dataclass(frozen=True)
class Source:
    """Where changed rows enter the linear part of a plan. `turn`: its number; an optional side is before the other."""

    path: Path
    turn: int
    changes: Changes
