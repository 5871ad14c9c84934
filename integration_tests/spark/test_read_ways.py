"""Links, Spark's own reader over known files, and Arrow in Python workers: three ways, the same rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.api import (
    ChangesBetween,
    Engine,
    OnSchemaChange,
    SparkSettings,
    TableSpec,
    TableVersion,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.spark import arrow_relation, deletion_bitmap_literal, plan_pruning
from tablestore_engine.spark.remote_files import STAND_IN
from tablestore_engine.spark.spark_settings import ReadWay
from tablestore_engine.spi import OutputMode
from tests.doses import case_rows, cases

DAYS = [date(2024, 1, 1) + timedelta(days=i) for i in range(12)]
BOTH = [ReadWay.NATIVE, ReadWay.PORTABLE]
Engines = Mapping[ReadWay, Engine]


def rows(keys: list[int], mark: float) -> pa.Table:
    """Every kind of column that Spark has a type for."""
    nested = pa.struct([("a", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.decimal128(9, 2)))])
    return pa.table(
        {
            "day": pa.array([DAYS[k // 20] for k in keys], pa.date32()),
            "id": pa.array(keys, pa.int64()),
            "name": [None if k % 7 == 0 else f"name {k:04d} ü'\"" for k in keys],
            "x": pa.array(
                [float("nan") if k % 11 == 0 else -0.0 if k % 13 == 0 else k * mark for k in keys],
                pa.float64(),
            ),
            "f": pa.array([None if k % 5 == 0 else k / 3 for k in keys], pa.float32()),
            "amount": pa.array([Decimal(k) / 4 for k in keys], pa.decimal128(9, 2)),
            "large": pa.array([Decimal(k) ** 9 for k in keys], pa.decimal128(38, 4)),
            "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=k) for k in keys]),
            "local": pa.array([datetime(1900, 1, 1) + timedelta(days=k) for k in keys], pa.timestamp("us")),  # noqa: DTZ001
            "bytes": pa.array([bytes([k % 256, 0]) for k in keys], pa.binary()),
            "flag": [None if k % 3 == 0 else k % 2 == 0 for k in keys],
            "nested": pa.array(
                [None if k % 4 == 0 else {"a": [k, None], "m": [("k", k)]} for k in keys], nested
            ),
        }
    )


def open_ways(place: Path) -> Engines:
    """One engine for each way, over the same folder."""
    return {
        way: Engine(str(place), spark=SparkSettings("local[2]", read_way=way))
        for way in (ReadWay.LINKS, *BOTH)
    }


def fill(engine: Engine) -> None:
    """A keyed table with dead rows and partitions, an append-only one, another keyed one, and one with files of two
    schemas.
    """
    upsert = WriteSpec(
        table=TableSpec(primary_key=("day", "id"), partition_by=("day",), options={"bucket": "2"}),
        mode=WriteMode.UPSERT,
    )
    engine.write("demo.keyed", rows(list(range(240)), 1.0), upsert)
    engine.write("demo.keyed", rows(list(range(0, 200, 3)), -2.0), upsert)
    engine.sql("delete from demo.keyed where id between 30 and 33")
    engine.write(
        "demo.plain", rows(list(range(100, 160)), 1.5), WriteSpec(table=TableSpec(options={"bucket": "-1"}))
    )
    merged = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}), mode=WriteMode.UPSERT)
    engine.write("demo.merged", rows(list(range(60)), 1.0), merged)
    engine.write("demo.merged", rows(list(range(40, 90)), 3.0), merged)
    growing = WriteSpec(
        table=TableSpec(options={"bucket": "-1"}), on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS
    )
    engine.write("demo.grown", pa.table({"id": pa.array([1, 2], pa.int32()), "old": ["a", "b"]}), growing)
    engine.sql("alter table demo.grown rename column old to older")
    engine.sql("alter table demo.grown alter column id type bigint")
    engine.write(
        "demo.grown", pa.table({"id": pa.array([3], pa.int64()), "older": ["c"], "new": [1.5]}), growing
    )


@pytest.fixture(scope="module")
def engines(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """The tables of `fill`, in a folder, and an engine for each way."""
    del spark
    made = open_ways(tmp_path_factory.mktemp("ways"))
    fill(made[ReadWay.LINKS])
    yield made
    for one in made.values():
        one.close()


def answer(frame: DataFrame) -> Counter[str]:
    """Rows in any order; texts, since a NaN is not equal to itself."""
    return Counter(map(repr, frame.collect()))


QUERIES = [
    *(f"select * from demo.{name}" for name in ("keyed", "plain", "merged", "grown")),
    *(f"select count(*) from demo.{name}" for name in ("keyed", "plain", "merged", "grown")),
    "select sum(amount), max(at), min(local), count(distinct name) from demo.keyed where x < 0",
    "select a.id, b.name from demo.keyed a join demo.merged b on a.id = b.id + 1 where b.id > 10",
    "select id from demo.keyed where id = (select max(id) from demo.keyed where day < '2024-01-05')",
    "select id from demo.keyed k where exists (select 1 from demo.merged m where m.id = k.id and m.x = k.x)",
    "select id, (select count(*) from demo.keyed) n, nested.a[0], nested.m['k'] from demo.keyed where id < 25",
    "select 'a\nb' as text, id from demo.keyed where id = 45",
    "select id, x from demo.keyed version as of 1 where id between 29 and 34",
    "with c as (select id, x from demo.keyed) select c.id from c join c d on c.id = d.id where d.x > 3",
    "select id from demo.keyed where id = 2 union all select id from demo.keyed where id = 3",
    "select * from demo.keyed where false",
    "select older, new from demo.grown where id > 1",
    "select id, row_number() over (partition by day order by id) from demo.keyed where flag",
    "select day, count(*) from demo.keyed group by day having count(*) > 19",
    "select * from (select id, explode(nested.a) e from demo.keyed) where e > 200",
    "select * from demo__changes_start_to_now.keyed",
    "select _row_kind, _snapshot_id, id, x from demo__changes_1_to_now.keyed where id < 40 and x < 0",
    "select _snapshot_id, count(*) from demo__changes_0_to_now.plain group by 1",
    "select id from demo.keyed order by at desc limit 3",
]


@pytest.mark.parametrize(("text", "way"), case_rows(list(product(QUERIES, BOTH)), 4))
def test_query_in_each_way_equals_links(engines: Engines, way: ReadWay, text: str) -> None:
    """Joins, subqueries, CTEs, past states, changes, nested values and files of old schemas give the rows of links."""
    expected = answer(engines[ReadWay.LINKS].query(text))
    assert answer(engines[way].query(text)) == expected
    assert expected or "false" in text


_VALUES = {
    "day": ["date '2024-01-04'", "'2024-01-09'"],
    "id": ["45", "0", "199", "31", "46L", "44.5"],
    "name": ["'name 0045 ü'", "'name 01'", "''", "null"],
    "x": ["-90.0D", "45.0D", "cast('nan' as double)", "0.0D", "-0.0D"],
    "f": ["cast(3 as float)", "10.5"],
    "amount": ["11.25", "cast(50 as decimal(9,2))", "7"],
    "large": ["0", "512.0", "cast(19683 as decimal(38,4))"],
    "at": ["timestamp '2024-01-02 21:00:00'", "timestamp '2024-01-05 00:00:00+02:00'", "now()"],
    "local": ["timestamp_ntz '1900-02-15 00:00:00'"],
    "flag": ["true", "false"],
}


def condition(chance: random.Random, depth: int = 0) -> str:
    """What pruning understands and what it does not."""
    kind = chance.randrange(9) if depth < 3 else chance.randrange(5)
    column = chance.choice(list(_VALUES))
    if kind < 3:
        return f"{column} {chance.choice(['=', '<', '<=', '>', '>=', '<>', '<=>'])} {chance.choice(_VALUES[column])}"
    if kind == 3:
        return f"{column} is {chance.choice(['', 'not '])}null"
    if kind == 4:
        listed = f"{column} in ({', '.join(_VALUES[column])})"
        return chance.choice([listed, "name like 'name 00%'", "id % 2 = 0", "id not in (1, 2, 45)", "x = x"])
    if kind == 5:
        return f"not ({condition(chance, depth + 1)})"
    return f"({condition(chance, depth + 1)} {chance.choice(['and', 'or'])} {condition(chance, depth + 1)})"


@pytest.mark.parametrize("way", cases(BOTH, 1))
def test_random_conditions_in_each_way_equal_links(engines: Engines, way: ReadWay) -> None:
    """Files that are left out, columns that are not read and rows that a worker drops change no answer."""
    chance = random.Random(f"{way}-63")
    for _ in range(12):
        text = f"select id, x from demo.{chance.choice(['keyed', 'merged'])} where {condition(chance)}"
        assert answer(engines[way].query(text)) == answer(engines[ReadWay.LINKS].query(text)), text


def test_deletion_bitmaps_beyond_a_literal_equal_links(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many words for a literal are read by a subquery; the files that are left get numbers of their own."""
    monkeypatch.setattr(deletion_bitmap_literal, "MAX_WORDS", 5)
    monkeypatch.setattr(plan_pruning, "_FILES_WORTH", 1)
    for text in ("select id from demo.keyed", "select id from demo.keyed where day = date '2024-01-02'"):
        expected = answer(engines[ReadWay.LINKS].query(text))
        assert answer(engines[ReadWay.NATIVE].query(text)) == expected


