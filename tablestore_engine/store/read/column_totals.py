"""Count, smallest value, largest value and sum of columns over all visible rows of a plan; the rows are not held.

Steps      files in threads (scan_rows.decode_files) → blocks of a file (row_budget) → totals of a block, joined
INVARIANT  a sum is given only where no sum of some of the rows, in whatever order, leaves 64 bits: there Spark raises,
           or wraps around, as its settings say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import KeyCache
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import decode_files

_LONG_MAX = 2**63 - 1


@dataclass(frozen=True)
class ColumnTotals:
    """Of one column. `count`: rows that are not NULL. `low` and `high`: whole numbers, dates as days; None: no row, or
    a column of another type. `magnitude`: no sum of some of the rows is farther from zero.
    """

    count: int = 0
    low: int | None = None
    high: int | None = None
    total: int = 0
    magnitude: int = 0

    @property
    def sum(self) -> int | None:
        """None: too large to be proven."""
        return self.total if self.magnitude <= _LONG_MAX else None

    def joined(self, other: ColumnTotals) -> ColumnTotals:
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        return ColumnTotals(
            self.count + other.count,
            min(lows, default=None),
            max(highs, default=None),
            self.total + other.total,
            self.magnitude + other.magnitude,
        )


def read_totals(
    fileio: FileIO, plan: ScanPlan, columns: Sequence[str], cache: KeyCache | None = None
) -> Mapping[str, ColumnTotals]:
    """Column → totals. Raises what scan_rows.read_plan raises."""
    reader = FileReader(fileio, plan.schema, None if cache is None else cache.footers)
    files = [file for file in plan.files if file.visible_rows]

    def of_file(file: StoredFile) -> dict[str, ColumnTotals]:
        found = dict.fromkeys(columns, ColumnTotals())
        step, parallel = step_rows([file]), len(files) == 1
        for rows in reader.read_visible_blocks(file, columns, rows_max=step, parallel=parallel):
            found = {name: known.joined(_totals(rows[name])) for name, known in found.items()}
        return found

    totals = dict.fromkeys(columns, ColumnTotals())
    for found in decode_files(fileio, files, of_file):
        totals = {name: known.joined(found[name]) for name, known in totals.items()}
    return totals


def _totals(column: pa.ChunkedArray) -> ColumnTotals:
    count = len(column) - column.null_count
    is_number = pa.types.is_integer(column.type)
    if not count or not (is_number or pa.types.is_date32(column.type)):
        return ColumnTotals(count)
    numbers = column if is_number else column.cast(pa.int32())
    ends = pc.min_max(numbers)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    magnitude = max(abs(low), abs(high)) * count
    # Arrow's sum wraps around without a word
    total = pc.sum(numbers).as_py() if magnitude <= _LONG_MAX else 0
    return ColumnTotals(count, low, high, total, magnitude)
