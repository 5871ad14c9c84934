"""Spark reads tables of an S3 server, natively and by Arrow, as it reads the same tables from a folder."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration_tests.s3.warehouses import address
from integration_tests.spark.test_read_ways import BOTH, QUERIES, answer, condition, fill, rows
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.devservers.hadoop_jars import fetch_s3_jars
from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.errors import DataFileGone
from tablestore_engine.fileio.object_store import ObjectFileIO
from tablestore_engine.fileio.store_address import parse_address
from tablestore_engine.spark.spark_settings import ReadWay
from tests.doses import cases

_PLAIN = WriteSpec(table=TableSpec(options={"bucket": "-1"}))


@dataclass(frozen=True)
class Ways:
    """`local`: the same tables in a folder; `stored`: an engine for each way over the same warehouse of the server."""

    local: Engine
    stored: Mapping[ReadWay, Engine]
    place: str


@pytest.fixture(scope="module")
def ways(s3_server: S3ServerInfo, bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """The session's JVM takes credentials from its environment, so they are set before it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
        place = address(bucket, "warehouse", s3_server.url)
        conf = {"spark.sql.shuffle.partitions": "2"}
        settings = {
            way: SparkSettings("local[2]", conf, read_way=way, more_jars=lambda: fetch_s3_jars(print))
            for way in (ReadWay.AUTO, *BOTH)
        }
        local = Engine(str(tmp_path_factory.mktemp("local")), spark=settings[ReadWay.AUTO])
        made = Ways(local, {way: Engine(place, spark=settings[way]) for way in BOTH}, place)
        fill(local)
        fill(made.stored[ReadWay.NATIVE])
        yield made
        for engine in (local, *made.stored.values()):
            engine.close()


@pytest.mark.parametrize("text", cases(QUERIES, 2))
@pytest.mark.parametrize("way", BOTH)
def test_query_over_the_store_equals_the_local_copy(ways: Ways, way: ReadWay, text: str) -> None:
    """Joins, subqueries, past states, changes, nested values and old schemas give the rows of the folder."""
    assert answer(ways.stored[way].query(text)) == answer(ways.local.query(text))


@pytest.mark.nightly  # by day the queries above; spark/test_read_ways.py
@pytest.mark.parametrize("way", cases(BOTH, 1))  # the other way, by day, on disk in spark/test_read_ways.py
def test_random_conditions_over_the_store_equal_the_local_copy(ways: Ways, way: ReadWay) -> None:
    """Pruned files and conditions change no answer."""
    chance = random.Random(f"{way}-s3")
    for _ in range(10):
        text = f"select id, x, name from demo.{chance.choice(['keyed', 'merged'])} where {condition(chance)}"
        assert answer(ways.stored[way].query(text)) == answer(ways.local.query(text)), text


def test_session_with_the_connector_reads_natively_and_says_so(ways: Ways) -> None:
    """Without a way in the settings the connector is asked, and the sentence names it and the warehouse."""
    told: list[str] = []
    with Engine(ways.place, spark=SparkSettings("local[2]"), say=told.append) as engine:
        assert engine.query("select * from demo.keyed").count() == 236
        frame = engine.query("select * from demo.keyed")
        assert {path.partition("://")[0] for path in frame.inputFiles() if "/words/" not in path} == {"s3a"}
    root = parse_address(ways.place).root
    how = "Spark reads data files with its own Parquet reader (read_way: native)"
    assert told == [f"{how}: the Hadoop connector hadoop-aws answers for {root}"]


def test_bucket_that_hadoop_knows_by_another_endpoint_is_read_portably(
    ways: Ways, s3_server: S3ServerInfo
) -> None:
    """Hadoop keeps one file system for a bucket: a second endpoint would be read from the first, so Arrow reads it."""
    assert ways.stored[ReadWay.NATIVE].query("select 1 from demo.keyed").count() == 236
    elsewhere = ways.place.replace(s3_server.url, s3_server.url.replace("127.0.0.1", "localhost"))
    told: list[str] = []
    with Engine(elsewhere, spark=SparkSettings("local[2]"), say=told.append) as engine:
        assert engine.query("select * from demo.keyed").count() == 236
    assert len(told) == 1
    assert "portable" in told[0]
    assert "already with another fs.s3a.endpoint" in told[0]


