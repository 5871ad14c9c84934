"""`spark.readStream.format("tablestore")` on a real Spark: modes, limits, state, errors that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from integration_tests.spark.streams import Shop, run_once
from tablestore_engine.api import TableSpec, TablestoreSource, WriteSpec, explain_failure
from tests.doses import case_rows
from tests.unit.store.expiry_world import newest

ALL = {"read.changelog": "true"}
EVENTS = WriteSpec(TableSpec())


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    """The source registered as a foreign session does."""
    spark.dataSource.register(TablestoreSource)
    return Shop(spark, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"scan.mode": "latest-full"},
        *(
            pytest.param(one, marks=pytest.mark.nightly)
            for one in (
                {"scan.mode": "from-snapshot", "scan.snapshot-id": "2"},
                {"scan.mode": "latest"},
                {"scan.mode": "earliest"},
                {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"},
                {"scan.mode": "from-timestamp", "scan.timestamp-millis": "1"},
                {"scan.mode": "compacted-full"},
            )
        ),
    ],
    ids=lambda one: one["scan.mode"],
)
def test_a_mode_gives_what_the_reader_of_the_table_gives(shop: Shop, options: dict[str, str]) -> None:
    """The same rows in one run, and in the next one what has changed, batch after batch."""
    shop.put((1, "a"), (2, "b"))
    shop.put((2, "c"), (3, "d"))
    shop.table.compact(full=True)
    stream = shop.table.stream(options=options, until="now")
    expected = sorted((tuple(row.values()) for batch in stream for row in batch.to_pylist()), key=repr)
    frame = shop.stream(**ALL, **options)
    first = run_once(frame, shop.checkpoint())
    assert [(row[0], row[1], *row[3:]) for _, rows in first for row in rows] == [
        (row[0], row[1], *row[3:]) for row in expected
    ]
    shop.put((1, "z"))
    following = shop.table.latest_snapshot_id()
    assert [(row[0], row[1], *row[3:]) for _, rows in run_once(frame, shop.checkpoint()) for row in rows] == [
        (1, "a", "-U", following),
        (1, "z", "+U", following),
    ]
    assert run_once(frame, shop.checkpoint()) == []


@pytest.mark.nightly  # by day tests/unit/datasource; modes above
def test_limits_asked_columns_and_words_of_spark(shop: Shop) -> None:
    """A snapshot for each batch, two columns of five, and startingVersion as others say it."""
    for number in range(1, 4):
        shop.put((number, "a"))
    frame = shop.stream(schema="_row_kind string, id bigint", startingVersion="2", maxSnapshotsPerTrigger="1")
    assert run_once(frame, shop.checkpoint()) == [(0, [("+I", 2)]), (1, [("+I", 3)])]


@pytest.mark.nightly  # by day tests/laws/test_source_laws.py: consumers
def test_two_queries_do_not_meet(shop: Shop) -> None:
    """Each has its own checkpoint and its own consumer, at the same time in one session."""
    shop.put((1, "a"))
    frames = [shop.stream(**ALL, **{"consumer-id": name}) for name in ("one", "two")]
    rows = []
    for place, frame in enumerate(frames):
        writer = frame.writeStream.option("checkpointLocation", shop.checkpoint(f"c{place}"))
        rows.append(
            writer.format("memory").queryName(f"{shop.folder.name}_{place}".replace("-", "_")).start()
        )
    try:
        for query in rows:
            query.processAllAvailable()
        shop.put((2, "b"))
        for query in rows:
            query.processAllAvailable()
            assert sorted(row[0] for row in shop.spark.table(query.name).collect()) == [1, 2]
    finally:
        for query in rows:
            query.stop()
    assert [one.name for one in shop.table.consumers()] == ["one", "two"]


@pytest.mark.nightly  # by day adapter/test_stateful_streaming.py
def test_windows_with_a_watermark(shop: Shop) -> None:
    """Event time from the table: a window is told when the watermark has passed it, over two runs of the query."""
    shop.put((1, "a"), (2, "a"), minute=60, spec=EVENTS)
    frame = shop.stream(schema="id bigint, v string, at timestamp").withWatermark("at", "1 minute")
    counted = frame.groupBy(sf.window("at", "5 minutes"), "v").count().select("v", "count")
    assert [rows for _, rows in run_once(counted, shop.checkpoint())][-1] == []
    shop.put((3, "a"), minute=62, spec=EVENTS)
    shop.put((4, "a"), minute=90, spec=EVENTS)
    told = [row for _, rows in run_once(counted, shop.checkpoint()) for row in rows]
    assert told == [("a", 3)]


@pytest.mark.nightly  # by day adapter/test_stateful_streaming.py
def test_joins_and_duplicates(shop: Shop) -> None:
    """Stream with table, stream with stream within a time, and rows that come twice."""
    shop.put((1, "a"), (2, "b"), name="demo.names")
    shop.put((1, "x"), (3, "x"), spec=EVENTS)
    shop.put((1, "x"), spec=EVENTS)
    asked = "id bigint, v string, at timestamp"
    events = shop.stream(schema=asked).withWatermark("at", "10 minutes")
    static = shop.engine.table("demo.names").scan(columns=["id", "v"]).to_arrow()
    names = shop.spark.createDataFrame(static).withColumnRenamed("v", "name")
    joined = events.join(names, "id").select("id", "name")
    assert [rows for _, rows in run_once(joined, shop.checkpoint("static"))] == [[(1, "a"), (1, "a")]]
    single = events.dropDuplicates(["id", "at"]).select("id")
    assert [row for _, rows in run_once(single, shop.checkpoint("single")) for row in rows] == [(1,), (3,)]
    other = shop.stream("demo.names", schema=asked, rowKinds="upserts").withWatermark("at", "10 minutes")
    both = events.alias("e").join(
        other.alias("o"), sf.expr("e.id = o.id and o.at between e.at and e.at + interval 1 minute")
    )
    found = run_once(both.select("e.id", "o.v"), shop.checkpoint("both"))
    assert [row for _, rows in found for row in rows] == [(1, "a"), (1, "a")]


@pytest.mark.parametrize(
    ("options", "code"),
    case_rows(
        [
            ({"scna.mode": "latest"}, "TS1440"),
            ({"maxRowsPerTrigger": "many"}, "TS1442"),
            ({"scan.mode": "from-snapshot", "scan.snapshot-id": "9"}, "TS1332"),
        ],
        1,
    ),
)
def test_an_error_of_ours_can_be_read(shop: Shop, options: dict[str, str], code: str) -> None:
    """It comes out of Spark's traceback with its code and its three parts."""
    shop.put((1, "a"))
    with pytest.raises(PySparkException) as error:
        run_once(shop.stream(**ALL, **options), shop.checkpoint())
    found = explain_failure(error.value)
    assert found.code == code
    assert found.why
    assert found.fix


