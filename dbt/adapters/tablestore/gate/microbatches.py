"""Batches of a gated microbatch: all of them wait in one staged snapshot, those of earlier runs too.

Names      read_batch()    dbt's batch → the interval that a plan needs
           unit_of()       node and batch: what is planned and written as one
           span_of()       the interval as text, as it is kept beside the staged snapshot
           pick_waiting()  the staged snapshot that a further batch joins
           joined()        gates, parents and batches of both
           lost_note()     what to do for batches that go with a staged snapshot
Rule       a batch joins what this invocation has staged, or what an earlier run has left, as long as readers see the
           rows that it was planned on. dbt asks for the newest batches only: a stage that began anew would lose the
           batches of the run before.
INVARIANT  pure: dbt's objects come in, plain values go out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dbt.adapters.tablestore.model_graph import Nodes
from dbt.adapters.tablestore.plan.build_plan import Microbatch
from tablestore_engine.api import Staged

# what a batch hears whose staged snapshot is published meanwhile, since what it waited for is out
STAGE_IS_OUT = frozenset({"TS1316", "TS1388"})


def _given(batch: Any) -> Mapping[str, Any]:  # noqa: ANN401 - dbt's BatchContext
    return batch if isinstance(batch, Mapping) else vars(batch)


def read_batch(batch: Any, event_time: str | None, zone: str) -> Microbatch | None:  # noqa: ANN401 - dbt's BatchContext
    """dbt's microbatch interval; absent outside microbatch runs."""
    if not batch or not event_time:
        return None
    given = _given(batch)
    return Microbatch(event_time, given["event_time_start"], given["event_time_end"], zone)


def commit_identifier(batch: Any) -> int:  # noqa: ANN401 - dbt's BatchContext
    """One write per model and invocation; with microbatch one per interval, told apart by its start."""
    start = _given(batch).get("event_time_start") if batch else None
    return 1 if start is None else int(start.timestamp())


def unit_of(node: str, batch: Any) -> str:  # noqa: ANN401 - dbt's BatchContext
    """Batches of one node run at once: each has a query and a plan of its own."""
    return f"{node}@{span_of(batch)}" if batch else node


def span_of(batch: Any) -> str | None:  # noqa: ANN401 - dbt's BatchContext
    """`2026-01-01 00:00:00/2026-01-02 00:00:00` in UTC, as dbt's options take it; None outside microbatch runs."""
    if not batch:
        return None
    given = _given(batch)
    return "/".join(_text(given[f"event_time_{side}"]) for side in ("start", "end"))


def _text(moment: datetime) -> str:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


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
