"""Analyzed queries of one piece of work: a text that is asked again, over the same states, is not analyzed again.

CHANGE     when a statement of a piece of work is analyzed again
INVARIANT  a frame is used again while each name that its analysis looked up is registered for the same state or view:
           then its hidden tables are there. REQUIRES the resolver's session and lock, and work in use (session_names).
INVARIANT  what else a text depends on, settings and temporary views, changes by statements alone; behind one the work
           begins with new states (SeenStates).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from tablestore_engine.catalog.resolved_names import Meaning, ResolvedFunction
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.spark.session_names import Name, SessionNames


def analyzed_once(
    seen: SeenStates | None,
    text: str,
    meanings: Mapping[Name, Meaning | None],
    registry: SessionNames,
    analyse: Callable[[], DataFrame],
) -> DataFrame:
    """The frame of a query. `meanings`: of the names in its text, and behind `analyse` of all that it asked for."""
    if seen is None:
        return analyse()
    text = text.strip()
    known = seen.analyzed.get(text)
    if known is not None and known[0] == _registered(meanings, registry):
        frame: DataFrame = known[1]
        return frame
    frame = analyse()
    seen.analyzed[text] = _registered(meanings, registry), frame
    return frame


def _registered(meanings: Mapping[Name, Meaning | None], registry: SessionNames) -> Mapping[Name, str | None]:
    return {
        name: found.sql if isinstance(found, ResolvedFunction) else registry.versions.get(name)
        for name, found in meanings.items()
    }
