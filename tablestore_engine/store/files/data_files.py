"""Writing the Parquet files of one bucket: data, changelog and append files with their metadata.

CHANGE     how data files are written (options file.format, file.compression, file.compression.per.level,
           file.compression.zstd-level, parquet.row-group-rows)
Steps      key and system columns → rolling_writer: row groups, files of the target size → statistics, key range
INVARIANT  a file is complete and durable before its metadata exists; its rows are sorted by key, one per key
           (changelog: -U before +U).
PAIMON     `_KEY_` columns, field ids, integer decimals, ms/us timestamps are what Java expects (format.md#data-files).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import (
    SOURCE_APPEND,
    VALUE_KIND,
    DataFileMeta,
    append_schema,
)
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataField, DataType, is_fine_timestamp
from tablestore_engine.format.evolution_cast import cast_column
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.progress import NO_METER, Meter
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.file_facts import AppendFacts, Counter, FactsOf, KeyedFacts
from tablestore_engine.store.files.file_index_output import IndexedFacts
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.parquet_footer import FooterCache
from tablestore_engine.store.files.rolling_writer import FileFacts, RollingWriter, Shape
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.table_traits import TableTraits

DICTIONARY_PAGE_BYTES = 128 << 10  # a row group whose values do not repeat gives up its dictionary early
DICTIONARY_SHARE = (
    0.4  # more distinct values among the rows than this: the column is smaller and faster without
)
_PLAIN_ROOTS = ("FLOAT", "DOUBLE")  # measured values rarely repeat: no dictionary is tried


@dataclass(frozen=True)
class RunRows:
    """Rows in key order with the table's columns; `kinds` None means that every row adds."""

    rows: pa.Table
    numbers: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8] | None = None


