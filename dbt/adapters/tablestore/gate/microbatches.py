"""Batches of a gated microbatch: all of them wait in one staged snapshot, those of earlier runs too.

CHANGE     the batches of a microbatch model in one staged snapshot
Rule       a batch joins what this invocation has staged, or what an earlier run has left, as long as readers see the
           rows that it was planned on. dbt asks for the newest batches only: a stage that began anew would lose the
           batches of the run before.
INVARIANT  pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime

from dbt.adapters.tablestore.model_graph import Nodes
from dbt.adapters.tablestore.plan.build_plan import Microbatch
from dbt.adapters.tablestore.plan.run_context import BatchInterval
from tablestore_engine.spi import Staged, aware


def read_batch(batch: BatchInterval | None, event_time: str | None) -> Microbatch | None:
    """The interval with its column; None outside microbatch runs."""
    return Microbatch(event_time, batch.start, batch.end) if batch and event_time else None


def commit_identifier(batch: BatchInterval | None) -> int:
    """One write per model and invocation; with microbatch one per interval, told apart by its start."""
    return 1 if batch is None else int(batch.start.timestamp())


def span_of(batch: BatchInterval | None) -> str | None:
    """`2026-01-01 00:00:00/2026-01-02 00:00:00` in UTC, as dbt's options take it; None outside microbatch runs."""
    return None if batch is None else f"{_text(batch.start)}/{_text(batch.end)}"


def _text(moment: datetime) -> str:
    return aware(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def pick_waiting(
    found: Collection[Staged],
    node: str,
    mine: Collection[tuple[str, str]],
    is_current: Callable[[Staged], bool],
) -> Staged | None:
    """The one of this invocation, else the newest of an earlier run whose base is what readers see."""
    able = [item for item in found if item.owner == node and item.batches and not item.is_out]
    own = (item for item in able if item.key in mine)
    return next(own, None) or next((item for item in reversed(able) if is_current(item)), None)


def joined(planned: Staged, waiting: Staged, nodes: Nodes) -> Staged:
    """The plan of a batch that goes into `waiting`: what its rows wait for, all rows wait for."""
    gates = sorted({*planned.gates, *(gate for gate in waiting.gates if gate in nodes)})
    parents = dict.fromkeys([*waiting.parents, *planned.parents])
    return replace(
        planned,
        name=waiting.name,
        gates=tuple(gates),
        parents=tuple(parents),
        batches=tuple(sorted({*waiting.batches, *planned.batches})),
    )


def lost_note(batches: Collection[str]) -> str:
    """Ends a line about a staged snapshot that goes; empty when it has no batches."""
    if not batches:
        return ""
    start = min(one.split("/")[0] for one in batches)
    end = max(one.split("/")[-1] for one in batches)
    return (
        f"; of its batches, those that this run does not build are gone: run them again with "
        f"--event-time-start '{start}' --event-time-end '{end}'"
    )
