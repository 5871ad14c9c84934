"""Rows of a query that only picks columns of Parquet files on this machine: Arrow reads them, Spark only plans.

CHANGE     which queries are read without a Spark job
Steps      optimized plan: one relation, at most columns picked and renamed → Spark's own list of file parts, in its
           order → row groups of each part by Arrow → the types that Spark would have given
INVARIANT  rows and their order are those of the Spark job. What could differ is left to Spark: other types than those
           of the file, dates of the Julian calendar, columns that a file lacks, and files that cannot be read.
WHY        from Parquet through rows of Java and a socket to Python takes four times the processor time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import AtomicType, TimestampType

Jvm = Any  # an object of the JVM
_BATCH_ROWS, _BATCH_BYTES = 1 << 20, 128 << 20  # memory of many small batches costs as much as decoding them
_PARTS_MAX = 256  # a call to the JVM for each, and more
_OPTIONS = {"path", "paths", "serialization.format"}  # any other one may change what is read
# Settings of a session under which Spark reads other rows than the file has, and their only value here
_SETTINGS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}
_JULIAN = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True)
class _FilePart:
    """What a Spark task reads of a file."""

    path: str
    start: int
    length: int
    file_size: int


def read_plain(frame: DataFrame, bytes_max: int) -> pa.Table | None:
    """All rows; None: the query does more, the rows have more than `bytes_max`, or Spark has to look at the files.

    REQUIRES a session whose tasks read the files of this machine.
    """
    try:
        names = _picked(frame)
        parts = None if names is None else _parts(frame)
    except (Py4JError, PySparkException):  # another Spark has other names; an error of the query is its own
        return None
    if names is None or parts is None:
        return None
    try:
        return _read(parts, names, _wanted(frame), bytes_max)
    except (pa.ArrowException, OSError):
        return None


def _wanted(frame: DataFrame) -> pa.Schema:
    """As DataFrame.toArrow has it."""
    moment = pa.timestamp("us", "UTC")
    fields = [(one, isinstance(one.dataType, TimestampType)) for one in frame.schema.fields]
    types = [moment if is_moment else to_arrow_type(one.dataType) for one, is_moment in fields]
    return pa.schema(
        [pa.field(one.name, type_, one.nullable) for (one, _), type_ in zip(fields, types, strict=True)]
    )


def _picked(frame: DataFrame) -> list[str] | None:
    """Columns of the files, in the order of the frame's."""
    schema, session = frame.schema, frame.sparkSession
    if not schema.fields or not all(isinstance(field.dataType, AtomicType) for field in schema.fields):
        return None
    plan = frame._jdf.queryExecution().optimizedPlan()
    kind = _class_name(plan)
    relation = plan.child() if kind == "Project" else plan
    if _class_name(relation) != "LogicalRelation" or relation.isStreaming():
        return None
    if not _is_plain_parquet(relation.relation()):
        return None
    if any(session.conf.get(name) != value for name, value in _SETTINGS.items()):
        return None
    found = json.loads(plan.toJSON())
    by_id = {one["exprId"]["id"]: one["name"] for (one,) in found[-1]["output"]}
    items = found[0]["projectList"] if kind == "Project" else found[-1]["output"]
    return _columns(items, by_id)


def _columns(items: Sequence[Sequence[Mapping[str, Any]]], by_id: Mapping[int, str]) -> list[str] | None:
    """Each item is a column, or a column with another name."""
    names = []
    for item in items:
        kinds = [one["class"].rpartition(".")[2] for one in item]
        if kinds not in (["AttributeReference"], ["Alias", "AttributeReference"]):
            return None
        names.append(by_id[item[-1]["exprId"]["id"]])
    return names


def _is_plain_parquet(relation: Jvm) -> bool:
    if _class_name(relation) != "HadoopFsRelation":
        return False
    if _class_name(relation.fileFormat()) != "ParquetFileFormat":
        return False
    options = relation.options().keySet().mkString("\n").split("\n")
    is_whole = relation.partitionSchema().isEmpty() and relation.bucketSpec().isEmpty()
    return is_whole and {one for one in options if one} <= _OPTIONS


