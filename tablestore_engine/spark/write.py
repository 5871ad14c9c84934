"""DataFrame -> changed buckets: small inputs come to the driver as Arrow, large ones are written by Spark tasks.

Steps      files without a query: plain_scan. Some million rows of a local session: spooled_rows. More: bucket column
           (native) → repartition, so that a bucket is in one task → run_job in Python → outcomes back to the driver
INVARIANT  all rows of one (partition, bucket) are in one task, so no bucket gets two changes.
INVARIANT  append-only tables are not shuffled: every task writes files of its own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.functions import arrow_udf

from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark import ship_package, spark_errors, task_placement, write_job
from tablestore_engine.spark.bucket_expression import bucket_query, is_native
from tablestore_engine.spark.collected_rows import to_arrow
from tablestore_engine.spark.plain_scan import read_plain
from tablestore_engine.spark.spooled_rows import SPOOLED_BYTES_MAX, shares_disk, spool
from tablestore_engine.spark.task_attempts import may_speculate
from tablestore_engine.spark.task_outcomes import BUCKET_COLUMN, discard, gather
from tablestore_engine.spark.write_job import WriteJob
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.rows.bucket_assigner import BucketAssigner
from tablestore_engine.store.table_traits import TableTraits

if TYPE_CHECKING:
    from tablestore_engine.store.write.key_moves import KeyMoves

_ADDED_TYPES = (st.ByteType(), st.IntegerType(), st.BinaryType())
TASK_COLUMN = "__ts_task"
SMALL_ROWS = 1_000_000
_TASK_BYTES = 256 << 20
_SPOOLED_FACTOR = 4  # files of so many small sizes have rows of about spooled_rows.SPOOLED_BYTES_MAX
_TASKS_PER_CORE_MAX = 4
_PLAIN = re.compile(r"(?:Project [^\n]*\n\+- )?Relation [^\n]* parquet\n?")


@dataclass(frozen=True)
class InputSize:
    """What the optimizer says: bytes of the result (a guess from above) and of all leaves; can rows multiply.

    `may_be_plain`: it may do no more than plain_scan.
    """

    result_bytes: int
    leaf_bytes: int
    may_grow: bool
    may_be_plain: bool = False


@dataclass(frozen=True)
class Route:
    """`on_driver`; `limit`: whether the driver must guard itself by a limit; else `tasks` Spark tasks."""

    on_driver: bool
    limit: bool
    tasks: int


def plan_route(size: InputSize, *, cores: int, groups: int | None) -> Route:
    """Driver for small inputs; else at least one task per core, more for much data, never more than `groups`."""
    if size.result_bytes <= task_placement.SMALL_BYTES and not size.may_grow:
        return Route(on_driver=True, limit=False, tasks=0)
    tasks = min(max(cores, -(-size.leaf_bytes // _TASK_BYTES)), cores * _TASKS_PER_CORE_MAX)
    if groups is not None:
        tasks = max(1, min(tasks, groups))
    return Route(on_driver=size.leaf_bytes <= task_placement.SMALL_BYTES, limit=True, tasks=tasks)


def may_spool(size: InputSize) -> bool:
    """Whether the rows most likely fit: a query whose rows are too many is run once more."""
    return not size.may_grow and size.leaf_bytes <= _SPOOLED_FACTOR * task_placement.SMALL_BYTES


def input_size(frame: DataFrame) -> InputSize:
    """Statistics of the optimized plan; nothing runs."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    total = sum(int(str(leaves.apply(i).stats().sizeInBytes())) for i in range(leaves.size()))
    text = plan.toString()
    grows = any(word in text for word in ("Generate ", "Join ", "Expand "))
    is_plain = _PLAIN.fullmatch(text) is not None
    return InputSize(int(str(plan.stats().sizeInBytes())), total, grows, is_plain)


def estimated_bytes(frame: DataFrame) -> int:
    """Of the result, or of what it reads: a join's estimate is the product of its sides."""
    try:
        size = input_size(frame)
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None
    return min(size.result_bytes, size.leaf_bytes)


def collect_small(frame: DataFrame, *, spools: bool = False) -> pa.Table | None:
    """All rows, when there are at most about a million; None means: write_distributed.

    `spools`: some million rows of a local session too, since their tasks would have to exchange them by bucket.
    """
    from tablestore_engine.spark.single_task import in_one_task  # noqa: PLC0415 - it needs Spark (decision 0137)

    try:
        single = in_one_task(frame, has_ties=True)
        if single is not frame:
            return _at_most(to_arrow(single.limit(SMALL_ROWS + 1)))
        size = input_size(frame)
        route = plan_route(size, cores=1, groups=None)
        is_local = shares_disk(frame.sparkSession.sparkContext)
        spools = spools and may_spool(size) and is_local
        if is_local and size.may_be_plain and (route.on_driver or spools):
            found = read_plain(frame, SPOOLED_BYTES_MAX)
            if found is not None:
                return found if spools or not route.limit else _at_most(found)
        if not route.on_driver:
            return spool(frame) if spools else None
        if not route.limit:
            return to_arrow(frame)
        return _at_most(to_arrow(frame.limit(SMALL_ROWS + 1)))
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None


def _at_most(rows: pa.Table) -> pa.Table | None:
    return rows if rows.num_rows <= SMALL_ROWS else None


