"""What writers of batches and of streams share: tasks leave rows in files, the driver's side commits them.

Steps      stage: in a worker, rows → row kinds as numbers → one file · commit: in a Python process beside the driver,
           files in the order of the tasks → the same write as Engine.write (warehouse/write/staged_rows.py) → publish
INVARIANT  files lie apart from all tables, under the query's name and the batch's; a task that runs twice leaves two,
           of which Spark's message names one.
INVARIANT  a column `_row_kind` (+I -U +U -D) is no value: it says whether a row is put or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from tablestore_engine.datasource.open_table import open_warehouse
from tablestore_engine.datasource.source_options import TableAddress, WriteOptions
from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import list_hidden
from tablestore_engine.fileio.stores import open_root
from tablestore_engine.format.layout import staged_rows_location
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, short_strings
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spark.spark_types import arrow_type, fields_from_spark
from tablestore_engine.spark.worker_versions import check_here
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.stream.change_source import ROW_KIND
from tablestore_engine.warehouse.write.staged_rows import StagedFile, StagedRows, stage_rows
from tablestore_engine.warehouse.write.write_spec import WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport


@dataclass
class StagedMessage(WriterCommitMessage):
    """`owner`: the query; None where the task does not know one."""

    owner: str | None
    file: StagedFile


@dataclass(frozen=True)
class TableWrite:
    """`replaces`: the rows take the place of all others (or of those of their partitions)."""

    address: TableAddress
    options: WriteOptions
    columns: StructType
    replaces: bool

    @property
    def mode(self) -> WriteMode:
        """What happens to the rows that are there."""
        if not self.replaces:
            return WriteMode.UPSERT
        return WriteMode.OVERWRITE_PARTITIONS if self.options.partitions_only else WriteMode.OVERWRITE_TABLE

    def spec(self, **identity: Any) -> WriteSpec:  # noqa: ANN401 - the two fields of it that say who commits
        """Raises FixRequest TS1025."""
        return WriteSpec(
            mode=self.mode,
            on_schema_change=self.options.on_schema_change,  # type: ignore[arg-type]  # WriteSpec takes words
            missing_columns=self.options.missing_columns,
            duplicates=self.options.duplicates,
            **identity,
        )

    def folder(self, *owner: str) -> str:
        """Of a query, or of one batch of it."""
        root, _ = open_root(self.address.warehouse, SYSTEM.users)
        return "/".join((staged_rows_location(root), *owner))

    def stage(self, folder: str, batches: Iterable[pa.RecordBatch]) -> StagedFile:
        """In a worker. Raises FixData TS1452, FixRequest TS1540."""
        check_here()
        _, fileio = open_root(self.address.warehouse, SYSTEM.users)
        path = f"{folder}/{SYSTEM.new_uuid()}.arrow"
        return stage_rows(fileio, path, self._numbered(batches), self._schema)

    def commit(
        self, folder: str, messages: Sequence[StagedMessage | None], spec: WriteSpec
    ) -> WriteReport | None:
        """Beside the driver; None where there is nothing to write. Raises what a write does, NotFound TS1451."""
        files = tuple(one.file for one in messages if one is not None and one.file.rows)
        if not files and not self.replaces:
            return None
        warehouse = open_warehouse(self.address)
        try:
            fileio = warehouse.catalog.fileio
            plain = StructType(
                [one for one in self.columns.fields if one.name not in (ROW_KIND, ROW_KIND_COLUMN)]
            )
            incoming = StagedRows(
                fields_from_spark(plain),
                fileio,
                folder,
                files,
                self._schema,
                lambda: f"{SYSTEM.new_uuid()}.arrow",
            )
            return warehouse.write_incoming(self.address.identifier, incoming, spec)
        finally:
            warehouse.close()

    def clear(self, folder: str, messages: Sequence[StagedMessage | None]) -> None:
        """The files of these messages, which are committed; others there may be of somebody who is still at it."""
        _, fileio = open_root(self.address.warehouse, SYSTEM.users)
        for one in messages:
            if one is not None:
                fileio.delete(one.file.path)
        if not fileio.list(folder) and not list_hidden(fileio, folder):
            fileio.delete(folder)

    def clear_before(self, query: str, batch: int) -> None:
        """What is left of earlier batches, all of which are in the table."""
        root = self.folder(query)
        _, fileio = open_root(self.address.warehouse, SYSTEM.users)
        for status in fileio.list(root):
            if status.name.isdigit() and int(status.name) < batch:
                fileio.delete_tree(status.path)
        if not fileio.list(root):
            fileio.delete(root)

    @property
    def _schema(self) -> pa.Schema:
        """As staged: the rows, with kinds as numbers."""
        fields = []
        for one in self.columns.fields:
            if one.name in (ROW_KIND, ROW_KIND_COLUMN):
                fields.append(pa.field(ROW_KIND_COLUMN, pa.int8()))
            else:
                fields.append(pa.field(one.name, arrow_type(one.dataType)))
        return pa.schema(fields)

    def _numbered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self._schema
        for batch in batches:
            columns = [
                _kinds(column) if name == ROW_KIND else _cast(column, schema.field(place).type)
                for place, (name, column) in enumerate(zip(self.columns.names, batch.columns, strict=True))
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Arrow refuses a cast that changes nothing but metadata where a VARIANT is NULL."""
    return column if column.type == target else column.cast(target)


def _kinds(column: pa.Array) -> pa.Array:
    """Words as numbers. Raises FixData TS1452: a kind that is not known must never count as an insert."""
    numbers = pc.index_in(column.cast(pa.string()), short_strings())
    if numbers.null_count:
        wrong = column.filter(pc.is_null(numbers))[0].as_py()
        raise FixData(
            "TS1452",
            f"column {ROW_KIND} has a value that is no row kind",
            why=f"expected one of {', '.join(short_strings().to_pylist())}, got {wrong!r}",
            fix="give one of these, or leave the column out to put all rows",
        )
    return pa.array(np.asarray(numbers), pa.int8())
