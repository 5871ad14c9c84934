"""Reading statistics back, for tests of what is written."""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.format.binary_row import decode_row
from tablestore_engine.format.data_file import SimpleStats
from tablestore_engine.format.data_type import DataType
from tablestore_engine.options import StatsMode, parse_stats_mode


def decode_bounds(stats: SimpleStats, types: Sequence[DataType]) -> list[tuple[object, object]]:
    """(minimum, maximum) per column; None where unknown."""
    nullable = [type_.with_nullable(True) for type_ in types]
    low, high = decode_row(stats.min_values, nullable), decode_row(stats.max_values, nullable)
    return list(zip(low, high, strict=True))


def mode(text: str) -> StatsMode:
    """As metadata.stats-mode says it."""
    return parse_stats_mode("metadata.stats-mode", text)