def test_a_missing_table_and_an_unsaid_one_are_refused_when_they_are_loaded(shop: Shop) -> None:
    """Before any query: TS1414, TS1441."""
    for options, code in (
        ({"warehouse": str(shop.folder), "table": "demo.nothing"}, "TS1414"),
        ({"warehouse": "warehouse", "table": "demo.t"}, "TS1441"),
        ({"table": "demo.t"}, "TS1441"),
    ):
        with pytest.raises(PySparkException) as error:
            shop.spark.readStream.format("tablestore").options(**options).load()
        assert explain_failure(error.value).code == code


@pytest.mark.nightly  # by day tests/unit/datasource, and an error below
def test_what_goes_away_while_a_query_is_stopped_ends_it(shop: Shop) -> None:
    """Expired, rolled back, dropped and made anew: each by its code, never a gap."""
    for name, spoil, code in (
        ("expired", lambda: shop.table.store.expire(newest(1)), "TS1337"),
        ("rolled back", lambda: shop.table.rollback(1), "TS1338"),
        ("another", lambda: (shop.engine.drop_table("demo.t"), shop.put((1, "a"))), "TS1335"),
    ):
        for number in range(1, 3):
            shop.put((number, name))
        frame = shop.stream(schema="id bigint", rowKinds="upserts")
        run_once(frame, shop.checkpoint(name))
        for number in range(3, 6):
            shop.put((number, name))
        spoil()
        with pytest.raises(PySparkException) as error:
            run_once(frame, shop.checkpoint(name))
        assert explain_failure(error.value).code == code
        if code != "TS1335":
            shop.engine.drop_table("demo.t")


@pytest.mark.nightly  # by day test_read_ways.py: past states; a mode gives what the reader gives
def test_a_batch_query_reads_a_state_or_changes(shop: Shop) -> None:
    """The newest rows, those of a snapshot or a tag, what some snapshots changed; deleted rows are gone."""
    shop.put((1, "a"), (2, "b"))
    shop.put((2, "c"), (3, "d"))
    shop.table.tag("first", 1)
    shop.put((1, "z"))

    def read(**options: str) -> list[tuple[object, ...]]:
        reader = shop.spark.read.format("tablestore").option("path", f"{shop.engine.warehouse}/demo.db/t")
        return sorted((tuple(row) for row in reader.options(**options).load().drop("at").collect()), key=repr)

    assert read() == [(1, "z"), (2, "c"), (3, "d")]
    assert read(**{"scan.snapshot-id": "1"}) == read(**{"scan.tag-name": "first"}) == [(1, "a"), (2, "b")]
    moment = str(shop.table.snapshots()[1].time_millis)
    assert read(**{"scan.timestamp-millis": moment}) == [(1, "a"), (2, "c"), (3, "d")]
    assert read(**{"incremental-between": "1,3"}) == [
        (1, "a", "-U", 3), (1, "z", "+U", 3), (2, "b", "-U", 2), (2, "c", "+U", 2), (3, "d", "+I", 2),
    ]  # fmt: skip
    assert read(**{"incremental-between": "3,3"}) == []
    assert read(**{"incremental-between": "0,1", "read.changelog": "false"}) == [(1, "a"), (2, "b")]
    for options, code in (
        ({"scan.snapshot-id": "9"}, "TS1302"),
        ({"incremental-between": "2"}, "TS1442"),
        ({"scan.mode": "latest"}, "TS1440"),
    ):
        with pytest.raises(PySparkException) as error:
            read(**options)
        assert explain_failure(error.value).code == code


@pytest.mark.nightly  # by day test_skipping.py
def test_conditions_leave_files_out(shop: Shop) -> None:
    """Where the session pushes them: the same rows from fewer tasks; where it does not, Spark says so itself."""
    parts = WriteSpec(TableSpec(partition_by=("v",)))
    for place in "abc":
        shop.put((1, place), (2, place), spec=parts)
    reader = (
        shop.spark.read.format("tablestore")
        .option("warehouse", shop.engine.warehouse)
        .option("table", "demo.t")
    )
    with pytest.raises(PySparkException, match="filterPushdown"):
        reader.option("pushFilters", "true").load().where("v = 'b'").collect()
    shop.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = reader.option("pushFilters", "true").load()
        for condition, count in (
            ("v = 'b'", 2),
            ("v = 'b' and id = 2", 1),
            ("v in ('a', 'c')", 4),
            ("v is null", 0),
        ):
            assert frame.where(condition).count() == count
    finally:
        shop.spark.conf.unset("spark.sql.python.filterPushdown.enabled")
