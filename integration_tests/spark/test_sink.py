"""`df.writeStream.format("tablestore")` and `df.write` on a real Spark: one commit for each batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from integration_tests.spark.streams import KEYED, Shop
from tablestore_engine.api import TableSpec, TablestoreSource, WriteSpec, explain_failure
from tests.doses import case_rows

ALL = {"read.changelog": "true"}
EVENTS = WriteSpec(TableSpec())


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    """With an empty target demo.copy, keyed like demo.t."""
    spark.dataSource.register(TablestoreSource)
    shop = Shop(spark, tmp_path)
    shop.put((1, "a"), (2, "b"))
    shop.engine.create_table(
        "demo.copy",
        shop.table.schema.arrow_schema(),
        primary_key=KEYED.table.primary_key,
        partition_by=KEYED.table.partition_by,
        options=KEYED.table.options,
    )
    return shop


def run_into(
    shop: Shop, frame: DataFrame, *, mode: str = "append", target: str = "demo.copy", **options: str
) -> str:
    """One availableNow run; the query's id."""
    writer = frame.writeStream.format("tablestore").outputMode(mode).options(**options)
    writer = writer.option("warehouse", shop.engine.warehouse).option("table", target)
    query = writer.option("checkpointLocation", shop.checkpoint(target)).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return str(query.id)


def rows_of(shop: Shop, name: str = "demo.copy") -> list[tuple[int, str]]:
    """(id, v)."""
    return sorted(
        (row["id"], row["v"])
        for row in shop.engine.table(name).scan(columns=["id", "v"]).to_arrow().to_pylist()
    )


@pytest.mark.nightly  # by day a batch that comes again, and test_source.py
def test_a_table_is_followed_into_another(shop: Shop) -> None:
    """Inserts, updates and deletes arrive, a commit for each batch under the query's name; nothing new, no snapshot."""
    frame = shop.stream(**ALL, maxSnapshotsPerTrigger="1", **{"scan.mode": "earliest"}).drop("_snapshot_id")
    query = run_into(shop, frame)
    shop.put((2, "c"), (3, "d"))
    empty = shop.table.schema.arrow_schema().empty_table().select(["id"])
    shop.engine.write(
        "demo.t",
        pa.table({"id": [1], "_ROW_KIND": pa.array([3], pa.int8())}),
        WriteSpec(KEYED.table, missing_columns="null"),
    )
    assert empty.num_rows == 0
    run_into(shop, frame)
    run_into(shop, frame)
    copy = shop.engine.table("demo.copy")
    assert rows_of(shop) == rows_of(shop, "demo.t") == [(2, "c"), (3, "d")]
    assert [(one.commit_user, one.commit_identifier) for one in copy.snapshots()] == [
        (query, n) for n in range(3)
    ]
    assert copy.verify() == ()
    assert not list((shop.folder / "warehouse/.tablestore/staged").rglob("*.arrow"))


@pytest.mark.nightly  # by day the other queries here; spark/test_threads.py
def test_any_thread_starts_a_query(shop: Shop) -> None:
    """Also one that has asked Spark for nothing before: the engine's session is its active one."""
    with ThreadPoolExecutor(1) as pool:
        frame = shop.stream(**ALL).drop("_snapshot_id")
        pool.submit(lambda: run_into(shop, frame) if shop.engine.spark else "").result(120)
    assert rows_of(shop) == [(1, "a"), (2, "b")]


def test_a_batch_that_comes_again_is_no_second_commit(shop: Shop) -> None:
    """The commit file of the last batch is lost, as by a crash behind our commit: Spark runs the batch again."""
    frame = shop.stream(**ALL).drop("_snapshot_id")
    run_into(shop, frame)
    commits = Path(shop.checkpoint("demo.copy")) / "commits"
    for path in commits.glob("*0*"):
        path.unlink()
    for path in commits.glob(".*0*"):
        path.unlink()
    shop.put((3, "c"))
    run_into(shop, frame)
    assert [one.commit_identifier for one in shop.engine.table("demo.copy").snapshots()] == [0, 1]
    assert rows_of(shop) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.nightly  # by day a batch that overwrites; tests/unit/datasource
