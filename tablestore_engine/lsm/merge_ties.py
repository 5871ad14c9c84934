"""Whether rows of a batch that nothing orders give another row when they come the other way round.

CHANGE     when repeated keys in a batch are refused under a merge engine that combines values
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged
from tablestore_engine.lsm.version_groups import as_series


class _Merges(Protocol):
    def merge(self, versions: Versions) -> Merged:
        """One version of each key."""


def tied_rows(engine: _Merges, versions: Versions, names: Sequence[str]) -> Index:
    """One row number of each key whose values of these columns depend on the arrival of its rows."""
    none = np.empty(0, dtype=np.int64)
    later = np.flatnonzero(~versions.starts)
    level = later[versions.are_level(later)]
    if not len(level) or not names:
        return none
    key_of = np.cumsum(versions.starts) - 1
    places = np.flatnonzero(np.isin(key_of, key_of[level]))
    mine = replace(versions, order=versions.order[places], starts=versions.starts[places])
    run = np.cumsum(~np.isin(places, level))  # rows that only their arrival orders
    backwards = replace(mine, order=mine.order[np.lexsort((-np.arange(len(places)), run))])
    one, other = engine.merge(mine), engine.merge(backwards)
    differs = one.deletes != other.deletes
    for name in names:
        differs |= _differ(versions, one, other, name)
    return np.asarray(mine.order[mine.ends][differs])


def _differ(versions: Versions, one: Merged, other: Merged, name: str) -> np.ndarray:
    assert versions.rows is not None
    rows = versions.rows.select([name])
    values = [
        merged.columns[name] if name in merged.columns else take_rows(rows, merged.winners).column(0)
        for merged in (one, other)
    ]
    first, second = map(as_series, values)
    return first.ne_missing(second).to_numpy()
