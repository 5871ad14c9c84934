"""Writing the Parquet files of one bucket: data, changelog and append files with their metadata.

Names      DataFiles     the parts that every file operation needs, and the operations
           RunRows       sorted rows with their sequence numbers (and kinds), ready to be written
Steps      key and system columns → row groups → roll at the target size → exact size, statistics, key range
INVARIANT  a file is complete and durable before its metadata exists; its rows are sorted by key, one per key
           (changelog: -U before +U).
PAIMON     `_KEY_` columns, field ids, integer decimals, ms/us timestamps are what Java expects (format.md#data-files).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import StorageError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.binary_row import EMPTY_ROW, encode_key_columns
from tablestore_engine.format.data_file import (
    SOURCE_APPEND,
    VALUE_KIND,
    DataFileMeta,
    append_schema,
    key_value_schema,
)
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.statistics import collect_stats, empty_stats
from tablestore_engine.options import StatsMode
from tablestore_engine.runtime.system import Runtime
from tablestore_engine.store.bucket_state import BucketState
from tablestore_engine.store.file_read import FileReader
from tablestore_engine.store.parquet_output import ParquetOutput
from tablestore_engine.store.table_traits import TableTraits

GROUP_BYTES_MAX = 512 << 20  # 32-bit offsets of other readers end at 2 GiB
DICTIONARY_PAGE_BYTES = 128 << 10  # a row group whose values do not repeat gives up its dictionary early
DICTIONARY_SHARE = (
    0.4  # more distinct values among the rows than this: the column is smaller and faster without
)
KEY_STATS_MODE = StatsMode(counts=True, bounds=True, length=128)  # Java's; no option changes it
_SAMPLE_ROWS = 8_192
_PLAIN_ROOTS = ("FLOAT", "DOUBLE")  # measured values rarely repeat: no dictionary is tried


@dataclass(frozen=True)
class RunRows:
    """Rows in key order with the table's columns; `kinds` None means that every row adds."""

    rows: pa.Table
    numbers: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8] | None = None


