"""A warning for rows that no reader shows: those in level 0, where writers of other engines leave them.

INVARIANT  only readers of the newest state are warned, once in a process for each snapshot.
WHY        the rows are no part of the snapshot for any reader, so that all engines and the changelog agree
           (decision 0105). A user who has just inserted them would take them for lost.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from tablestore_engine.store.read.scan import ScanPlan

_LOGGER = logging.getLogger("tablestore_engine.catalog")
_REMEMBERED = 1024


def warn_of_waiting_rows(location: str, plan: ScanPlan) -> None:
    """Log them, for the plan of the newest state of the table at `location`."""
    if plan.waiting_rows and plan.snapshot is not None:
        _warn(location, plan.snapshot.unique, plan.waiting_rows)


def sentence(table: str, rows: int) -> str:
    """What was left out, why, and what makes it visible."""
    counted = f"{rows} row{'s' if rows > 1 else ''}"
    return (
        f"{table}: readers leave out {counted} that another engine wrote to level 0. The next commit of this engine "
        f"makes them visible, or now: tablestore compact {table}"
    )


@lru_cache(maxsize=_REMEMBERED)
def _warn(location: str, unique: str, rows: int) -> None:  # noqa: ARG001 - the snapshot is a part of the cache's key
    database, _, name = location.rpartition("/")
    _LOGGER.warning(sentence(f"{database.rpartition('/')[2].removesuffix('.db')}.{name}", rows))
