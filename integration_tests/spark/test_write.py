"""Writes by Spark tasks leave the same table and changelog as writes in the driver."""
# ruff: noqa: E501 - column lists read best on one line

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixData, FixRequest, StorageError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import new_schema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark import task_placement, write
from tablestore_engine.spark.session import session_scratch
from tablestore_engine.spark.task_placement import SMALL_BYTES
from tablestore_engine.spark.write import (
    InputSize,
    Route,
    collect_small,
    count_rows,
    plan_route,
    write_distributed,
)
from tablestore_engine.spark.write_job import WriteJob
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.rows.row_filter import EVERY_ROW
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.dynamic_buckets import expected_rows, find_assigner
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tablestore_engine.warehouse.write.incoming_rows import from_frame
from tests.doses import case_rows

_KEYED = {
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "num-levels": "20",
    "write-only": "true",
}


@dataclass(frozen=True)
class Twins:
    """Two tables of one schema: one is written by tasks, the other in the driver."""

    spark: SparkSession
    warehouse: str
    tasks: TableStore
    driver: TableStore

    def write(self, frame: DataFrame, mode: WriteMode, kind_column: str | None = None) -> None:
        """The same rows into both; then both must be equal."""
        rows = collect_small(frame)
        assert rows is not None
        kinds = None if kind_column is None else rows.column(kind_column).combine_chunks()
        plain = rows if kind_column is None else rows.drop_columns([kind_column])
        self.driver.write(WriteRequest(rows=plain, kinds=kinds, mode=mode))
        self.tasks.write_changes(
            lambda base, *_: self.changes(frame, mode, kind_column, base), WriteRequest(mode=mode)
        )
        assert _rows(self.tasks.read()) == _rows(self.driver.read())
        assert _changelog(self.tasks) == _changelog(self.driver)
        assert not self.tasks.verify()

    def changes(
        self, frame: DataFrame, mode: WriteMode, kind_column: str | None, base: Snapshot | None
    ) -> Sequence[BucketChange]:
        """One Spark job."""
        store = self.tasks
        states = {(one.partition_bytes, one.bucket): one for one in store.bucket_states(base)}
        job = WriteJob(
            store.fileio,
            store.context.layout,
            store.schema,
            states,
            picks=EVERY_ROW if mode.is_overwrite else None,
            kind_column=kind_column,
            assigner=find_assigner(
                store.context,
                base,
                store.schema,
                rewrites=mode.is_overwrite,
                rows_expected=expected_rows(count_rows(frame, store.schema.partition_keys), store.schema),
            ),
        )
        return write_distributed(
            frame, job, session_scratch(ScratchPlace(self.warehouse), SparkSettings("local[2]"))
        )


