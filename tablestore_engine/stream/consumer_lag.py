"""Consumers of a table: where each is, how far behind the newest snapshot, and moving or forgetting one.

Lag        snapshots that are not read to their end; changed rows of those, by metadata alone: None where an overwrite
           has no changelog and its rows would have to be compared. Of a reader of the log: those behind the boundary
           that it stands on, some of which it may have
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.consumer import Consumer
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.metadata.consumer_files import FoundConsumer
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.stream.consumer_progress import progress_of
from tablestore_engine.stream.position import Part, Position


@dataclass(frozen=True)
class ConsumerFacts:
    """`lag_snapshots`, `lag_rows`: what it has not read; `trouble`: why it cannot go on, None when it can."""

    name: str
    next_snapshot: int
    lag_snapshots: int
    lag_rows: int | None
    moved_ms: int
    trouble: str | None = None


def list_consumers(context: TableContext) -> tuple[ConsumerFacts, ...]:
    """By name. Raises FixData TS1391."""
    first, last = context.snapshots.find_earliest_id() or 0, context.snapshots.find_latest_id() or 0
    reader = ChangelogReader(context)
    counts: dict[int, int | None] = {}

    def count(number: int) -> int | None:
        if number not in counts:
            snapshot = context.snapshots.find(number)
            counts[number] = None if snapshot is None else snapshot.changelog_record_count
            if snapshot is not None and counts[number] is None:
                counts[number] = reader.count(snapshot)
        return counts[number]

    def facts(found: FoundConsumer) -> ConsumerFacts:
        at = progress_of(found.consumer, context.guard.identity or "")
        begin = at.snapshot + (at.part is Part.LOG)  # of a log it has the rows of the snapshot it stands on
        behind = range(max(begin, first), last + 1)
        rows = [count(number) for number in behind]
        if at.part is Part.FULL and rows:
            rows[0] = _rows_left(context, at)
        elif at.part is Part.CHANGES and rows and rows[0] is not None and at.snapshot in behind:
            rows[0] = max(0, rows[0] - at.rows)
        known = [one for one in rows if one is not None]
        return ConsumerFacts(
            name=found.name,
            next_snapshot=begin,
            lag_snapshots=max(0, last + 1 - begin),
            lag_rows=sum(known) if len(known) == len(rows) and begin >= first else None,
            moved_ms=found.moved_ms,
            trouble=_trouble(at, first, last),
        )

    return tuple(facts(found) for found in context.consumers.list_all())


def _rows_left(context: TableContext, at: Position) -> int | None:
    snapshot = context.snapshots.find(at.snapshot)
    if snapshot is None:
        return None
    return context.scanner.plan_told(snapshot, schema=context.latest_schema()).visible_rows - at.rows


def _trouble(at: Position, first: int, last: int) -> str | None:
    if at.part is Part.LOG and 0 < at.snapshot < first:
        return f"snapshot {at.snapshot} has expired"
    if last and at.snapshot < first and at.part is not Part.LOG:
        return f"snapshots {at.snapshot} to {first - 1} have expired"
    if at.snapshot > last + 1:
        return f"the table was rolled back to snapshot {last}"
    return None


def reset_consumer(context: TableContext, name: str, next_snapshot: int) -> None:
    """Let it go on with the changes of that snapshot; a new one is made. Raises FixRequest TS1354, TS1107."""
    newest = context.newest_snapshot()
    first, last = context.snapshots.find_earliest_id() or 1, 0 if newest is None else newest.id
    if not first <= next_snapshot <= last + 1:
        raise FixRequest(
            "TS1354",
            f"consumer {name} of {context.layout.location} cannot resume at snapshot {next_snapshot}",
            why=f"snapshots {first} to {last} are there" if last else "nothing was committed yet",
            fix=f"choose one of these, or {last + 1} for what comes next",
        )
    context.guard.check()
    context.consumers.put(name, Consumer(next_snapshot))


def delete_consumer(context: TableContext, name: str) -> None:
    """Forget it: it keeps no snapshot any more. Raises NotFound TS1355."""
    context.guard.check()
    names = context.consumers.list_names()
    if name not in names:
        raise NotFound(
            "TS1355",
            f"{context.layout.location} has no consumer {name!r}",
            why=f"its consumers are {', '.join(names) or 'none'}",
            fix="correct the name",
        )
    context.consumers.delete(name)
