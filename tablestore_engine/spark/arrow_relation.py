"""The portable read as a node of an analysed plan: numbers of slices, mapped by Python workers to rows.

Steps      slices of the files → an RDD of their numbers, a partition each, with the size of the files as statistics →
           mapInArrow → the columns of the stand-in with their ids
INVARIANT  a column that was not read is an error when somebody asks for its values (TS1532), never NULL.
WHY        no data source: it would start a Python process to plan each query, and could not leave out columns. The
           statistics keep Spark from broadcasting a large table that looks like a few numbers.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from tablestore_engine.format.data_file import EMPTY_STATS
from tablestore_engine.spark import ship_package
from tablestore_engine.spark.arrow_read import ArrowRead, cut_slices, reading
from tablestore_engine.spark.remote_files import RemoteFiles
from tablestore_engine.spark.spark_internals import Jvm, SparkInner
from tablestore_engine.spark.spark_types import arrow_type
from tablestore_engine.sql.scanner import quote_name, quote_string
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.predicate import Predicate

_NUMBER_BYTES = 16  # of a row of numbers, as Spark estimates it


class ArrowRelations:
    """Of one session; `scratch`: where the package for workers is made."""

    def __init__(self, session: SparkSession, inner: SparkInner, scratch: Path) -> None:
        self._session, self._inner, self._scratch = session, inner, scratch

    def on(self, node: Jvm, files: RemoteFiles, wanted: Predicate, columns: frozenset[str] | None) -> Jvm:
        """The rows of `node`, a stand-in, from these files; of `columns` only, where the plan asks for no others."""
        whole = StructType.fromJson(json.loads(str(node.schema().json())))
        asked = whole if columns is None else _narrowed(whole, columns)
        if not files.group.files:
            return self._inner.placeholder(node.output())
        context = self._session.sparkContext
        if not str(context.master).startswith("local"):
            ship_package.ship(self._session, self._scratch)

        def constant(file: StoredFile) -> int | None:
            return files.constants.get(file.meta.file_name)

        read = ArrowRead(
            files.reads.fileio,
            files.group.schema,
            cut_slices(
                [_slim(file) for file in files.group.files], constant, cores=context.defaultParallelism
            ),
            pa.schema([pa.field(one.name, arrow_type(one.dataType)) for one in asked.fields]),
            wanted,
            files.constant_column,
        )
        size = sum(file.meta.file_size for file in files.group.files)
        row_bytes = 8 + int(node.schema().defaultSize())
        numbers = self._inner.numbers(len(read.slices), max(1, size * _NUMBER_BYTES // row_bytes))
        rows = numbers.mapInArrow(reading(read), asked)
        known = set(asked.names)
        items = [quote_name(one.name) if one.name in known else _refusal(one) for one in whole.fields]
        return self._inner.renamed(rows.selectExpr(*items)._jdf.queryExecution().analyzed(), node.output())


def _narrowed(whole: StructType, columns: frozenset[str]) -> StructType:
    """One column at least: rows without any cannot be counted."""
    fields = [one for one in whole.fields if one.name in columns]
    smallest = min(whole.fields, key=_width)
    return StructType(fields or [smallest])


def _width(field: StructField) -> int:
    kind = field.dataType.simpleString()
    return {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "bigint": 8, "double": 8}.get(
        kind, 99
    )


def _refusal(field: StructField) -> str:
    told = f"TS1532 column {field.name} was not read, since the query does not name it"
    return f"cast(raise_error({quote_string(told)}) as {_ddl(field)}) as {quote_name(field.name)}"


def _ddl(field: StructField) -> str:
    """A type that is nested and has odd names inside cannot be written as simpleString."""
    return StructType([StructField("c", field.dataType)]).toDDL().partition(" ")[2]


def _slim(file: StoredFile) -> StoredFile:
    """Without statistics, which have done their work in the driver."""
    return replace(file, meta=replace(file.meta, key_stats=EMPTY_STATS, value_stats=EMPTY_STATS))
