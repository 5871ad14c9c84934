"""Reading one Parquet file, checked: what comes out are the rows that were written, or an error that names the file.

Steps      footer → its checksum → checksums of the wanted chunks → decode; page checksums where it has none
INVARIANT  Arrow's threads get no bytes of Python, which they would free when they like: one that does so while the
           interpreter ends aborts the process. Objects of a store are decoded by the caller's thread alone.
INVARIANT  a flipped bit in a file that we wrote is TS1160 or TS1360, or changes no row.
LIMIT      files of other engines have page checksums at most: their page headers and footers are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.object_input import fetch_ranges
from tablestore_engine.format.checksum import ChunkChecksums, damaged, has_checksum, runs_of, verify_checksum
from tablestore_engine.store.files.parquet_output import leaf_count

_TAIL = 8  # length of the footer, and the magic word
_WHAT = "data file"
_REMEMBERED_MAX = 100_000  # paths, some 20 MB


class ParquetInput:
    """A context manager. Raises FixData TS1160 (damaged), TS1360 (unreadable), NotFound TS1201."""

    def __init__(self, fileio: FileIO, path: str) -> None:
        self._path = path
        self._source = fileio.open_input(path)
        self._is_of_python = isinstance(self._source, pa.PythonFile)
        try:
            footer = _footer(self._source, path)
            verify_checksum(footer, _WHAT, path)
            known = pq.read_metadata(pa.BufferReader(footer))  # else Arrow reads 64 KiB of the end once more
            self._parquet = pq.ParquetFile(
                self._source,
                metadata=known,
                page_checksum_verification=not has_checksum(footer),
                pre_buffer=not self._is_of_python,  # _check_chunks has fetched what is read
            )
        except (pa.ArrowException, OSError) as error:
            self._source.close()
            raise _unreadable(path, error) from error
        except FixData:
            self._source.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._parquet.close()
        self._source.close()

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        return self._parquet.metadata

    @cached_property
    def group_starts(self) -> npt.NDArray[np.int64]:
        """First row of each row group, and the row count at the end."""
        counts = [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def read(
        self, columns: Sequence[str] | None, groups: Sequence[int] | None = None, *, parallel: bool = False
    ) -> pa.Table:
        """Rows of some row groups (None: all), of some columns (None: all)."""
        wanted = range(self.metadata.num_row_groups) if groups is None else groups
        try:
            self._check_chunks(wanted, columns)
            return self._decode(list(wanted), None if columns is None else list(columns), parallel=parallel)
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self._path, error) from error

    def read_portions(
        self, columns: Sequence[str] | None, rows_max: int, wanted: range, *, parallel: bool = False
    ) -> Iterator[pa.Table]:
        """The rows of neighbouring row groups in order, about `rows_max` at a time: groups, or parts of a large one.

        Some writers make one row group of a file: decoded at once it would be as large as the file.
        """
        sizes = np.diff(self.group_starts)[wanted.start : wanted.stop]
        for portion in portions(sizes.tolist(), rows_max):
            groups = wanted[portion.start : portion.stop]
            if len(groups) > 1 or self.metadata.row_group(groups[0]).num_rows <= rows_max:
                yield self.read(columns, groups, parallel=parallel)
            else:
                yield from self._read_parts(columns, groups, rows_max)

    def _read_parts(
        self, columns: Sequence[str] | None, groups: Sequence[int], rows_max: int
    ) -> Iterator[pa.Table]:
        names = None if columns is None else list(columns)
        try:
            self._check_chunks(groups, columns)
            for batch in self._parquet.iter_batches(rows_max, list(groups), names, use_threads=False):
                yield pa.Table.from_batches([batch])
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self._path, error) from error

    def _decode(self, groups: list[int], columns: list[str] | None, *, parallel: bool) -> pa.Table:
        """Nested columns beyond 32-bit offsets cannot be decoded as one array: those group by group."""
        parallel = parallel and not self._is_of_python
        try:
            return self._parquet.read_row_groups(groups, columns=columns, use_threads=parallel)
        except pa.ArrowNotImplementedError:
            if len(groups) < 2:
                raise
        return pa.concat_tables(self._decode([group], columns, parallel=parallel) for group in groups)

    @cached_property
    def _sums(self) -> ChunkChecksums | None:
        metadata = self.metadata
        return ChunkChecksums.find(metadata.metadata, metadata.num_row_groups * metadata.num_columns)

    def _check_chunks(self, groups: Sequence[int], columns: Sequence[str] | None) -> None:
        """The sums of all chunks that will be decoded; neighbours are read as one."""
        if self._sums is None:
            fetch_ranges(self._source, self._chunk_ranges(groups, columns))
            return
        width, leaves = self.metadata.num_columns, self._leaves(columns)
        runs = runs_of([group * width + leaf for group in groups for leaf in leaves])
        ranges = [(int(self._sums.offsets[first]), int(self._sums.offsets[after])) for first, after in runs]
        fetch_ranges(self._source, ranges)  # once: the decoder reads them from memory
        for (first, after), (start, end) in zip(runs, ranges, strict=True):
            self._source.seek(start)
            if not self._sums.fits(first, after, self._source.read_buffer(end - start)):
                raise damaged(_WHAT, self._path, f"bytes {start} to {end} do not fit their checksum")

    def _chunk_ranges(self, groups: Sequence[int], columns: Sequence[str] | None) -> list[tuple[int, int]]:
        """Where the wanted chunks lie, of a file without sums."""
        ranges = []
        for group in groups:
            row_group = self.metadata.row_group(group)
            for leaf in self._leaves(columns):
                chunk = row_group.column(leaf)
                start = min(at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at)
                ranges.append((start, start + chunk.total_compressed_size))
        return ranges

    def _leaves(self, columns: Sequence[str] | None) -> list[int]:
        """Numbers of the Parquet columns of some Arrow columns, ascending."""
        wanted = None if columns is None else set(columns)
        numbers: list[int] = []
        at = 0
        for field in self._parquet.schema_arrow:
            count = leaf_count(field.type)
            if wanted is None or field.name in wanted:
                numbers += range(at, at + count)
            at += count
        return numbers


def portions(sizes: Sequence[int], rows_max: int) -> list[range]:
    """Numbers of neighbouring row groups that are read together: until they have `rows_max` rows. A group with more is
    alone, so a portion has less than two times `rows_max` rows, or is one group.
    """
    found: list[range] = []
    first = rows = 0
    for number, size in enumerate(sizes):
        if number > first and size > rows_max:
            found.append(range(first, number))
            first, rows = number, 0
        rows += size
        if rows >= rows_max:
            found.append(range(first, number + 1))
            first, rows = number + 1, 0
    return [*found, range(first, len(sizes))] if first < len(sizes) else found


class FooterChecks:
    """Checksums of footers, each file's once: for readers that decode pages themselves and check those alone (Spark).

    Files never change, so a path is remembered as good; threads may share it.
    """

    def __init__(self, fileio: FileIO) -> None:
        self._fileio = fileio
        self._good: set[str] = set()

    def check(self, paths: Iterable[str]) -> None:
        """Raises as ParquetInput does."""
        unknown = [path for path in paths if path not in self._good]
        self._fileio.run_together([partial(self._check, path) for path in unknown])
        if len(self._good) + len(unknown) > _REMEMBERED_MAX:
            self._good.clear()
        self._good.update(unknown)

    def _check(self, path: str) -> None:
        with self._fileio.open_input(path) as source:
            verify_checksum(_footer(source, path), _WHAT, path)


def verify_parquet(fileio: FileIO, path: str) -> int:
    """Decode every page of every column; the number of rows. Raises as ParquetInput does."""
    with ParquetInput(fileio, path) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            parquet.read(None, [group])
        return int(parquet.metadata.num_rows)


def _footer(source: pa.NativeFile, path: str) -> bytes:
    """The bytes from the footer's first one to the end of the file."""
    size = source.size()
    if size < _TAIL:
        raise damaged(_WHAT, path, f"it has {size} bytes, no Parquet file is so short")
    source.seek(size - _TAIL)
    tail = source.read(_TAIL)
    length = int.from_bytes(tail[:4], "little") + _TAIL
    if tail[4:] != b"PAR1" or length > size:
        raise damaged(_WHAT, path, "it does not end as a Parquet file does; it may be cut off")
    fetch_ranges(
        source, [(size - length, size)]
    )  # a footer that is larger than the end that came with the size
    source.seek(size - length)
    return bytes(source.read(length))


def _unreadable(path: str, error: BaseException) -> FixData:
    return FixData(
        "TS1360",
        f"the data file {path} cannot be read",
        why=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no text'}",
        fix="check the disk; run tablestore verify --deep on the table, restore the file from a copy, "
        "or roll the table back to a snapshot without it",
    )
