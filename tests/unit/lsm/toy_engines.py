"""Merge engines that only tests know: each is one value, and a line of the registry while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.lsm.key_order import Index
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged, MergeEngine
from tablestore_engine.lsm.merge_engine_registry import ENGINES


@dataclass(frozen=True)
class KeepFirst:
    """The oldest version that adds is the row of its key for ever; what comes later, also a delete, changes nothing."""

    newest_wins: bool = False
    keeps_stored: bool = False
    takes_retractions: bool = True
    merges_lone: bool = False
    combines: bool = False

    def merge(self, versions: Versions) -> Merged:
        """The first addition of each key; a key without any stays a retraction."""
        starts = np.flatnonzero(versions.starts)
        places = np.arange(len(versions.order))
        beyond = np.where(versions.retracts[versions.order], len(places), places)
        first = np.minimum.reduceat(beyond, starts)
        winners = versions.order[np.where(first < len(places), first, starts)]
        return Merged(winners, versions.retracts[winners])

    def find_ties(self, versions: Versions) -> Index:
        """Keys whose two oldest versions are level."""
        second = np.flatnonzero(~versions.starts & np.append(False, versions.starts[:-1]))
        return versions.order[second[versions.are_level(second)]]


@dataclass(frozen=True)
class SumOf:
    """The column's values are added up, NULL as nothing; the other columns are those of the newest version.

    A retraction that meets additions takes its value off; alone it takes its key away.
    """

    column: str = "v"
    newest_wins: bool = False
    keeps_stored: bool = False
    takes_retractions: bool = True
    merges_lone: bool = False
    combines: bool = True
    seen: list[int] = field(default_factory=list, compare=False)

    def merge(self, versions: Versions) -> Merged:
        """The newest version with the sum of all; a retraction only where nothing was added."""
        assert versions.rows is not None
        rows = versions.order
        values = pl.from_arrow(versions.rows.column(self.column)).fill_null(0).to_numpy()[rows]
        away, starts = versions.retracts[rows], np.flatnonzero(versions.starts)
        total = np.add.reduceat(np.where(away, -values, values), starts)
        deletes = np.logical_and.reduceat(away, starts)
        total = np.where(deletes, -total, total).astype(np.int64)
        summed = pa.chunked_array([pa.array(total)]).cast(versions.rows.schema.field(self.column).type)
        self.seen.append(len(rows))
        return Merged(rows[versions.ends], deletes, {self.column: summed})

    def find_ties(self, versions: Versions) -> Index:
        """Adding up is the same in any order."""
        return np.empty(0, dtype=np.int64)


@contextmanager
def registered(name: str, engine: MergeEngine) -> Iterator[MergeEngine]:
    """The engine under that name: the registry's line."""
    with patch.dict(ENGINES, {name: lambda _schema: engine}):
        yield engine
