"""Drops staged snapshots that are past their retention: asks the rule (retention_rule), performs it.

CHANGE     how staged snapshots that are too old are dropped
Steps      1 is anything due in the tables that were read? 2 what was built from it, in all databases 3 of each such
           family: every drop is decided, or none 4 delete, what was built from others first
INVARIANT  a family is dropped as a whole or stays as a whole, unless the process dies in step 4.
CRASH      in step 4: what is left of the family is still past its retention, and the next process drops it. A staged
           snapshot whose drop is decided cannot be published (TS1548).
CHANGE     `tablestore expire`, `Table.expire`
INVARIANT  a wrong request changes nothing: it is checked before anything is dropped.
WHY        a staged snapshot keeps the snapshots that it needs, so it goes first. Commits do not (decision 0074).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.store.expiry.expire_snapshots import DroppedStage, ExpireReport
from tablestore_engine.store.stage.stage_drop import StageDrop
from tablestore_engine.warehouse.gate.gate_rule import GateBook
from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper
from tablestore_engine.warehouse.gate.retention_rule import ExpiredStage, pick_expired
from tablestore_engine.warehouse.maintenance.expiry import check_request
from tablestore_engine.warehouse.warehouse import Warehouse

_GONE = "the table had only staged rows, which are dropped"


def expire_table(
    warehouse: Warehouse,
    identifier: Identifier,
    *,
    keep: int | None,
    older_than_ms: int | None,
    dry_run: bool,
) -> ExpireReport:
    """Both steps; a table that had nothing but staged rows is gone afterwards. Raises what Expiry.run raises."""
    check_request(identifier, keep, older_than_ms)
    gate = Gatekeeper(warehouse)
    look = find_expired if dry_run else drop_expired
    found = look(gate, gate.read_book(str(identifier)))
    staged = tuple(DroppedStage(one.item.table, one.item.name, one.line(is_dry=dry_run)) for one in found)
    if staged and warehouse.stores.find(identifier) is None:
        return ExpireReport(0, 0, 0, 0, _GONE, staged=staged)
    report = warehouse.expiry.run(identifier, keep=keep, older_than_ms=older_than_ms, dry_run=dry_run)
    return replace(report, staged=staged)


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
