"""What the metadata of one file says of its rows, gathered piece by piece while the file is written.

CHANGE     the metadata of a data file
INVARIANT  facts are those of all rows of the file, however they were cut; no rows are kept, but the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.binary_row import EMPTY_ROW, encode_key_columns
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND, DataFileMeta
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.statistics import StatsCollector, empty_stats, stats_of_groups
from tablestore_engine.lsm.key_versions import retracts
from tablestore_engine.options import StatsMode

KEY_STATS_MODE = StatsMode(counts=True, bounds=True, length=128)  # Java's; no option changes it


@dataclass(frozen=True)
class FactsOf:
    """`creation_time` is asked once for each file, when its last row is written."""

    schema: TableSchema
    stats_modes: Sequence[StatsMode]
    level: int
    source: int
    creation_time: Callable[[], int]

    def collector(self) -> StatsCollector:
        return StatsCollector([field.type for field in self.schema.fields], self.stats_modes)


@dataclass
class Counter:
    next: int


class KeyedFacts:
    """Rows have the key columns, the sequence number, the kind, then the table's columns."""

    def __init__(self, of: FactsOf) -> None:
        names = of.schema.trimmed_primary_keys
        self._of = of
        self._types = [field.type for field in of.schema.fields_of(names)]
        self._keys = StatsCollector(self._types, KEY_STATS_MODE)
        self._values = of.collector()
        self._first: bytes | None = None
        self._last: pa.Table | None = None
        self._rows = self._retracts = 0
        self._numbers: list[int] = []

    def add(self, rows: pa.Table) -> None:
        """The next rows, in key order."""
        width = len(self._types)
        keys = rows.select(range(width))
        if self._first is None:
            self._first = _encoded_key(keys.slice(0, 1), self._types)
        self._last = keys.slice(rows.num_rows - 1)
        self._keys.add(keys)
        self._values.add(rows.select(range(width + 2, rows.num_columns)))
        numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
        self._numbers = [
            min([int(numbers.min()), *self._numbers]),
            max([int(numbers.max()), *self._numbers]),
        ]
        self._retracts += int(retracts(np.asarray(rows.column(VALUE_KIND))).sum())
        self._rows += rows.num_rows

    def to_meta(self, name: str, size: int) -> DataFileMeta:
        """REQUIRES at least one row."""
        assert self._first is not None
        assert self._last is not None
        return DataFileMeta(
            file_name=name,
            file_size=size,
            row_count=self._rows,
            min_key=self._first,
            max_key=_encoded_key(self._last, self._types),
            key_stats=self._keys.finish(),
            value_stats=self._values.finish(),
            min_sequence_number=self._numbers[0],
            max_sequence_number=self._numbers[1],
            schema_id=self._of.schema.id,
            level=self._of.level,
            creation_time=self._of.creation_time(),
            delete_row_count=self._retracts,
            file_source=self._of.source,
        )


def keyed_metas(of: FactsOf, rows: pa.Table, starts: npt.NDArray[np.int64]) -> list[DataFileMeta]:
    """What KeyedFacts says of files that begin at these rows, without names and sizes; no file is empty."""
    types = [field.type for field in of.schema.fields_of(of.schema.trimmed_primary_keys)]
    width, ends = len(types), np.append(starts[1:], rows.num_rows)
    keys, values = rows.select(range(width)), rows.select(range(width + 2, rows.num_columns))
    firsts = encode_key_columns(keys.take(pa.array(starts)).columns, types)
    lasts = encode_key_columns(keys.take(pa.array(ends - 1)).columns, types)
    key_stats = stats_of_groups(keys, starts, types, [KEY_STATS_MODE] * width)
    value_stats = stats_of_groups(values, starts, [field.type for field in of.schema.fields], of.stats_modes)
    numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
    lows, highs = np.minimum.reduceat(numbers, starts).tolist(), np.maximum.reduceat(numbers, starts).tolist()
    gone = np.add.reduceat(retracts(np.asarray(rows.column(VALUE_KIND))).astype(np.int64), starts).tolist()
    made = of.creation_time()
    return [
        DataFileMeta(
            file_name="",
            file_size=0,
            row_count=count,
            min_key=firsts[at],
            max_key=lasts[at],
            key_stats=key_stats[at],
            value_stats=value_stats[at],
            min_sequence_number=lows[at],
            max_sequence_number=highs[at],
            schema_id=of.schema.id,
            level=of.level,
            creation_time=made,
            delete_row_count=gone[at],
            file_source=of.source,
        )
        for at, count in enumerate((ends - starts).tolist())
    ]


class AppendFacts:
    """Rows have the table's columns; the numbers of a file go on where those of the file before ended."""

    def __init__(self, of: FactsOf, counter: Counter) -> None:
        self._of = of
        self._counter = counter
        self._values = of.collector()
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        self._values.add(rows)
        self._rows += rows.num_rows

    def to_meta(self, name: str, size: int) -> DataFileMeta:
        """REQUIRES at least one row."""
        first = self._counter.next
        self._counter.next += self._rows
        return DataFileMeta(
            file_name=name,
            file_size=size,
            row_count=self._rows,
            min_key=EMPTY_ROW,
            max_key=EMPTY_ROW,
            key_stats=empty_stats(),
            value_stats=self._values.finish(),
            min_sequence_number=first,
            max_sequence_number=self._counter.next - 1,
            schema_id=self._of.schema.id,
            level=self._of.level,
            creation_time=self._of.creation_time(),
            delete_row_count=0,
            file_source=self._of.source,
        )


def _encoded_key(row: pa.Table, types: Sequence[DataType]) -> bytes:
    return encode_key_columns(row.columns, types)[0]
