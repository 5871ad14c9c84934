"""A scan as an Arrow dataset: a reader asks for columns and rows, and only the files that these need are opened.

WHY        DuckDB asks a dataset for the columns of a query, and for the rows of what it can say as an Arrow expression.
INVARIANT  the rows are exact: Arrow applies a filter that the scan does not support to the rows of the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from tablestore_engine.errors import FixRequest, TablestoreError


class Scannable(Protocol):
    """What is read: table_scan.Scan."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""

    def filter(self, wanted: pc.Expression) -> Scannable:
        """Some of the rows."""

    def select(self, *columns: str) -> Scannable:
        """Some of the columns."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""


class Failures:
    """Errors of ours that DuckDB reported in words of its own."""

    def __init__(self) -> None:
        self._first: TablestoreError | None = None

    def kept(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """The batches; an error of ours that begins or ends them is kept."""
        try:
            yield from read()
        except TablestoreError as error:
            self._first = self._first or error
            raise

    def reraise(self) -> None:
        """The first one; does nothing when there is none."""
        if self._first is not None:
            raise self._first


class ScanDataset(ds.Dataset):  # type: ignore[misc,unused-ignore]  # pyarrow has no types
    """For readers that call `scanner` alone: nothing stands behind the other methods of a dataset."""

    def __init__(
        self, scan: Scannable, failures: Failures
    ) -> None:  # no super(): Arrow makes none without files
        self._scan, self._failures = scan, failures

    @property
    def schema(self) -> pa.Schema:
        """Of the whole scan."""
        return self._scan.schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's name
        **_: object,  # sizes of batches and the like
    ) -> ds.Scanner:
        """A scanner for one reading; `columns` may be none at all, where only the number of rows counts."""
        scan, left = self._scan, filter
        if filter is not None:
            try:
                scan, left = scan.filter(filter), None
            except FixRequest:
                scan = self._scan
        wanted = self.schema.names if columns is None else list(columns)
        if left is None and wanted:
            scan = scan.select(*wanted)
        return ds.Scanner.from_batches(
            self._failures.kept(scan.to_batches), schema=scan.schema, columns=wanted, filter=left
        )
