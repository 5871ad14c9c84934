"""Staged snapshots as records: what each waits for, what its tests said, and rows that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.spi import DAMAGED, GateBook, describe_damage, explain, kept_until_ms

if TYPE_CHECKING:
    from tablestore_engine.api import Engine
    from tablestore_engine.spi import FailingRows, Staged


@dataclass(frozen=True)
class StagedWait:
    """Why a staged snapshot is not published, and when its retention ends."""

    reason: str
    until_ms: int | None = None


def waits_each(engine: Engine, items: tuple[Staged, ...]) -> list[StagedWait]:
    """Of each item, in order. An item whose group needs a damaged table says so."""
    try:
        return _waits(engine, items)
    except DAMAGED as damage:
        if len(items) == 1:
            return [StagedWait(f"cannot be judged: {describe_damage(damage)}")]
    return [wait for item in items for wait in waits_each(engine, (item,))]


def _waits(engine: Engine, items: tuple[Staged, ...]) -> list[StagedWait]:
    book = engine.gate.complete_book(GateBook(items))
    world = engine.gate.see(book)
    return [StagedWait(explain(item, book, world), kept_until_ms(item, book)) for item in items]


def staged_record(engine: Engine, item: Staged, wait: StagedWait) -> dict[str, object]:
    """A staged snapshot with the outcomes of its tests, and what it waits for."""
    info = next((one for one in engine.staged(item.table) if one.name == item.name), None)
    return {
        "table": item.table,
        "name": item.name,
        "snapshot": item.snapshot,
        "base_snapshot": None if info is None else info.base_snapshot_id,
        "owner": item.owner or None,
        "policy": item.policy,
        "reason": wait.reason,
        "written": moment_text(item.written_ms),
        "kept_until": None if wait.until_ms is None else moment_text(wait.until_ms),
        "outcomes": {one.test: one.verdict for one in item.outcomes},
        "tests": [
            {
                "test": test,
                "verdict": verdict_of(item, test),
                "reads": [f"{read.table}@{read.version}" for read in item.counted[test].reads]
                if test in item.counted
                else [],
                "failing": _failing_record(failing_of(item, test)),
            }
            for test in tests_of(item)
        ],
        "properties": {} if info is None else dict(info.properties),
    }


def tests_of(item: Staged) -> list[str]:
    """Ids of its gates, and of the other tests that said something of it."""
    return sorted({*item.gates, *(one.test for one in item.outcomes)})


def verdict_of(item: Staged, test: str) -> str:
    """Its verdict on these rows; it "abstains" when it read the table at versions of its own choice only."""
    if test in item.counted:
        return item.counted[test].verdict
    return "abstains" if test in item.abstained else "missing"


def failing_of(item: Staged, test: str) -> FailingRows | None:
    return item.counted[test].failing if test in item.counted else None


def _failing_record(found: FailingRows | None) -> dict[str, object] | None:
    return (
        None if found is None else {"columns": list(found.columns), "rows": [list(one) for one in found.rows]}
    )
