"""format("tablestore"): what Spark asks for readers and writers.

INVARIANT  made anew, by its options, in every process that Spark starts for it: it holds nothing else.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import ClassVar

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from tablestore_engine.datasource.asked_columns import all_columns
from tablestore_engine.datasource.batch_reader import FilteringReader, TablestoreReader
from tablestore_engine.datasource.open_table import open_store
from tablestore_engine.datasource.source_options import parse_address, parse_read, parse_write, shows_changes
from tablestore_engine.datasource.spark_writers import TablestoreStreamWriter, TablestoreWriter
from tablestore_engine.datasource.staged_write import TableWrite
from tablestore_engine.datasource.stream_reader import TablestoreStreamReader
from tablestore_engine.datasource.stream_versions import check_version
from tablestore_engine.spark import ship_package
from tablestore_engine.spark.worker_check import is_cluster
from tablestore_engine.spark.worker_versions import check_here


class TablestoreSource(DataSource):
    """One table of a warehouse, by the options `warehouse` and `table`, or `path`.

    >>> reader = engine.spark.read.format("tablestore").option("warehouse", engine.warehouse)  # doctest: +SPARK
    >>> reader.option("table", "demo.orders").load().count()  # doctest: +SPARK
    3
    """

    spark_version: ClassVar[str] = pyspark.__version__

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_here()
        self._address = parse_address(options)

    @classmethod
    def name(cls) -> str:
        """What stands in format(…)."""
        return "tablestore"

    def schema(self) -> StructType:
        """All columns of the table now; with read.changelog those of a changelog."""
        return all_columns(open_store(self._address).schema, with_changes=shows_changes(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Raises FixRequest TS144x, NotFound TS13xx."""
        options = parse_read(self.options)
        kind = FilteringReader if options.pushes_filters else TablestoreReader
        return kind(self._address, options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - pyspark's name
        """Raises Unsupported TS1448, FixRequest TS144x."""
        check_version(self.spark_version)
        return TablestoreStreamReader(self._address, dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Raises FixRequest TS1440, TS1442, TS1025."""
        return TablestoreStreamWriter(self._write(schema, overwrite))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Raises FixRequest TS1440, TS1442, TS1025."""
        return TablestoreWriter(self._write(schema, overwrite))

    def _write(self, schema: StructType, replaces: bool) -> TableWrite:
        return TableWrite(self._address, parse_write(self.options), schema, replaces)


def register_source(session: SparkSession, scratch: Path) -> None:
    """Doing it again is fine. On a cluster the package is sent before: Spark keeps what workers get with the source.

    Raises FixRequest TS1540 to TS1543 when workers cannot run it.
    """
    if is_cluster(session.sparkContext):
        ship_package.ship(session, scratch)
    session.dataSource.register(TablestoreSource)
