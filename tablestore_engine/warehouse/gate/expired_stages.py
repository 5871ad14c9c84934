"""Drops staged snapshots that are past their retention: asks the rule (retention_rule), performs it.

CHANGE     how staged snapshots that are too old are dropped
Steps      1 is anything due in the tables that were read? 2 what was built from it, in all databases 3 of each such
           family: every drop is decided, or none 4 delete, what was built from others first
INVARIANT  a family is dropped as a whole or stays as a whole, unless the process dies in step 4.
CRASH      in step 4: what is left of the family is still past its retention, and the next process drops it. A staged
           snapshot whose drop is decided cannot be published (TS1548).
"""

from __future__ import annotations

from collections.abc import Collection

from tablestore_engine.store.stage.stage_drop import StageDrop
from tablestore_engine.warehouse.gate.gate_rule import GateBook
from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper
from tablestore_engine.warehouse.gate.retention_rule import ExpiredStage, pick_expired


def find_expired(
    gate: Gatekeeper, book: GateBook, *, spared: Collection[str] = ()
) -> tuple[ExpiredStage, ...]:
    """Steps 1 and 2. `book`: of some tables or databases. Other databases are read only when something is due."""
    now = gate.now_ms()
    roots = {one.root.key for one in pick_expired(book, now, spared=spared)}
    if not roots:
        return ()
    everywhere = gate.read_book(*gate.databases())
    return tuple(one for one in pick_expired(everywhere, now, spared=spared) if one.root.key in roots)


def drop_expired(
    gate: Gatekeeper, book: GateBook, *, spared: Collection[str] = ()
) -> tuple[ExpiredStage, ...]:
    """All steps; what was dropped. What another process publishes, writes or drops at the moment is left to it."""
    found = find_expired(gate, book, spared=spared)
    roots = dict.fromkeys(one.root.key for one in found)
    families = (tuple(one for one in found if one.root.key == root) for root in roots)
    return tuple(one for family in families if _drop(gate, family) for one in family)


def _drop(gate: Gatekeeper, family: tuple[ExpiredStage, ...]) -> bool:
    """Steps 3 and 4 of one family."""
    begun: list[StageDrop] = []
    try:
        for one in family:
            drop = gate.begin_drop(one.item)
            if drop is None:
                break
            begun.append(drop)
    finally:
        is_decided = len(begun) == len(family)
        for drop in () if is_decided else begun:
            drop.withdraw()
    for one, drop in zip(family, begun, strict=False) if is_decided else ():
        gate.drop(one.item)
        drop.branch.runtime.crash_point("stage.dropped")
    return is_decided
