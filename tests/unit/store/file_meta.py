"""Metadata of a file that does not exist, for tests of choices."""

from __future__ import annotations

from tablestore_engine.format.binary_row import EMPTY_ROW
from tablestore_engine.format.data_file import EMPTY_STATS, DataFileMeta


def meta(name: str, *, rows: int, size: int = 1_000, level: int = 0) -> DataFileMeta:
    """An append-only file."""
    return DataFileMeta(
        file_name=name,
        file_size=size,
        row_count=rows,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=0,
        max_sequence_number=rows - 1,
        schema_id=0,
        level=level,
        creation_time=0,
    )