def _parts(frame: DataFrame) -> list[_FilePart] | None:
    """What the tasks would read, in the order of the tasks."""
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    if _class_name(leaf) != "FileSourceScanExec":
        return None
    rdd = leaf.inputRDD()
    if _class_name(rdd) != "FileScanRDD":
        return None
    tasks = rdd.filePartitions()
    parts: list[_FilePart] = []
    for number in range(tasks.size()):
        for file in tasks.apply(number).files():
            place = file.toPath().toUri()
            if place.getScheme() != "file" or len(parts) == _PARTS_MAX:
                return None
            parts.append(_FilePart(place.getPath(), file.start(), file.length(), file.fileSize()))
    return parts


def _class_name(node: Jvm) -> str:
    return str(node.getClass().getSimpleName())


# ---- without the JVM ---------------------------------------------------------------------------------------


def _read(
    parts: Sequence[_FilePart], names: Sequence[str], wanted: pa.Schema, bytes_max: int
) -> pa.Table | None:
    batches: list[pa.Table] = []
    size = 0
    for path, of_file in groupby(parts, key=attrgetter("path")):
        # no memory map: a file of others that is cut short meanwhile would end this process
        with pq.ParquetFile(path, memory_map=False, page_checksum_verification=True) as file:
            ranges = list(of_file)
            if Path(path).stat().st_size != ranges[0].file_size or not _is_as_wanted(file, names, wanted):
                return None
            groups = [number for part in ranges for number in _groups_of(file.metadata, part)]
            columns = list(dict.fromkeys(names))
            for batch in file.iter_batches(_batch_rows(file.metadata), groups, columns, use_threads=True):
                table = pa.Table.from_batches([batch]).select(names)
                size += table.nbytes
                if size > bytes_max:
                    return None
                batches.append(table.rename_columns(wanted.names).cast(wanted))
    return pa.concat_tables(batches) if batches else None


def _is_as_wanted(file: pq.ParquetFile, names: Sequence[str], wanted: pa.Schema) -> bool:
    """Whether each column is in the file under this very name, with the type that Spark reads."""
    schema, have = file.schema_arrow, [name.lower() for name in file.schema_arrow.names]
    for name, field in zip(names, wanted, strict=True):
        if name not in schema.names or have.count(name.lower()) != 1 or "." in name:
            return False
        if not _is_same(schema.field(name).type, field.type):
            return False
    has_times = any(pa.types.is_temporal(field.type) for field in wanted)
    return not (has_times and _may_be_julian(file.metadata.metadata or {}))


def _is_same(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        return found.unit == wanted.unit and (found.tz is None) == (wanted.tz is None)
    if pa.types.is_large_string(found) or pa.types.is_large_binary(found):
        found = pa.string() if pa.types.is_large_string(found) else pa.binary()
    return bool(found.equals(wanted)) and not pa.types.is_nested(wanted)


def _may_be_julian(facts: Mapping[bytes, bytes]) -> bool:
    """Of a file that Spark 2 wrote, or a later one as Spark 2 did."""
    version = facts.get(b"org.apache.spark.version", b"3")
    return any(name in facts for name in _JULIAN) or version.split(b".")[0] in (b"1", b"2")


def _batch_rows(metadata: pq.FileMetaData) -> int:
    """Fewer of long rows: those of a batch are in memory before their bytes are counted."""
    size = sum(int(metadata.row_group(number).total_byte_size) for number in range(metadata.num_row_groups))
    return min(_BATCH_ROWS, 1 + _BATCH_BYTES * int(metadata.num_rows) // max(size, 1))


def _groups_of(metadata: pq.FileMetaData, part: _FilePart) -> list[int]:
    """Row groups whose middle is in the part: Parquet's rule for readers that share a file."""
    found = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(at) for at in range(group.num_columns)]
        first = chunks[0]
        begin = min(one for one in (first.dictionary_page_offset, first.data_page_offset) if one)
        middle = begin + sum(chunk.total_compressed_size for chunk in chunks) // 2
        if part.start <= middle < part.start + part.length:
            found.append(number)
    return found
