"""Drops staged snapshots that are past `tablestore.staged-retention` when a run first looks at their database.

CHANGE     when a dbt run drops old staged snapshots
INVARIANT  what a run continues (`dbt retry`) is spared; a run whose staged snapshots cannot be dropped continues.
"""

from __future__ import annotations

from collections.abc import Collection

from dbt.adapters.tablestore.gate.microbatches import lost_note
from dbt.adapters.tablestore.messages import TerminalMessages
from tablestore_engine.api import Engine, TablestoreError
from tablestore_engine.spi import ExpiredStage, GateBook, drop_expired

logger = TerminalMessages("Tablestore")


def drop_old(engine: Engine, book: GateBook, spared: Collection[str]) -> tuple[ExpiredStage, ...]:
    """What was dropped; a warning for each. `spared`: names of staged snapshots that this run continues."""
    try:
        dropped = drop_expired(engine.gate, book, spared=spared)
    except (TablestoreError, OSError) as error:
        logger.warning(f"staged snapshots that are past their retention were not dropped: {error}")
        return ()
    for one in dropped:
        logger.warning(f"{one.line()}{lost_note(one.item.batches)}")
    return dropped