def test_all_rows_of_a_complete_query_are_replaced(shop: Shop) -> None:
    """outputMode("complete"): the table is the result of the query, as a difference."""
    shop.put((7, "gone"), name="demo.copy")
    frame = (
        shop.stream(schema="id bigint, v string", rowKinds="upserts")
        .groupBy("id")
        .agg(sf.max("v").alias("v"))
    )
    run_into(shop, frame, mode="complete", missingColumns="null")
    assert rows_of(shop) == [(1, "a"), (2, "b")]
    shop.put((2, "c"), (5, "e"))
    run_into(shop, frame, mode="complete", missingColumns="null")
    assert rows_of(shop) == [(1, "a"), (2, "c"), (5, "e")]


@pytest.mark.parametrize(
    ("expression", "options", "code"),
    case_rows(
        [
            ("id, v, at, 'x' as _row_kind", {}, "TS1452"),
            ("id, v, at, 1 as more", {}, "TS1062"),
            ("cast(null as bigint) as id, v, at", {}, "TS1602"),
            ("id, v, at", {"tabel": "x"}, "TS1440"),
            ("id, v, at", {"overwrite": "all"}, "TS1442"),
            ("id, v, at", {"onSchemaChange": "perhaps"}, "TS1025"),
        ],
        1,
    ),
)
def test_what_is_wrong_is_said_and_nothing_is_committed(
    shop: Shop, expression: str, options: dict[str, str], code: str
) -> None:
    """Wrong kinds, columns, keys and options, each by its code."""
    frame = shop.stream(schema="id bigint, v string, at timestamp").selectExpr(*expression.split(", "))
    with pytest.raises(PySparkException) as error:
        run_into(shop, frame, **options)
    assert explain_failure(error.value).code == code or str(explain_failure(error.value)) == code
    assert shop.engine.table("demo.copy").latest_snapshot_id() is None


@pytest.mark.nightly  # by day what is wrong is said, below
def test_a_table_that_is_not_there_is_not_made(shop: Shop) -> None:
    """TS1451: options cannot say what a table is."""
    with pytest.raises(PySparkException) as error:
        run_into(shop, shop.stream(schema="id bigint"), target="demo.nothing")
    assert explain_failure(error.value).code == "TS1451"


def test_batches_append_and_overwrite(shop: Shop) -> None:
    """df.write: upserts by key, all rows replaced, or those of the partitions that come."""
    frame = shop.spark.createDataFrame([(1, "x"), (9, "y")], "id bigint, v string")

    def write(mode: str, target: str = "demo.copy", **options: str) -> None:
        writer = (
            frame.write.format("tablestore")
            .option("warehouse", shop.engine.warehouse)
            .option("table", target)
        )
        writer.options(**options).mode(mode).save()

    write("append", missingColumns="null")
    write("append", missingColumns="null")
    assert rows_of(shop) == [(1, "x"), (9, "y")]
    frame = shop.spark.createDataFrame([(2, "z")], "id bigint, v string")
    write("overwrite", missingColumns="null")
    assert rows_of(shop) == [(2, "z")]
    parts = WriteSpec(TableSpec(partition_by=("v",)))
    shop.engine.write("demo.parts", pa.table({"id": [1, 2], "v": ["z", "q"]}), parts)
    write("overwrite", "demo.parts", overwrite="partitions")
    assert rows_of(shop, "demo.parts") == [(2, "q"), (2, "z")]


@pytest.mark.nightly  # by day tests/unit/datasource/test_staged_write.py; spark/test_write.py
@pytest.mark.parametrize("keys", [("id",), ()])
def test_many_rows_are_written_as_engine_write_would(shop: Shop, keys: tuple[str, ...]) -> None:
    """More than come to memory at once: the same rows, in as many commits."""
    spec = WriteSpec(TableSpec(primary_key=keys, options={"bucket": "4"} if keys else {}))
    frame = shop.spark.range(0, 1_200_000, 1, 3).selectExpr("id", "concat('v', id % 7) as v")
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    shop.engine.create_table(
        "demo.many",
        schema,
        primary_key=spec.table.primary_key,
        partition_by=spec.table.partition_by,
        options=spec.table.options,
    )
    address = {"warehouse": shop.engine.warehouse, "table": "demo.many"}
    frame.write.format("tablestore").options(**address).mode("append").save()
    table = shop.engine.table("demo.many")
    rows = table.scan().to_arrow()
    assert table.latest_snapshot_id() == 1
    assert rows.num_rows == 1_200_000
    assert sum(rows.column("id").to_pylist()) == sum(range(1_200_000))
    assert table.verify() == ()