def test_secret_key_is_in_no_plan_and_no_setting(ways: Ways, s3_server: S3ServerInfo) -> None:
    """Credentials stay in the environment: neither Spark's configuration nor a relation's options have them."""
    for engine in ways.stored.values():
        frame = engine.query("select id from demo.keyed")
        plan = frame._jdf.queryExecution()
        leaves, texts = plan.analyzed().collectLeaves(), [str(plan.toString())]
        for at in range(leaves.size()):
            leaf = leaves.apply(at)
            if leaf.getClass().getSimpleName() == "LogicalRelation":
                texts.append(str(leaf.relation().options()))
        texts.append(str(frame.sparkSession.sparkContext.getConf().getAll()))
        assert all(s3_server.secret_key not in text for text in texts)


@pytest.mark.parametrize("way", BOTH)
def test_object_that_went_away_is_an_error_with_its_name(ways: Ways, way: ReadWay) -> None:
    """A data file that is deleted under an analysed query is an error, not a result with fewer rows."""
    engine = ways.stored[way]
    name = f"demo.gone_{way.value}"
    engine.write(name, rows(list(range(30)), 1.0), _PLAIN)
    file = engine.table(name).scan().plan().files[0]
    assert engine.query(f"select * from {name}").count() == 30
    ObjectFileIO(parse_address(ways.place)).delete(file.path)
    with pytest.raises(DataFileGone, match=file.meta.file_name):
        engine.sql(f"select * from {name}")


@pytest.mark.parametrize("way", cases(BOTH, 1))
def test_statements_on_the_store_write_what_they_write_locally(ways: Ways, way: ReadWay) -> None:
    """INSERT … SELECT, UPDATE, DELETE, MERGE and CREATE TABLE AS read by this way and leave the same rows."""
    statements = [
        "create table demo.{n} (id bigint not null, x double, name string, primary key (id))",
        "insert into demo.{n} select id, x, name from demo.merged",
        "update demo.{n} set x = -1 where id < 10",
        "delete from demo.{n} where id between 20 and 30",
        """merge into demo.{n} t using (select id + 80 as id, x, name from demo.plain) s on t.id = s.id
        when matched then update set x = s.x when not matched then insert *""",
    ]
    found = []
    for engine in (ways.local, ways.stored[way]):
        for text in statements:
            engine.sql(text.format(n=f"dml_{way.value}"))
        found.append(answer(engine.query(f"select * from demo.dml_{way.value}")))
    assert found[0] == found[1]
    assert sum(found[0].values()) > 60


def test_region_of_the_server_is_in_the_options(ways: Ways) -> None:
    """What the address says of the store stands in the relation, so that a user's own configuration is left alone."""
    node = ways.stored[ReadWay.NATIVE].query("select id from demo.keyed")._jdf.queryExecution().analyzed()
    leaf = node.collectLeaves().apply(0)
    assert f"fs.s3a.endpoint.region -> {REGION}" in str(leaf.relation().options())
    assert not any("fs.s3a" in key for key, _ in _conf(ways))


def _conf(ways: Ways) -> list[tuple[str, str]]:
    session = ways.local.query("select 1").sparkSession
    return list(session.sparkContext.getConf().getAll())


def test_local_scratch_has_no_copies_of_data_files(ways: Ways, tmp_path: Path) -> None:
    """What a session keeps of a store's tables is a stand-in for each hidden table: kilobytes."""
    del tmp_path
    engine = ways.stored[ReadWay.PORTABLE]
    assert engine.query("select count(*) from demo.plain").collect()[0][0] == 60
    scratch = engine._warehouse.session.scratch()
    sizes = [path.stat().st_size for path in (scratch / "files").rglob("*.parquet") if not path.is_symlink()]
    assert sizes
    assert max(sizes) < 200
