"""Statistics of a whole table at once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tablestore_engine.format.data_file import SimpleStats
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.statistics import StatsCollector
from tablestore_engine.options import StatsMode


def collect_stats(
    rows: pa.Table, types: Sequence[DataType], mode: StatsMode | Sequence[StatsMode]
) -> SimpleStats:
    """Statistics of all columns of `rows`, whose types are `types`. O(rows x columns) in Arrow kernels.

    `mode` holds for all columns, or is one mode per column.
    """
    collector = StatsCollector(types, mode)
    collector.add(rows)
    return collector.finish()
