"""Merge engine first-row: the first version of a key is its row; later ones change nothing.

CHANGE     the merge engine first-row
INVARIANT  a row never goes, so no file needs a deletion vector (Paimon refuses both together).
PAIMON     a retraction is refused, or left out before the merge where `ignore-delete` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tablestore_engine.lsm.key_order import Index
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged


@dataclass(frozen=True)
class FirstRow:
    """The oldest version wins."""

    newest_wins: bool = False
    keeps_stored: bool = True
    merges_lone: bool = False
    combines: bool = False
    takes_retractions: bool = False

    def merge(self, versions: Versions) -> Merged:
        """The oldest version of each key."""
        winners = versions.order[versions.starts]
        return Merged(winners, versions.retracts[winners])

    def find_ties(self, versions: Versions) -> Index:
        """The oldest versions that nothing sets apart from the next one."""
        second = np.flatnonzero(~versions.starts & np.append(False, versions.starts[:-1]))
        return versions.order[second[versions.are_level(second)]]