def _rows(table: pa.Table) -> list[Mapping[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def _changelog(store: TableStore) -> list[list[Mapping[str, Any]]]:
    """Per snapshot, sorted: tasks and driver may order buckets differently."""
    return [
        sorted(
            (row for batch in ChangelogReader(store.context).read(one) for row in batch.rows.to_pylist()),
            key=repr,
        )
        for one in store.snapshots.list_all()
    ]


def _twins(spark: SparkSession, warehouse: str, arrow: pa.Schema, **keys: Any) -> Twins:
    stores = []
    for side in ("tasks", "driver"):
        store = TableStore(LocalFileIO(warehouse), f"{warehouse}/w.db/{side}_{uuid.uuid4().hex}")
        assert store.context.schemas.claim(new_schema(arrow, **keys))
        stores.append(store)
    return Twins(spark, warehouse, *stores)


_COLUMNS = pa.schema([
    pa.field("id", pa.int64()), pa.field("dt", pa.date32()), pa.field("name", pa.string()),
    pa.field("amount", pa.decimal128(12, 2)), pa.field("at", pa.timestamp("us")), pa.field("seen", pa.timestamp("us", "UTC")),
    pa.field("tags", pa.list_(pa.string())), pa.field("ratio", pa.float64()),
])  # fmt: skip
_SELECT = (
    "id", "date_add(date'2026-01-01', cast(id % 3 as int)) as dt", "concat('n', id % 11) as name", "cast(id / 7 as decimal(12,2)) amount",
    "timestamp_ntz'2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) as at", "timestamp_micros(id * 1000001) as seen",
    "array(cast(id as string), null) as tags", "id / 8.0D as ratio",
)  # fmt: skip


def _frame(spark: SparkSession, first: int, last: int, *extra: str) -> DataFrame:
    return spark.range(first, last, 1, 3).selectExpr(*_SELECT, *extra)


@pytest.mark.parametrize(
    ("keys", "partitions", "bucket"),
    case_rows(
        [
            (["id"], [], "3"),
            (["dt", "id"], ["dt"], "3"),
            (["name", "id", "at"], [], "3"),
            (["dt", "id"], ["dt"], "-1"),
            (["ratio"], [], "3"),
            (["name", "id", "at"], [], "-1"),
        ],
        2,
    ),
    ids=["bigint", "partitioned", "text and time", "dynamic partitioned", "no native hash", "dynamic"],
)
def test_keyed(
    spark: SparkSession, warehouse: str, keys: list[str], partitions: list[str], bucket: str
) -> None:
    """Load, upsert with deletes, and overwrite as a difference: same rows, same changelog, valid table."""
    twins = _twins(
        spark,
        warehouse,
        _COLUMNS,
        primary_keys=keys,
        partition_keys=partitions,
        options={**_KEYED, "bucket": bucket, "dynamic-bucket.target-row-num": "40"},
    )
    twins.write(_frame(spark, 0, 400), WriteMode.UPSERT)
    kinds = "cast(if(id % 5 = 0, 3, 0) as tinyint) as _ROW_KIND"
    twins.write(_frame(spark, 300, 500, kinds), WriteMode.UPSERT, "_ROW_KIND")
    twins.write(_frame(spark, 350, 360), WriteMode.OVERWRITE_TABLE)
    assert twins.tasks.read().num_rows == 10


@pytest.mark.parametrize("partitions", [[], ["dt"]])
def test_append_only(spark: SparkSession, warehouse: str, partitions: list[str]) -> None:
    """Append twice (every row stays, also equal ones) and overwrite the partitions of the rows."""
    twins = _twins(spark, warehouse, _COLUMNS, partition_keys=partitions, options={"bucket": "-1"})
    twins.write(_frame(spark, 0, 100), WriteMode.APPEND)
    twins.write(_frame(spark, 50, 60), WriteMode.APPEND)
    assert twins.tasks.read().num_rows == 110
    twins.write(_frame(spark, 0, 1), WriteMode.OVERWRITE_PARTITIONS)
    assert twins.tasks.read().num_rows == (74 if partitions else 1)


def test_bad_rows_in_a_task(spark: SparkSession, warehouse: str) -> None:
    """An error of ours in a task arrives as itself, with code and reason, and nothing is committed."""
    twins = _twins(spark, warehouse, _COLUMNS, primary_keys=["id"], options={**_KEYED, "bucket": "2"})
    frame = _frame(spark, 0, 10).union(_frame(spark, 7, 8))
    request = WriteRequest(mode=WriteMode.UPSERT)
    with pytest.raises(FixData, match=r"TS1601 1 key occurs more than once (.|\n)*id = 7"):
        twins.tasks.write_changes(
            lambda base, *_: twins.changes(frame, WriteMode.UPSERT, None, base), request
        )
    bad = _frame(spark, 0, 10).selectExpr("if(id = 3, raise_error('boom'), id) as id", "* except (id)")
    with pytest.raises(FixRequest, match=r"TS1506 (.|\n)*boom"):
        twins.tasks.write_changes(lambda base, *_: twins.changes(bad, WriteMode.UPSERT, None, base), request)
    assert twins.tasks.latest() is None


@pytest.mark.parametrize(
    ("size", "groups", "route"),
    [
        (InputSize(1000, 1000, may_grow=False), 2, Route(on_driver=True, limit=False, tasks=0)),
        (InputSize(1 << 50, 1000, may_grow=True), 2, Route(on_driver=True, limit=True, tasks=2)),
        (
            InputSize(SMALL_BYTES + 1, SMALL_BYTES + 1, may_grow=False),
            None,
            Route(on_driver=False, limit=True, tasks=4),
        ),
        (InputSize(1 << 40, 1 << 31, may_grow=False), 100, Route(on_driver=False, limit=True, tasks=8)),
        (InputSize(1 << 40, 1 << 40, may_grow=False), 1, Route(on_driver=False, limit=True, tasks=1)),
    ],
)
def test_route(size: InputSize, groups: int | None, route: Route) -> None:
    """Small inputs go to the driver (guarded when rows may multiply), large ones to as many tasks as pay."""
    assert plan_route(size, cores=4, groups=groups) == route


def test_collect_small_guards_itself(spark: SparkSession, tmp_path: Path) -> None:
    """A small file whose rows multiply beyond the limit is not collected."""
    spark.range(2000).write.parquet(str(tmp_path / "p"))
    few = spark.read.parquet(str(tmp_path / "p"))
    collected = collect_small(few)
    assert collected is not None
    assert collected.num_rows == 2000
    assert collect_small(few.crossJoin(few.withColumnRenamed("id", "other"))) is None


def test_the_size_of_a_query_is_at_most_that_of_its_inputs(spark: SparkSession) -> None:
    """`bucket` = `auto` goes by it: the estimate of a join alone would always give the most buckets."""
    few = spark.range(1_000).withColumn("P", sf.col("id") % 3)
    rows = from_frame(few.crossJoin(few.withColumnsRenamed({"id": "a", "P": "b"})), None, {})
    assert rows.size_bytes() <= 2 * from_frame(few, None, {}).size_bytes() + 100
    assert 8_000 <= rows.size_bytes() < 100_000
    assert rows.count_groups(["p", "B"]) == 9


@pytest.mark.nightly  # by day kafka/test_sizes.py
def test_a_row_too_large_for_the_log_is_refused_by_its_task(
    spark: SparkSession, broker: BrokerInfo, tmp_path: Path
) -> None:
    """TS1739 before the commit, also where Spark tasks write: no snapshot, nothing is pending, and the name is free."""
    rows = [(1, "x"), (2, "y" * 2_000_000)]
    settings = SparkSettings("local[2]")
    with Engine(str(tmp_path), spark=settings, log={"kafka.bootstrap.servers": broker.url}) as engine:
        options = {"log.system": "kafka", "kafka.topic": f"large-{uuid.uuid4().hex}"}
        table = TableSpec(primary_key=("id",), options=options)
        # of an RDD nobody knows the size, so it is written by tasks
        frame = engine.spark.createDataFrame(
            engine.spark.sparkContext.parallelize(rows), "id bigint, text string"
        )
        assert collect_small(frame) is None
        with pytest.raises(FixData, match="TS1739") as caught:
            engine.write("demo.large", frame, WriteSpec(table=table))
        assert '{"id":2}' in str(caught.value)
        report = engine.write("demo.large", frame.where("id = 1"), WriteSpec(table=table))
        assert report.snapshot_id == 1
        assert engine.count_log_messages("demo.large") == 1


def test_a_distributed_write_does_not_compare_rows_without_a_key(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boundary of decision 0014: the same rows again commit nothing while the driver holds them; written by tasks
    every file is new, in a snapshot that tells nobody of a change. A keyed table is compared on both sides of it.
    """
    frame = spark.range(500).selectExpr("id", "id % 7 as v")
    plain = WriteSpec(mode=WriteMode.OVERWRITE_TABLE)
    keyed = WriteSpec(table=TableSpec(primary_key=("id",)), mode=WriteMode.OVERWRITE_TABLE)
    with Engine(str(tmp_path)) as engine:
        for name, spec in (("d.plain", plain), ("d.keyed", keyed)):
            engine.write(name, frame, spec)
            engine.write(name, frame, spec)
            assert engine.table(name).latest_snapshot_id() == 1
        files = {file.path for file in engine.table("d.plain").scan().plan().files}
        monkeypatch.setattr(write, "SMALL_ROWS", 100)
        monkeypatch.setattr(task_placement, "SMALL_BYTES", 0)
        engine.write("d.keyed", frame, keyed)
        assert engine.table("d.keyed").latest_snapshot_id() == 1
        engine.write("d.plain", frame, plain)
        table = engine.table("d.plain")
        assert table.latest_snapshot_id() == 2
        assert not files & {file.path for file in table.scan().plan().files}
        assert table.changes(1).num_rows == 0
        assert table.scan().to_arrow().num_rows == 500
        assert table.verify() == ()


def test_a_failed_task_leaves_no_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition whose folder cannot be made fails one task: TS1262, and what the others wrote is deleted."""
    monkeypatch.setattr(write, "SMALL_ROWS", 1)
    monkeypatch.setattr(task_placement, "SMALL_BYTES", 0)
    spec = WriteSpec(table=TableSpec(primary_key=("id", "day"), partition_by=("day",)))
    with Engine(str(tmp_path)) as engine:
        engine.write("d.t", spark.range(4).selectExpr("id", "concat('d', id) as day"), spec)
        files = set(tmp_path.rglob("*.parquet"))
        bad = spark.range(9).selectExpr("id", "if(id = 5, repeat('x', 300), concat('d', id)) as day")
        with pytest.raises(StorageError, match="TS1262"):
            engine.write("d.t", bad, spec)
        assert set(tmp_path.rglob("*.parquet")) == files
        assert engine.table("d.t").scan().to_arrow().num_rows == 4
