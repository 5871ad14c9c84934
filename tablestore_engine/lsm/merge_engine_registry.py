"""Which merge engine a value of the option `merge-engine` names.

CHANGE     which merge engines there are (option merge-engine)
INVARIANT  its names are those of options.MERGE_ENGINES, which the checks below this layer and the adapter go by
           (tests/house/test_merge_engines.py).
CHANGE     the merge engine deduplicate
Ties       of deduplicate: two rows for the first place; what is beaten anyway may be level.
CHANGE     the merge engine first-row
INVARIANT  a row of first-row never goes, so no file needs a deletion vector (Paimon refuses both together).
PAIMON     first-row: a retraction is refused, or left out before the merge where `ignore-delete` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.aggregation import make_aggregation
from tablestore_engine.lsm.key_order import Index
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged, MergeEngine
from tablestore_engine.lsm.partial_update import make_partial_update


@dataclass(frozen=True)
class FirstRow:
    newest_wins: bool = False
    keeps_stored: bool = True
    merges_lone: bool = False
    combines: bool = False
    takes_retractions: bool = False

    def merge(self, versions: Versions) -> Merged:
        winners = versions.order[versions.starts]
        return Merged(winners, versions.retracts[winners])

    def find_ties(self, versions: Versions) -> Index:
        """The oldest versions that nothing sets apart from the next one."""
        second = np.flatnonzero(~versions.starts & np.append(False, versions.starts[:-1]))
        return versions.order[second[versions.are_level(second)]]


@dataclass(frozen=True)
class Deduplicate:
    """The last version in merge order wins."""

    newest_wins: bool = True
    keeps_stored: bool = False
    merges_lone: bool = False
    combines: bool = False
    takes_retractions: bool = True

    def merge(self, versions: Versions) -> Merged:
        winners = versions.order[versions.ends]
        return Merged(winners, versions.retracts[winners])

    def find_ties(self, versions: Versions) -> Index:
        """Winners that nothing sets apart from their runner-up."""
        last = np.flatnonzero(versions.ends & ~versions.starts)
        return versions.order[last[versions.are_level(last)]]


ENGINES: dict[str, Callable[[TableSchema], MergeEngine]] = {
    "deduplicate": lambda _schema: Deduplicate(),
    "first-row": lambda _schema: FirstRow(),
    "aggregation": make_aggregation,
    "partial-update": make_partial_update,
}


def get_engine(name: str, schema: TableSchema) -> MergeEngine:
    """The engine of that name, however it is spelt, for the columns of a table. Raises Unsupported TS1655."""
    found, built = ENGINES.get(name.strip().lower()), ", ".join(ENGINES)
    if found is None:
        raise Unsupported(
            "TS1655",
            f"merge engine {name!r} cannot be followed here",
            why=f"rows would be merged wrongly; built: {built}",
            fix="use the table with an engine that knows this merge engine",
        )
    return found(schema)
