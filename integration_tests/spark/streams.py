"""Streams of tests: a table, and queries over it on the session of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.api import Engine, Table, TableSpec, WriteReport, WriteSpec

Rows = list[tuple[Any, ...]]
Batches = list[tuple[int, Rows]]
_TYPES = pa.schema([("id", pa.int64()), ("v", pa.string()), ("at", pa.timestamp("us", "UTC"))])
KEYED = WriteSpec(TableSpec(primary_key=("id",), options={"bucket": "2"}))
MINUTE = 60_000_000


@dataclass(frozen=True)
class Shop:
    """`spark` is shared; the folder is this test's own."""

    spark: SparkSession
    folder: Path

    @property
    def engine(self) -> Engine:
        """A fresh one."""
        return Engine(str(self.folder / "warehouse"))

    @property
    def table(self) -> Table:
        """demo.t."""
        return self.engine.table("demo.t")

    def put(
        self, *rows: tuple[int, str], minute: int = 60, name: str = "demo.t", spec: WriteSpec = KEYED
    ) -> WriteReport:
        """One snapshot; all rows are of that minute."""
        rows_ = [{"id": number, "v": text, "at": minute * MINUTE} for number, text in rows]
        return self.engine.write(name, pa.Table.from_pylist(rows_, schema=_TYPES), spec)

    def stream(self, name: str = "demo.t", schema: str | None = None, **options: str) -> DataFrame:
        """As a user writes it."""
        reader = self.spark.readStream.format("tablestore").option(
            "warehouse", str(self.folder / "warehouse")
        )
        if schema is not None:
            reader = reader.schema(schema)
        return reader.option("table", name).options(**options).load()

    def checkpoint(self, name: str = "c") -> str:
        """A folder for a query."""
        return str(self.folder / name)


def run_once(
    frame: DataFrame, checkpoint: str, *, mode: str = "append", then: Callable[[int], None] | None = None
) -> Batches:
    """Rows of each batch, sorted; `then` is called in each."""
    found: Batches = []

    def keep(batch: DataFrame, number: int) -> None:
        found.append((number, sorted((tuple(row) for row in batch.collect()), key=repr)))
        if then is not None:
            then(number)

    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
    query = writer.foreachBatch(keep).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return found
