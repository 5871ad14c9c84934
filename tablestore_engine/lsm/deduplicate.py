"""Merge engine deduplicate: the newest version of a key is its row, whole; if it retracts, the key is gone.

CHANGE     the merge engine deduplicate
Ties       two rows for the first place; what is beaten anyway may be level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tablestore_engine.lsm.key_order import Index
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged


@dataclass(frozen=True)
class Deduplicate:
    """The last version in merge order wins."""

    newest_wins: bool = True
    keeps_stored: bool = False
    merges_lone: bool = False
    combines: bool = False
    takes_retractions: bool = True

    def merge(self, versions: Versions) -> Merged:
        """The newest version of each key."""
        winners = versions.order[versions.ends]
        return Merged(winners, versions.retracts[winners])

    def find_ties(self, versions: Versions) -> Index:
        """Winners that nothing sets apart from their runner-up."""
        last = np.flatnonzero(versions.ends & ~versions.starts)
        return versions.order[last[versions.are_level(last)]]
