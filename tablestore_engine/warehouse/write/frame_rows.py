"""Rows of a DataFrame: few are collected on the driver, many are written by Spark tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.incoming_frame import (
    VIOLATION_COLUMN,
    distinct_keys,
    find_violations,
    shape_frame,
)
from tablestore_engine.spark.write import collect_small, count_rows, estimated_bytes, write_distributed
from tablestore_engine.spark.write_job import WriteJob
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.rows.row_filter import RowFilter, SameKeys
from tablestore_engine.warehouse.write.incoming import check_names, shape_arrow


@dataclass(frozen=True)
class FrameRows:
    """`frame` has the columns of `fields`, and the helper columns. Raises FixRequest TS1024 for repeated names."""

    fields: tuple[DataField, ...]
    frame: DataFrame

    def __post_init__(self) -> None:
        check_names([field.name for field in self.fields])

    @property
    def has_kinds(self) -> bool:
        """Whether a column _ROW_KIND comes along."""
        return ROW_KIND_COLUMN in self.frame.columns

    @property
    def only_deletes(self) -> bool:
        """Not known before the query has run."""
        return False

    def size_bytes(self) -> int:
        """By the statistics of Spark's optimizer, which know the files of the inputs."""
        return estimated_bytes(self.frame)

    def count_groups(self, columns: Sequence[str]) -> int:
        """By a Spark job."""
        have = {name.lower(): name for name in self.frame.columns}
        return int(distinct_keys(self.frame, [have[name.lower()] for name in columns]).num_rows)

    def read(self, schema: TableSchema) -> pa.Table | LargeFrame:
        """Collected when they are few."""
        frame = shape_frame(self.frame, schema)
        rows = collect_small(frame, spools=schema.is_keyed or schema.bucket_count > 0)
        return LargeFrame(frame) if rows is None else shape_arrow(rows, schema)


@dataclass(frozen=True)
class LargeFrame:
    """`frame` has the columns of the table, then the helper columns."""

    frame: DataFrame

    def find_violations(self) -> tuple[int, Sequence[Mapping[str, object]]] | None:
        """By a Spark job, before anything is written."""
        return find_violations(self.frame)

    def narrowed(self, replaces: RowFilter | None) -> RowFilter | None:
        """SameKeys with the keys of the rows, once each."""
        if not isinstance(replaces, SameKeys):
            return replaces
        return replaces.among(distinct_keys(self.frame, replaces.columns))

    def count_rows(self, columns: Sequence[str]) -> pa.Table:
        """By a Spark job."""
        return count_rows(self.frame, columns)

    def write(self, job: WriteJob, scratch: Callable[[], Path], /) -> Sequence[BucketChange]:
        frame = self.frame
        if VIOLATION_COLUMN in frame.columns:
            frame = frame.drop(VIOLATION_COLUMN)
        return write_distributed(frame, job, scratch())