def test_native_query_of_one_partition_opens_its_files_only(engines: Engines) -> None:
    """The plan has the real files, and of them those that the manifest leaves."""
    engine = engines[ReadWay.NATIVE]
    wanted = {
        f.meta.file_name for f in engine.table("demo.keyed").scan().plan().files if f.partition == (DAYS[2],)
    }
    frame = engine.query("select * from demo.keyed where day = date '2024-01-03'")
    opened = {path.rpartition("/")[2] for path in frame.inputFiles() if "/words/" not in path}
    assert opened == wanted
    assert STAND_IN not in opened


def test_portable_query_reads_asked_columns_and_matching_files(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers get the columns of the query and of its conditions, the files that can match, and the condition."""
    made: list[arrow_relation.ArrowRead] = []
    before = arrow_relation.reading
    monkeypatch.setattr(
        "tablestore_engine.spark.arrow_relation.reading", lambda read: made.append(read) or before(read)
    )
    frame = engines[ReadWay.PORTABLE].query(
        "select x from demo.keyed where day = date '2024-01-03' and id > 44"
    )
    assert len(frame.collect()) == 15
    assert [sorted(one.target.names) for one in made] == [["day", "id", "x"]]
    parts = [part.file.partition for one in made[0].slices for part in one]
    assert set(parts) == {(DAYS[2],)}
    sent = [batch for at in range(len(made[0].slices)) for batch in made[0].rows(at)]
    assert sum(batch.num_rows for batch in sent) == 15, "rows that do not match stay in the worker"


@pytest.mark.nightly  # by day tests/unit/store/test_memory.py: a large row group
def test_large_file_is_read_in_parts(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices by row groups give each row once, also where rows of the file are deleted."""
    monkeypatch.setattr(arrow_relation, "_SLICE_MIN", 64)
    monkeypatch.setattr(arrow_relation, "_SLICE_MAX", 2000)
    text = "select * from demo.keyed"
    assert answer(engines[ReadWay.PORTABLE].query(text)) == answer(engines[ReadWay.LINKS].query(text))


@pytest.mark.parametrize("way", BOTH)
def test_plan_that_is_not_prepared_fails_to_read(engines: Engines, way: ReadWay, spark: SparkSession) -> None:
    """A view of ours that Spark reads on its own is an error, never an answer without rows."""
    assert engines[way].query("select id from demo.keyed where id = 2").count() == 1
    with pytest.raises(Exception, match=STAND_IN.removesuffix(".parquet")):
        spark.sql("select id from demo.keyed").collect()
    with pytest.raises(Exception, match=STAND_IN.removesuffix(".parquet")):
        spark.sql("select count(*) from demo.keyed").collect()


def test_column_that_was_not_read_is_an_error(engines: Engines) -> None:
    """A frame that is asked later for a column which its query left out fails with the column's name."""
    frame = engines[ReadWay.PORTABLE].query("select id from demo.keyed")
    with pytest.raises(Exception, match=r"TS1532 column x was not read"):
        frame.filter("x < 0").collect()


@pytest.mark.parametrize("way", BOTH)
def test_error_of_a_damaged_file_names_the_file(spark: SparkSession, tmp_path: Path, way: ReadWay) -> None:
    """A data file that was cut off is an error that says which one, not fewer rows."""
    del spark
    engine = open_ways(tmp_path)[way]
    engine.write("demo.t", rows(list(range(50)), 1.0), WriteSpec(table=TableSpec(options={"bucket": "-1"})))
    file = engine.table("demo.t").scan().plan().files[0]
    Path(file.path).write_bytes(Path(file.path).read_bytes()[:-20])
    with pytest.raises(FixData, match=file.meta.file_name) as caught:
        engine.sql("select * from demo.t")
    assert caught.value.code in ("TS1560", "TS1360", "TS1160")


@pytest.mark.parametrize("way", cases(BOTH, 1))
def test_stateful_query_in_each_way_counts_as_links(
    spark: SparkSession, tmp_path: Path, way: ReadWay
) -> None:
    """A streaming query of Spark joins a range of changes with a table, in a session of its own."""
    del spark
    stream = "demo__changes_start_to_now.clicks"
    sql = (
        f"select p.title, count(*) as n from {stream} c join demo.pages p on p.page = c.page group by p.title"
    )
    found = {}
    for name in (ReadWay.LINKS, way):
        engine = open_ways(tmp_path / name)[name]
        engine.create_database("demo")
        plain = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
        engine.write("demo.pages", pa.table({"page": ["a", "b"], "title": ["A", "B"]}), plain)
        engine.write("demo.clicks", pa.table({"page": ["a", "b", "a"]}), plain)
        newest = engine.table("demo.clicks").latest_snapshot_id()
        versions = {stream: TableVersion(changes=ChangesBetween(None, newest))}
        with engine.stateful.run(
            "demo.t", sql, [stream], mode=OutputMode.UPDATE, state=None, key=["title"], versions=versions
        ) as run:
            found[name] = answer(engine.query(run.select))
    assert found[way] == found[ReadWay.LINKS]
    assert sum(found[way].values()) == 2


def test_unknown_way_for_a_store_is_refused(engines: Engines) -> None:
    """Links into an object store cannot be asked for."""
    engine = Engine(
        "s3://bucket/w?endpoint=http://127.0.0.1:9", spark=SparkSettings("local[2]", read_way=ReadWay.LINKS)
    )
    del engines
    with pytest.raises(FixRequest, match="TS1531"):
        engine.query("select 1")
