"""Reading one Parquet file, checked: what comes out are the rows that were written, or an error that names the file.

Steps      footer → its checksum → checksums of the wanted chunks → decode; page checksums where it has none
INVARIANT  Arrow's threads get no bytes of Python, which they would free when they like: one that does so while the
           interpreter ends aborts the process. Objects of a store are decoded by the caller's thread alone.
INVARIANT  a flipped bit in a file that we wrote is TS1160 or TS1360, or changes no row.
LIMIT      files of other engines have page checksums at most: their page headers and footers are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.object_input import fetch_ranges
from tablestore_engine.format.checksum import damaged, runs_of, verify_checksum
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.parquet_footer import (
    DATA_FILE,
    Footer,
    FooterCache,
    footer_bytes,
    read_footer,
)
from tablestore_engine.store.files.stored_file import StoredFile

_REMEMBERED_MAX = 100_000  # paths, some 20 MB


class ParquetInput:
    """A context manager. Raises FixData TS1160 (damaged), TS1360 (unreadable), NotFound TS1201, Unsupported TS1164."""

    def __init__(
        self,
        fileio: FileIO,
        path: str,
        footers: FooterCache | None = None,
        schema: TableSchema | None = None,
    ) -> None:
        """`footers`: where the footer is known, or is remembered. `schema`: of the file, for columns of nanoseconds."""
        self._path, self._schema = path, schema
        self._bounds: dict[str, tuple[int, int]] = {}
        self._source = fileio.open_input(path)
        self._is_of_python = isinstance(self._source, pa.PythonFile)
        try:
            self.footer = self._find_footer(footers)
            self._parquet = self._open("ns")
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
        """The footer as Arrow has it."""
        return self.footer.metadata

    @property
    def group_starts(self) -> npt.NDArray[np.int64]:
        """First row of each row group, and the row count at the end."""
        return self.footer.group_starts

    def prefetch(self, groups: Sequence[int], columns: Sequence[str], bytes_max: int) -> None:
        """Have the chunks of an object ready by one request, where they are few bytes; nothing to do on a disk."""
        if self._is_of_python and groups:
            ranges = self._chunk_ranges(groups, columns)
            if ranges and max(end for _, end in ranges) - min(start for start, _ in ranges) <= bytes_max:
                fetch_ranges(self._source, ranges)

    def _open(self, unit: str, coded: Sequence[str] = ()) -> pq.ParquetFile:
        """`unit`: of INT96; `coded`: columns of text that come as dictionaries."""
        return pq.ParquetFile(
            self._source,
            read_dictionary=list(coded) or None,
            metadata=self.footer.metadata,  # else Arrow reads 64 KiB of the end once more
            page_checksum_verification=not self.footer.is_checked,
            pre_buffer=not self._is_of_python,  # _check_chunks has fetched what is read
            coerce_int96_timestamp_unit=unit,
        )

    def _int96(self, columns: Sequence[str] | None) -> list[str]:
        """Those of the columns that hold INT96, in the order of the file."""
        return [
            name
            for name in self.footer.leaves
            if name in self.footer.int96 and (not columns or name in columns)
        ]

    def _exact(self, rows: pa.Table, micros: pa.Table) -> pa.Table:
        from tablestore_engine.store.files.int96_columns import (  # noqa: PLC0415 - for such files alone
            exact_columns,
            fine_columns,
            signed_bounds,
        )

        def bounds(name: str) -> tuple[int, int]:
            if name not in self._bounds:
                self._bounds[name] = signed_bounds(self._source, name)
            return self._bounds[name]

        fine = frozenset[str]() if self._schema is None else fine_columns(self._schema)
        return exact_columns(rows, micros, fine, bounds, self._path)

    def _find_footer(self, footers: FooterCache | None) -> Footer:
        known = None if footers is None else footers.find(self._path)
        if known is None:
            known = read_footer(self._source, self._path)
            if footers is not None:
                footers.put(self._path, known)
        return known

    def read(
        self,
        columns: Sequence[str] | None,
        groups: Sequence[int] | None = None,
        *,
        parallel: bool = False,
        coded: bool = False,
    ) -> pa.Table:
        """Rows of some row groups (None: all), of some columns (None: all). `coded`: texts that repeat may come as
        dictionaries.
        """
        wanted = range(self.metadata.num_row_groups) if groups is None else groups
        try:
            self._check_chunks(wanted, columns)
            names = None if columns is None else list(columns)
            if coded and not self._int96(names):
                repeating = self.footer.repeating.intersection(self.footer.leaves if names is None else names)
                if repeating:
                    parquet = self._open("ns", sorted(repeating))
                    return self._decode(list(wanted), names, parallel=parallel, parquet=parquet)
            return self._decode(list(wanted), names, parallel=parallel)
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self._path, error) from error

    def read_portions(
        self, columns: Sequence[str] | None, rows_max: int, wanted: Sequence[int], *, parallel: bool = False
    ) -> Iterator[pa.Table]:
        """The rows of ascending row groups in order, about `rows_max` at a time: groups, or parts of a large one.

        Some writers make one row group of a file: decoded at once it would be as large as the file.
        """
        for groups in self.portions(rows_max, wanted):
            if len(groups) > 1 or self.metadata.row_group(groups[0]).num_rows <= rows_max:
                yield self.read(columns, groups, parallel=parallel)
            else:
                yield from self._read_parts(columns, groups, rows_max)

    def portions(self, rows_max: int, wanted: Sequence[int]) -> list[Sequence[int]]:
        """The same row groups, those that are read together in one list."""
        sizes = np.diff(self.group_starts)[list(wanted)]
        return [wanted[portion.start : portion.stop] for portion in portions(sizes.tolist(), rows_max)]

    def _read_parts(
        self, columns: Sequence[str] | None, groups: Sequence[int], rows_max: int
    ) -> Iterator[pa.Table]:
        names = None if columns is None else list(columns)
        try:
            self._check_chunks(groups, columns)
            parts = self._parquet.iter_batches(rows_max, list(groups), names, use_threads=False)
            twice = self._int96(names)
            if not twice:
                yield from (pa.Table.from_batches([batch]) for batch in parts)
                return
            again = self._open("us").iter_batches(rows_max, list(groups), twice, use_threads=False)
            for batch, other in zip(parts, again, strict=True):
                rows, micros = (pa.Table.from_batches([one]) for one in (batch, other))
                yield self._exact(rows, micros)
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self._path, error) from error

    def _decode(
        self,
        groups: list[int],
        columns: list[str] | None,
        *,
        parallel: bool,
        parquet: pq.ParquetFile | None = None,
    ) -> pa.Table:
        """Nested columns beyond 32-bit offsets cannot be decoded as one array: those group by group."""
        parallel = parallel and not self._is_of_python
        try:
            rows = (parquet or self._parquet).read_row_groups(groups, columns=columns, use_threads=parallel)
            twice = self._int96(columns)
            if not twice:
                return rows
            micros = self._open("us").read_row_groups(groups, columns=twice, use_threads=parallel)
            return self._exact(rows, micros)
        except pa.ArrowNotImplementedError:
            if len(groups) < 2:
                raise
        parts = [self._decode([group], columns, parallel=parallel, parquet=parquet) for group in groups]
        return pa.concat_tables(parts)

    def _check_chunks(self, groups: Sequence[int], columns: Sequence[str] | None) -> None:
        """The sums of all chunks that will be decoded; neighbours are read as one."""
        sums, ranges = self.footer.chunk_sums, self._chunk_ranges(groups, columns)
        fetch_ranges(self._source, ranges)  # once: the decoder reads them from memory
        if sums is None:
            return
        for (first, after), (start, end) in zip(self._chunk_runs(groups, columns), ranges, strict=True):
            self._source.seek(start)
            if not sums.fits(first, after, self._source.read_buffer(end - start)):
                raise damaged(DATA_FILE, self._path, f"bytes {start} to {end} do not fit their checksum")

    def _chunk_runs(self, groups: Sequence[int], columns: Sequence[str] | None) -> list[tuple[int, int]]:
        width, leaves = self.metadata.num_columns, self._leaves(columns)
        return runs_of([group * width + leaf for group in groups for leaf in leaves])

    def _chunk_ranges(self, groups: Sequence[int], columns: Sequence[str] | None) -> list[tuple[int, int]]:
        """Where the wanted chunks lie: neighbours as one, in a file with sums; else each."""
        sums = self.footer.chunk_sums
        if sums is not None:
            runs = self._chunk_runs(groups, columns)
            return [(int(sums.offsets[first]), int(sums.offsets[after])) for first, after in runs]
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
        return [
            leaf
            for name, leaves in self.footer.leaves.items()
            if wanted is None or name in wanted
            for leaf in leaves
        ]


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

    def check(self, files: Iterable[StoredFile]) -> None:
        """Raises as ParquetInput does."""
        unknown = {file.path: file.fileio or self._fileio for file in files if file.path not in self._good}
        self._fileio.run_together([partial(self._check, *one) for one in unknown.items()])
        if len(self._good) + len(unknown) > _REMEMBERED_MAX:
            self._good.clear()
        self._good.update(unknown)

    def _check(self, path: str, fileio: FileIO) -> None:
        with fileio.open_input(path) as source:
            verify_checksum(footer_bytes(source, path), DATA_FILE, path)


def _unreadable(path: str, error: BaseException) -> FixData:
    return FixData(
        "TS1360",
        f"the data file {path} cannot be read",
        why=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no text'}",
        fix="check the disk; run tablestore verify --deep on the table, restore the file from a copy, "
        "or roll the table back to a snapshot without it",
    )
