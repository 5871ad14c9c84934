"""Frames for Python code that reads tables and gives rows: what a dbt Python model works with.

Steps      session → read, convert → take the code's rows → they get a name for a query, or are written as they are
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.api.pinned_versions import to_overrides
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.spark.frame_kinds import (
    FrameKind,
    convert,
    drop_name,
    find_spark_frame,
    frame_of_arrow,
    name_frame,
)
from tablestore_engine.spark.resolving_session import Read, ResolvingSession
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.incoming_rows import from_arrow, to_arrow

Running = Callable[[], AbstractContextManager[None]]


class PythonFrames:
    """Of one engine. `running`: while the thread works, so that it can be stopped; `spark` gives the session."""

    def __init__(self, warehouse: Warehouse, running: Running, spark: Callable[[], SparkSession]) -> None:
        self._warehouse, self.running, self._spark = warehouse, running, spark

    def session(self, read: Read) -> SparkSession:
        """The engine's session, whose names of tables are read by `read`; the active one of this thread."""
        return ResolvingSession.of(self._spark(), read)

    def read(
        self,
        sql: str,
        args: Mapping[str, Any] | None,
        *,
        versions: Mapping[str, TableVersion],
        reads: ReadLog,
    ) -> DataFrame:
        """The frame of a query, for as long as it is used; each table has one state."""
        return self._warehouse.resolver.query(sql, to_overrides(versions, reads), args)

    def convert(self, frame: DataFrame, kind: FrameKind) -> Any:  # noqa: ANN401 - frames of four libraries
        """The rows as another library has them. Raises what the query raises."""
        return convert(frame, kind)

    def new_name(self) -> str:
        """A name for the rows of one model."""
        return f"tablestore_rows_{self._warehouse.catalog.runtime.new_uuid().replace('-', '')}"

    def take(self, rows: object) -> DataFrame | pa.Table:
        """Rows of any library as a frame of Spark or as exact Arrow. Raises FixRequest TS1023, FixData TS1607."""
        frame = find_spark_frame(rows)
        return from_arrow(to_arrow(rows)).table if frame is None else frame

    def name_rows(self, rows: DataFrame | pa.Table, name: str) -> None:
        """A temporary view of the rows, until drop_name(); rows that had the name before lose it.

        Raises Unsupported TS1578 for a column that no query can read.
        """
        if isinstance(rows, pa.Table):
            rows = frame_of_arrow(self._spark(), rows, from_arrow(rows).fields)
        name_frame(rows, name)

    def drop_name(self, name: str) -> None:
        """A missing one is fine; where no session runs there is none."""
        if self._warehouse.session.is_started:
            drop_name(self._warehouse.resolver.session, name)
