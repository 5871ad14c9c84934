"""Expiry that a user asks for: staged snapshots past their retention, then snapshots of the table.

CHANGE     `tablestore expire`, `Table.expire`
INVARIANT  a wrong request changes nothing: it is checked before anything is dropped.
WHY        a staged snapshot keeps the snapshots that it needs, so it goes first. Commits do not (decision 0074).
"""

from __future__ import annotations

from dataclasses import replace

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.store.expiry.expire_snapshots import DroppedStage, ExpireReport
from tablestore_engine.warehouse.gate.expired_stages import drop_expired, find_expired
from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper
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