@dataclass(frozen=True)
class DataFiles:
    """Writes files of the schema of `traits`; `reader` gives rows of stored files the same columns."""

    fileio: FileIO
    layout: TableLayout
    traits: TableTraits
    runtime: Runtime

    @property
    def schema(self) -> TableSchema:
        """The schema that is written."""
        return self.traits.schema

    @property
    def reader(self) -> FileReader:
        """Rows of stored files as they would be written now."""
        return FileReader(self.fileio, self.schema)

    def write_run(
        self, state: BucketState, run: RunRows, *, level: int, source: int = SOURCE_APPEND
    ) -> tuple[DataFileMeta, ...]:
        """One sorted run of disjoint files on `level`; no file for no rows."""
        return self._write_keyed(state, run, prefix="data", level=level, source=source)

    def write_changelog(self, state: BucketState, run: RunRows, *, level: int) -> tuple[DataFileMeta, ...]:
        """The changelog rows of one commit, kinds as given."""
        return self._write_keyed(state, run, prefix="changelog", level=level, source=SOURCE_APPEND)

    def copy_as_changelog(
        self, state: BucketState, files: Sequence[DataFileMeta]
    ) -> tuple[DataFileMeta, ...]:
        """Changelog of a run that only inserts: the same bytes under names of their own.

        Expiry deletes changelog files earlier than data files, so sharing a name would lose rows.
        """
        copies = []
        for meta in files:
            name = self._new_name("changelog")
            self.fileio.copy(self._path(state, meta.file_name), self._path(state, name))
            copies.append(replace(meta, file_name=name, file_source=SOURCE_APPEND))
        return tuple(copies)

    def write_append(
        self, state: BucketState, rows: pa.Table, first_sequence: int
    ) -> tuple[DataFileMeta, ...]:
        """Files of an append-only table in the order given; sequence numbers count on over the files."""
        metas = []
        for name, start, stop, size in self._roll(state, rows, append_schema(self.schema), "data"):
            part = rows.slice(start, stop - start)
            empty = empty_stats()
            metas.append(
                self._meta(
                    part,
                    file_name=name,
                    file_size=size,
                    min_key=EMPTY_ROW,
                    max_key=EMPTY_ROW,
                    key_stats=empty,
                    min_sequence_number=first_sequence + start,
                    max_sequence_number=first_sequence + stop - 1,
                    level=0,
                    delete_row_count=0,
                    file_source=SOURCE_APPEND,
                )
            )
        return tuple(metas)

    def _write_keyed(
        self, state: BucketState, run: RunRows, *, prefix: str, level: int, source: int
    ) -> tuple[DataFileMeta, ...]:
        if not run.rows.num_rows:
            return ()
        keys = self.schema.trimmed_primary_keys
        types = [field.type for field in self.schema.fields_of(keys)]
        kinds = np.zeros(run.rows.num_rows, np.int8) if run.kinds is None else run.kinds
        arrays = [run.rows.column(name) for name in keys]
        arrays += [pa.array(run.numbers, pa.int64()), pa.array(kinds, pa.int8()), *run.rows.columns]
        table = pa.Table.from_arrays(arrays, schema=key_value_schema(self.schema))
        metas = []
        for name, start, stop, size in self._roll(state, table, table.schema, prefix):
            part = run.rows.slice(start, stop - start)
            key_rows = part.select(keys)
            numbers = run.numbers[start:stop]
            metas.append(
                self._meta(
                    part,
                    file_name=name,
                    file_size=size,
                    min_key=_encoded_key(key_rows.slice(0, 1), types),
                    max_key=_encoded_key(key_rows.slice(key_rows.num_rows - 1), types),
                    key_stats=collect_stats(key_rows, types, KEY_STATS_MODE),
                    min_sequence_number=int(numbers.min()),
                    max_sequence_number=int(numbers.max()),
                    level=level,
                    delete_row_count=_retract_count(kinds[start:stop]),
                    file_source=source,
                )
            )
        return tuple(metas)

    def _roll(
        self, state: BucketState, table: pa.Table, schema: pa.Schema, prefix: str
    ) -> list[tuple[str, int, int, int]]:
        """Write all rows into one or more files: (name, first row, row after the last, bytes) of each."""
        written: list[tuple[str, int, int, int]] = []
        start = 0
        try:
            while start < table.num_rows:
                name = self._new_name(prefix)
                stop, size = self._write_file(state, name, table.slice(start), schema)
                written.append((name, start, start + stop, size))
                start += stop
        except StorageError:
            for name, *_ in written:  # a full disk must not stay full of what nobody will name
                self.fileio.delete(self._path(state, name))
            raise
        return written

    def _write_file(
        self, state: BucketState, name: str, table: pa.Table, schema: pa.Schema
    ) -> tuple[int, int]:
        """The first rows of `table` as one file of about the target size: (rows, bytes)."""
        stop, traits = 0, self.traits
        with self.fileio.open_output(self._path(state, name)) as sink:
            options = self._parquet_options(table.slice(0, _SAMPLE_ROWS))
            with ParquetOutput(sink, schema, options) as output:
                while stop < table.num_rows and (stop == 0 or sink.tell() < traits.target_bytes):
                    group = _bounded(table.slice(stop, min(traits.group_rows, table.num_rows - stop)))
                    output.write_group(group.cast(schema))
                    stop += group.num_rows
            return stop, sink.tell()

    def _parquet_options(self, sample: pa.Table) -> dict[str, object]:
        never = {*self.schema.trimmed_primary_keys}
        repeating = [
            field.name
            for field in self.schema.fields
            if field.name not in never
            and _takes_dictionary(field.type)
            and _repeats(sample.column(field.name))
        ]
        return {
            "compression": self.traits.compression,
            "compression_level": self.traits.compression_level,
            "use_dictionary": [VALUE_KIND, *repeating],
            "dictionary_pagesize_limit": DICTIONARY_PAGE_BYTES,
            "store_decimal_as_integer": True,
            "store_schema": False,
        }

    def _meta(self, part: pa.Table, **facts: object) -> DataFileMeta:
        types = [field.type for field in self.schema.fields]
        return DataFileMeta(
            row_count=part.num_rows,
            value_stats=collect_stats(part, types, self.traits.stats_modes),
            schema_id=self.schema.id,
            creation_time=self._creation_time(),
            **facts,  # type: ignore[arg-type]
        )

    def _creation_time(self) -> int:
        """Wall-clock milliseconds of the local zone taken as if UTC, as others do (format.md#data-files)."""
        now_ms = self.runtime.now_ms()
        offset = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().utcoffset()
        return now_ms + (round(offset.total_seconds() * 1000) if offset else 0)

    def _new_name(self, prefix: str) -> str:
        return f"{prefix}-{self.runtime.new_uuid()}-0.parquet"

    def _path(self, state: BucketState, name: str) -> str:
        return self.layout.data_file(state.partition_path, state.bucket, name)

    def discard(self, state: BucketState, metas: Sequence[DataFileMeta]) -> None:
        """Delete files of this writer that nothing names. REQUIRES that no claim was tried with them."""
        for meta in metas:
            self.fileio.delete(self._path(state, meta.file_name))


def _bounded(rows: pa.Table) -> pa.Table:
    """The first of the rows, as many as make a row group that every reader holds in one array."""
    while rows.num_rows > 1 and rows.nbytes > GROUP_BYTES_MAX:
        rows = rows.slice(0, rows.num_rows // 2)
    return rows


def _encoded_key(row: pa.Table, types: Sequence[DataType]) -> bytes:
    return encode_key_columns(row.columns, types)[0]


def _takes_dictionary(type_: DataType) -> bool:
    """PAIMON: Java 1.4.2 looks an equal value of a wide decimal up in the dictionary by bytes of another length
    and skips the row group: rows would vanish under `=`. Its own writer has no dictionaries for them either.
    """
    wide = type_.root == "DECIMAL" and (type_.precision or 0) > 18
    return type_.is_atomic and type_.root not in _PLAIN_ROOTS and not wide


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether values occur often enough: pyarrow keeps any dictionary that fits its page, however little it saves."""
    return int(pc.count_distinct(column, mode="all").as_py()) <= DICTIONARY_SHARE * len(column)


def _retract_count(kinds: npt.NDArray[np.int8]) -> int:
    return int(((kinds == RowKind.UPDATE_BEFORE) | (kinds == RowKind.DELETE)).sum())