@dataclass(frozen=True)
class DataFiles:
    """Writes files of the schema of `traits`; `reader` gives rows of stored files the same columns.

    `meter` counts rows that are written into data files. `footers` of stored files, if they are remembered.
    """

    fileio: FileIO
    layout: TableLayout
    traits: TableTraits
    runtime: Runtime
    meter: Meter = NO_METER
    footers: FooterCache | None = None

    @property
    def schema(self) -> TableSchema:
        return self.traits.schema

    @property
    def reader(self) -> FileReader:
        """Rows of stored files as they would be written now."""
        return FileReader(self.fileio, self.schema, self.footers)

    def open_run(
        self, state: BucketState, *, level: int, source: int = SOURCE_APPEND
    ) -> RollingWriter[RunRows]:
        """One sorted run of disjoint files on `level`, written as its rows come; no file for no rows."""
        return self._open_keyed(state, prefix="data", level=level, source=source)

    def open_changelog(self, state: BucketState, *, level: int) -> RollingWriter[RunRows]:
        """The changelog rows of one commit, kinds as given."""
        return self._open_keyed(state, prefix="changelog", level=level, source=SOURCE_APPEND)

    def copy_as_changelog(
        self, state: BucketState, files: Sequence[DataFileMeta]
    ) -> tuple[DataFileMeta, ...]:
        """Changelog of a run that only inserts: the same bytes under names of their own.

        Expiry deletes changelog files earlier than data files, so sharing a name would lose rows.
        """
        copies = []
        for meta in files:
            name = self.new_name("changelog")
            self.fileio.copy(self.path(state, meta.file_name), self.path(state, name))
            copies.append(
                replace(
                    meta, file_name=name, file_source=SOURCE_APPEND, extra_files=(), embedded_file_index=None
                )
            )
        return tuple(copies)

    def open_append(
        self, state: BucketState, first_sequence: int, *, source: int = SOURCE_APPEND, level: int = 0
    ) -> RollingWriter[pa.Table]:
        """Files of an append-only table in the order given; sequence numbers count on over the files."""
        count = Counter(first_sequence)
        shape = Shape[pa.Table](
            append_schema(self.schema),
            arrange=self._without_gaps,
            options=partial(self._parquet_options, level),
            facts=lambda: self._indexed(state, AppendFacts(self.facts(level=level, source=source), count)),
            group_rows=self.traits.group_rows,
            target_bytes=self.traits.target_bytes,
        )
        return RollingWriter(self.fileio, lambda: self._new_file(state, "data"), shape, self.meter)

    def write_append(
        self, state: BucketState, rows: pa.Table, first_sequence: int
    ) -> tuple[DataFileMeta, ...]:
        with self.open_append(state, first_sequence) as output:
            output.add(rows)
        return output.metas

    def _open_keyed(
        self, state: BucketState, *, prefix: str, level: int, source: int
    ) -> RollingWriter[RunRows]:
        def facts() -> FileFacts:
            made = KeyedFacts(self.facts(level=level, source=source))
            return self._indexed(state, made) if prefix == "data" else made

        shape = Shape(
            self.traits.stored_schema,
            arrange=self.keyed_rows,
            options=partial(self._parquet_options, level),
            facts=facts,
            group_rows=self.traits.group_rows,
            target_bytes=self.traits.target_bytes,
        )
        meter = self.meter if prefix == "data" else NO_METER
        return RollingWriter(self.fileio, lambda: self._new_file(state, prefix), shape, meter)

    def keyed_rows(self, run: RunRows) -> pa.Table:
        """Key columns, number, kind, then the table's columns."""
        kinds = np.zeros(run.rows.num_rows, np.int8) if run.kinds is None else run.kinds
        arrays = [run.rows.column(name) for name in self.schema.trimmed_primary_keys]
        rows = self._without_gaps(run.rows)
        arrays += [pa.array(run.numbers, pa.int64()), pa.array(kinds, pa.int8()), *rows.columns]
        return pa.Table.from_arrays(arrays, schema=self.traits.stored_schema)

    @cached_property
    def _variants(self) -> tuple[DataField, ...]:
        """Columns that are a VARIANT or have one inside."""
        return tuple(
            one for one in self.schema.fields if any(part.root == "VARIANT" for part in one.type.walk())
        )

    @cached_property
    def _has_fine_times(self) -> bool:
        return any(is_fine_timestamp(part) for one in self.schema.fields for part in one.type.walk())

    def _without_gaps(self, rows: pa.Table) -> pa.Table:
        """Parquet's writer refuses NULL in `value` and `metadata`, which are NOT NULL, below a VARIANT that is NULL."""
        for field in self._variants:
            at = rows.schema.get_field_index(field.name)
            rows = rows.set_column(at, rows.field(at), cast_column(rows.column(at), field.type, field.type))
        return rows

    def _indexed(self, state: BucketState, facts: FileFacts) -> FileFacts:
        """With the indexes of the file, which no changelog file has."""
        columns = self.traits.indexed_columns
        if not columns:
            return facts

        def write(name: str, data: bytes) -> None:
            self.fileio.write(self.path(state, name), data)

        return IndexedFacts(facts, columns, self.traits.embedded_index_bytes, write)

    def facts(self, *, level: int, source: int) -> FactsOf:
        return FactsOf(self.schema, self.traits.stats_modes, level, source, self._creation_time)

    def _parquet_options(self, level: int, sample: pa.Table) -> dict[str, object]:
        repeating = [name for name in self.dictionaries if _repeats(sample.column(name))]
        return self.parquet_options(repeating, level)

    @property
    def dictionaries(self) -> list[str]:
        """Columns that take a dictionary where their values repeat (see repeats)."""
        never = {*self.schema.trimmed_primary_keys}
        return [
            field.name
            for field in self.schema.fields
            if field.name not in never and _takes_dictionary(field.type)
        ]

    def parquet_options(self, repeating: Sequence[str], level: int) -> dict[str, object]:
        """How Parquet is written on a level; `repeating`: those of `dictionaries` that do."""
        codec, codec_level = self.traits.compression_of(level)
        return {
            "compression": codec,
            "compression_level": codec_level,
            "use_dictionary": [VALUE_KIND, *repeating],
            "dictionary_pagesize_limit": DICTIONARY_PAGE_BYTES,
            "store_decimal_as_integer": True,
            "store_schema": False,
            # PAIMON: Java 1.4.2 reads no INT64 of nanoseconds. INT96 is for all timestamps of a file or for none
            "use_deprecated_int96_timestamps": self._has_fine_times,
        }

    def _creation_time(self) -> int:
        """Wall-clock milliseconds of the local zone taken as if UTC, as others do (format.md#data-files)."""
        now_ms = self.runtime.now_ms()
        offset = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().utcoffset()
        return now_ms + (round(offset.total_seconds() * 1000) if offset else 0)

    def _new_file(self, state: BucketState, prefix: str) -> tuple[str, str]:
        name = self.new_name(prefix)
        return name, self.path(state, name)

    def new_name(self, prefix: str) -> str:
        """Of a file that nobody knows yet."""
        return f"{prefix}-{self.runtime.new_uuid()}-0.parquet"

    def path(self, state: BucketState, name: str) -> str:
        return self.layout.data_file(state.partition_path, state.bucket, name)

    def stored(self, state: BucketState, meta: DataFileMeta) -> StoredFile:
        """A file of this writer as readers see it."""
        return StoredFile(
            partition=state.partition,
            partition_bytes=state.partition_bytes,
            partition_path=state.partition_path,
            bucket=state.bucket,
            total_buckets=self.schema.bucket_count,
            meta=meta,
            path=self.path(state, meta.file_name),
            schema=self.schema,
        )

    def discard(self, state: BucketState, metas: Sequence[DataFileMeta]) -> None:
        """Delete files of this writer that nothing names. REQUIRES that no claim was tried with them."""
        for name in (name for meta in metas for name in meta.file_names):
            self.fileio.delete(self.path(state, name))


def _takes_dictionary(type_: DataType) -> bool:
    """PAIMON: Java 1.4.2 looks an equal value of a wide decimal up in the dictionary by bytes of another length
    and skips the row group: rows would vanish under `=`. Its own writer has no dictionaries for them either.

    Iceberg's vectorized reader 1.11.0 for Spark takes milliseconds of a dictionary for microseconds.
    """
    wide = type_.root == "DECIMAL" and (type_.precision or 0) > 18
    millis = type_.root in TIMESTAMP_ROOTS and (type_.precision or 0) <= 3
    return type_.is_atomic and type_.root not in _PLAIN_ROOTS and not wide and not millis


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether values occur often enough: pyarrow keeps any dictionary that fits its page, however little it saves."""
    return int(pc.count_distinct(column, mode="all").as_py()) <= DICTIONARY_SHARE * len(column)
