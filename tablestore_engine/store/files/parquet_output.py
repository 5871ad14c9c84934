"""Writing one Parquet file with checksums over everything in it.

Steps      row groups go to the sink as they come, each write adds to the running sum → the footer is held back →
           running sums at the boundaries of column chunks → into the footer → the footer's own sum → sink
INVARIANT  no byte of a file is without a checksum: pages have Parquet's own (any reader can check them), page headers
           and pages our running sums, the footer its checksum.
INVARIANT  FLOAT and DOUBLE have no bounds in a file. Parquet's bounds leave NaN out, but Spark has NaN above every
           number and skips a row group by its bounds: `x > 1` would lose NaN. The manifest's bounds know NaN.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.errors import EngineBug
from tablestore_engine.format.checksum import (
    CHECKSUM_KEY,
    CHECKSUM_PLACEHOLDER,
    CHUNK_CHECKSUMS_KEY,
    ChunkChecksums,
    chunk_text_length,
    insert_checksum,
)


class _Tap:
    """What pyarrow writes to: passes bytes on and notes the running sum before each write; can hold them back."""

    closed = False

    def __init__(self, sink: pa.NativeFile) -> None:
        self._sink = sink
        self.sum = 0
        self.sums: dict[int, int] = {}  # offset → sum of all bytes before it
        self.held: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        if self.held is not None:
            self.held.append(bytes(data))
            return len(data)
        self.sums[self._sink.tell()] = self.sum
        self.sum = zlib.crc32(data, self.sum)
        self._sink.write(data)
        return len(data)

    def tell(self) -> int:
        return int(self._sink.tell()) + sum(len(part) for part in self.held or ())

    def flush(self) -> None:
        """The sink's owner flushes it."""

    def close(self) -> None:
        """The sink's owner closes it."""
        self.closed = True

    @staticmethod
    def readable() -> bool:
        return False

    @staticmethod
    def writable() -> bool:
        return True

    @staticmethod
    def seekable() -> bool:
        return False


class ParquetOutput:
    """A context manager: the file is complete when the block ends well. `options` are pq.ParquetWriter's."""

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: dict[str, Any]) -> None:
        self._sink = sink
        self._schema = schema
        self._groups = 0
        self._tap = _Tap(sink)
        self._writer = _open_writer(pa.PythonFile(self._tap, mode="w"), schema, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        if kind is None:
            self._finish()
            return
        self._tap.held = []  # the file is given up: nothing of it needs to reach the sink
        self._writer.close()

    def write_group(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._groups += 1

    def _finish(self) -> None:
        tap = self._tap
        unknown = _add_unknown_sums(self._writer, self._schema, self._groups)
        tap.sums[tap.tell()] = tap.sum
        tap.held = []
        self._writer.close()
        sums = _chunk_sums(self._writer.writer.metadata, tap)
        self._sink.write(_with_sums(b"".join(tap.held), unknown, sums))


def encode_parquet(rows: pa.Table, options: dict[str, Any]) -> bytes:
    """The bytes of a file of one row group, as ParquetOutput writes it: small files need no stream."""
    sink = pa.BufferOutputStream()
    writer = _open_writer(sink, rows.schema, options)
    writer.write_table(rows, row_group_size=rows.num_rows)
    unknown = _add_unknown_sums(writer, rows.schema, 1)
    end = sink.tell()
    writer.close()
    data = memoryview(sink.getvalue())
    offsets = [*chunk_offsets(writer.writer.metadata), end]
    if offsets != sorted(offsets):
        raise _unknown_order(offsets)
    sums, running, at = [], 0, 0
    for offset in offsets:
        running = zlib.crc32(data[at:offset], running)
        sums.append(running)
        at = offset
    found = ChunkChecksums(np.array(offsets, np.int64), np.array(sums, np.uint32))
    return bytes(data[:end]) + _with_sums(bytes(data[end:]), unknown, found)


def _open_writer(sink: pa.NativeFile, schema: pa.Schema, options: dict[str, Any]) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        sink, schema, write_page_checksum=True, write_statistics=statistics_columns(schema), **options
    )


def _add_unknown_sums(writer: pq.ParquetWriter, schema: pa.Schema, groups: int) -> str:
    """Room in the footer for checksums that are not known yet; the text that stands there."""
    unknown = "0" * chunk_text_length(groups * sum(leaf_count(field.type) for field in schema))
    writer.add_key_value_metadata({CHUNK_CHECKSUMS_KEY: unknown, CHECKSUM_KEY: CHECKSUM_PLACEHOLDER})
    return unknown


def _with_sums(footer: bytes, unknown: str, sums: ChunkChecksums) -> bytes:
    at, text = footer.rindex(unknown.encode()), sums.to_text()
    return insert_checksum(footer[:at] + text.encode() + footer[at + len(text) :])


def chunk_offsets(metadata: pq.FileMetaData) -> list[int]:
    """Where each column chunk begins, row group by row group."""
    offsets = []
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            offsets.append(min(o for o in (chunk.dictionary_page_offset, chunk.data_page_offset) if o))
    return offsets


def _chunk_sums(metadata: pq.FileMetaData, tap: _Tap) -> ChunkChecksums:
    """Running sums at the boundaries of the chunks. Raises EngineBug TS1361 when pyarrow writes in another way."""
    offsets = [*chunk_offsets(metadata), max(tap.sums)]
    unknown = [offset for offset in offsets if offset not in tap.sums]
    if unknown or offsets != sorted(offsets):
        raise _unknown_order(unknown)
    return ChunkChecksums(np.array(offsets, np.int64), np.array([tap.sums[o] for o in offsets], np.uint32))


def _unknown_order(offsets: list[int]) -> EngineBug:
    return EngineBug(
        "TS1361",
        "a Parquet file was not written column after column",
        why=f"no write began at {offsets[:3]}; the installed pyarrow is {pa.__version__}",
        fix="install the pyarrow of constraints.txt, and report this",
    )


def statistics_columns(schema: pa.Schema) -> list[str]:
    """Paths of the columns of a file, without those of floating-point numbers."""
    return [path for field in schema for path in _exact_leaves(field.name, field.type)]


def _exact_leaves(path: str, type_: pa.DataType) -> Iterator[str]:
    if pa.types.is_map(type_):
        yield from _exact_leaves(f"{path}.key_value.key", type_.key_type)
        yield from _exact_leaves(f"{path}.key_value.value", type_.item_type)
    elif pa.types.is_struct(type_):
        for field in type_:
            yield from _exact_leaves(f"{path}.{field.name}", field.type)
    elif type_.num_fields:  # every kind of list
        yield from _exact_leaves(f"{path}.list.element", type_.field(0).type)
    elif not pa.types.is_floating(type_):
        yield path


def leaf_count(type_: pa.DataType) -> int:
    """Columns that Parquet makes of one Arrow column."""
    return sum(leaf_count(type_.field(i).type) for i in range(type_.num_fields)) or 1
