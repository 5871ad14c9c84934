"""Versions that callers name for tables → what names mean in one statement."""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.catalog.resolved_names import Overrides
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.sql.table_version import MOMENT, TableVersion

Versions = Mapping[str, TableVersion]


def to_overrides(
    versions: Versions, reads: ReadLog | None = None, seen: SeenStates | None = None
) -> Overrides:
    """`versions`: schema.table → its state, and `now()` (MOMENT) → the time of the statement; `reads` is told which
    tables a statement reads. `seen`: see Overrides.
    """
    states = {}
    moment = versions.get(MOMENT)
    for name, version in versions.items():
        if name == MOMENT:
            continue
        identifier = Identifier.parse(name)
        states[identifier.database, identifier.name] = version
    return Overrides(states, reads, None if moment is None else moment.timestamp_ms, seen)