def write_distributed(frame: DataFrame, job: WriteJob, scratch: Path) -> list[BucketChange]:
    """One Spark job over the rows; the changes are not committed. A lost race runs it again on a newer base."""
    session = frame.sparkSession
    ship_package.ship(session, scratch)
    if may_speculate(session.sparkContext):
        job = replace(job, early=None)
    try:
        if job.places is not None:
            frame, job = _placed(frame, job.places), replace(job, kind_column=ROW_KIND_COLUMN)
        routed = _routed(frame, job) if job.has_buckets else frame
        task = functools.partial(_run_task, job)
        rows = routed.mapInArrow(task, write_job.OUTCOME_DDL).collect()
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None
    gathered = gather(enumerate(bytes(row["outcome"]) for row in rows))
    if gathered.failure is not None:
        discard(job.fileio, job.layout, job.schema, gathered.changes.values())
    return gathered.in_order(len(rows))


def _run_task(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in the worker; shipped by name, so the worker imports our package."""
    return write_job.run_job(job, batches)


def _routed(frame: DataFrame, job: WriteJob) -> DataFrame:
    """Rows with their bucket, each bucket in one Spark partition, neighbours in different ones."""
    schema = job.schema
    with_bucket = frame
    if job.assigner is not None:
        with_bucket = _with_assigned(frame, job.assigner)
    elif schema.bucket_count > 0:
        with_bucket = _with_bucket(frame.drop(BUCKET_COLUMN), schema)
    partitions = list(schema.partition_keys)
    groups = None if partitions or job.assigner is not None else schema.bucket_count
    cores = frame.sparkSession.sparkContext.defaultParallelism
    tasks = plan_route(replace(input_size(frame), may_grow=True), cores=cores, groups=groups).tasks
    spread: Column = sf.col(BUCKET_COLUMN).cast("bigint")
    if partitions:
        spread = spread + sf.hash(*(sf.col(_quoted(name)) for name in partitions)).cast("bigint")
    spread = sf.coalesce(spread, sf.lit(0))  # a failure of the pass that placed the rows has no key
    numbered = with_bucket.withColumn(TASK_COLUMN, sf.pmod(spread, sf.lit(tasks)).cast("int"))
    return numbered.repartitionById(tasks, TASK_COLUMN).drop(TASK_COLUMN)


def _placed(frame: DataFrame, moves: KeyMoves) -> DataFrame:
    """The rows where they belong whose keys may be stored in other partitions; all rows of a key are in one task."""
    from tablestore_engine.spark.placed_rows import ADDED_COLUMNS  # noqa: PLC0415 - few tables need it (decision 0137)

    cores = frame.sparkSession.sparkContext.defaultParallelism
    tasks = plan_route(replace(input_size(frame), may_grow=True), cores=cores, groups=None).tasks
    keys = [sf.col(_quoted(name)) for name in moves.schema.primary_keys]
    names = [name for name in frame.columns if name != ROW_KIND_COLUMN]
    struct = st.StructType([st.StructField(one, frame.schema[one].dataType) for one in names])
    for name, type_ in zip((name for name, _ in ADDED_COLUMNS), _ADDED_TYPES, strict=True):
        struct = struct.add(name, type_)
    return frame.repartition(tasks, *keys).mapInArrow(functools.partial(_run_places, moves), struct)


def _run_places(moves: KeyMoves, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in the worker, as _run_task."""
    from tablestore_engine.spark.placed_rows import run_places  # noqa: PLC0415 - few tables need it (decision 0137)

    return run_places(moves, batches)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _with_bucket(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """The bucket as a native expression; an Arrow function for the key types that have none."""
    keys = [(field.name, field.type) for field in schema.fields_of(schema.bucket_keys)]
    types = [type_ for _, type_ in keys]
    function = TableTraits(schema).bucket_function
    if is_native(types) and function in ("default", "mod"):
        text = bucket_query("{rows}", keys, schema.bucket_count, bucket=BUCKET_COLUMN, function=function)
        return frame.sparkSession.sql(text, rows=frame)
    compute = _bucket_function(types, schema.bucket_count, function)
    return frame.withColumn(BUCKET_COLUMN, compute(*(sf.col(_quoted(name)) for name, _ in keys)))


def _with_assigned(frame: DataFrame, assigner: BucketAssigner) -> DataFrame:
    """The bucket by the hash index, in the tasks that read the rows."""
    schema = assigner.schema
    names = [*schema.partition_keys, *schema.trimmed_primary_keys]
    target = pa.schema([schema.arrow_schema().field(name).with_nullable(True) for name in names])

    def compute(*columns: pa.Array) -> pa.Array:
        rows = pa.table(list(columns), names=names).cast(target)
        return pa.array(assigner.assign(rows).buckets, pa.int32())

    assign: Callable[..., Column] = arrow_udf(compute, "int")  # type: ignore[call-overload] # any number of columns
    return frame.withColumn(BUCKET_COLUMN, assign(*(sf.col(_quoted(name)) for name in names)))


def count_rows(frame: DataFrame, columns: Sequence[str]) -> pa.Table:
    """These columns, each combination once, and the number of its rows."""
    try:
        return to_arrow(frame.groupBy(*(sf.col(_quoted(name)) for name in columns)).count())
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None


def _bucket_function(types: Sequence[DataType], count: int, function: str) -> Callable[..., Column]:
    def compute(*columns: pa.Array) -> pa.Array:
        return pa.array(assign_buckets(list(columns), list(types), count, function=function), pa.int32())

    made: Callable[..., Column] = arrow_udf(compute, "int")  # type: ignore[call-overload] # any number of columns
    return made
