"""What a merge engine is: how the versions of each key become one. A value with methods over whole columns.

LAW        a lone version is its own outcome, but in the merge that settles its key (lsm.combining_merge).
LAW        merging is associative: versions merged in two goes give what they give in one. A batch is merged before it
           meets the stored row, level 0 before the runs below it, a compaction takes some runs of many.
LAW        the outcome may be a retraction: older versions that are not here may still have to go. Only who knows that
           nothing older exists takes it for "no row".
tests/laws/test_merge_engine_laws.py holds them for every registered engine, through every caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.key_versions import Versions


@dataclass(frozen=True)
class Merged:
    """Key by key, in key order: the row number of the version that stands for it, and whether that retracts.

    columns   values that are not those of that version, one per key; only engines that combine have any
    """

    winners: Index
    deletes: Mask
    columns: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)


class MergeEngine(Protocol):
    """The option `merge-engine` of one table, with the options of its columns. A value: threads share it."""

    @property
    def newest_wins(self) -> bool:
        """Whether the newest version is the row of its key, whole: a row put again is that row, and a -U beside another
        row of its key says nothing.
        """

    @property
    def keeps_stored(self) -> bool:
        """Whether a stored row stays whatever comes: then readers need no deletion vectors."""

    @property
    def takes_retractions(self) -> bool:
        """Whether -U and -D are versions; else they are refused (TS1657)."""

    @property
    def merges_lone(self) -> bool:
        """Of engines that combine: whether the merge that settles a key may change a lone addition."""

    @property
    def combines(self) -> bool:
        """Whether values of several versions make the row. Then versions come with their rows, stored ones are always
        read, and no bitmap over files can say what readers see.
        """

    def merge(self, versions: Versions) -> Merged:
        """One version of each key. Columns at a time: these are all rows of a bucket."""

    def find_ties(self, versions: Versions) -> Index:
        """One row number of each key whose outcome hangs on the arrival of rows that nothing else orders."""
