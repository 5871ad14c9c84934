"""VARIANT columns in SQL, in format("tablestore") and in Arrow: one table, every kind of statement."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.variant_utils import VariantUtils

from tablestore_engine.api import Engine, SparkSettings, WriteSpec
from tablestore_engine.errors import TablestoreError

COLUMNS = "id bigint, v variant, s struct<w:variant,n:int>, a array<variant>"
REFUSED = {
    "create table demo.x (v variant, primary key (v))": "TS1113",
    "create table demo.x (id int, v variant) partitioned by (v)": "TS1113",
    "create table demo.x (id int, v variant, primary key (id)) tblproperties ('sequence.field' = 'v')": "TS1113",
    "create table demo.x (id int, v variant) tblproperties ('bucket' = '2', 'bucket-key' = 'v')": "TS1113",
    "create table demo.x (id int, v variant, primary key (id)) tblproperties "
    "('merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'max')": "TS1662",
    "create table demo.x (id int, v variant) tblproperties ('file-index.bloom-filter.columns' = 'v')": "TS1147",
    "create table demo.x (id int, v variant) tblproperties ('metadata.iceberg.storage' = 'table-location')": "TS1143",
    "create table demo.x (id int, v variant) tblproperties ('log.system' = 'kafka', 'kafka.topic' = 'x')": "TS1163",
    "alter table demo.t alter column v type string": "TS1125",
    "insert into demo.t (id, v) values (9, '{}')": "TS2156",
}


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A keyed table with a VARIANT in each place that a column has."""
    del spark
    warehouse = str(tmp_path_factory.mktemp("variant") / "warehouse")
    # an engine that names brokers: a log is refused for its column, nobody is asked
    made = Engine(warehouse, spark=SparkSettings("local[2]"), log={"kafka.bootstrap.servers": "127.0.0.1:1"})
    made.create_database("demo")
    made.sql(f"create table demo.t ({COLUMNS}, primary key (id))")
    return made


def _text(value: object) -> object:
    """JSON of each variant, at any depth."""
    if isinstance(value, dict) and set(value) == {"value", "metadata"}:
        return VariantUtils.to_json(value["value"], value["metadata"])
    if isinstance(value, dict):
        return {name: _text(one) for name, one in value.items()}
    return [_text(one) for one in value] if isinstance(value, list) else value


def _rows(engine: Engine, name: str = "demo.t") -> dict[object, list[object]]:
    """By id; a NULL is None and JSON null is 'null'. SQL has to have the same."""
    stored = engine.table(name).scan().to_arrow()
    sql = engine.sql(f"select id, to_json(v) from {name}").rows
    assert dict(sql) == {row["id"]: _text(row["v"]) for row in stored.to_pylist()}
    return {row["id"]: [_text(one) for one in list(row.values())[1:]] for row in stored.to_pylist()}


def test_statements_read_and_write_variants(engine: Engine) -> None:
    """INSERT, UPDATE of a column and of a field, MERGE, DELETE by a path, INSERT OVERWRITE, CREATE TABLE AS."""
    engine.sql(
        """insert into demo.t select 1, parse_json('{"a":1,"b":[1,2.5,"x"]}'),
        named_struct('w', parse_json('5'), 'n', 1), array(parse_json('true'), null)
        union all select 2, null, null, null union all select 3, parse_json('null'), null, array()"""
    )
    assert _rows(engine) == {
        1: ['{"a":1,"b":[1,2.5,"x"]}', {"w": "5", "n": 1}, ["true", None]],
        2: [None, None, None],
        3: ["null", None, []],
    }
    assert engine.sql("select id from demo.t where variant_get(v, '$.a', 'int') = 1").rows == ((1,),)
    engine.sql("update demo.t set v = parse_json('[7]') where v is null")
    engine.sql("update demo.t set s.w = parse_json('{}') where id = 1")
    engine.sql(
        "merge into demo.t using (select explode(array(3, 4)) as id, parse_json('\"m\"') as v) n on t.id = n.id "
        "when matched then update set v = n.v when not matched then insert (id, v) values (n.id, n.v)"
    )
    assert _rows(engine) == {
        1: ['{"a":1,"b":[1,2.5,"x"]}', {"w": "{}", "n": 1}, ["true", None]],
        2: ["[7]", None, None],
        3: ['"m"', None, []],
        4: ['"m"', None, None],
    }
    engine.sql(
        "delete from demo.t where is_variant_null(variant_get(v, '$.z')) or variant_get(v, '$[0]', 'int') = 7"
    )
    engine.sql("alter table demo.t add column w variant")
    engine.sql("create table demo.copy as select id, v, s, a from demo.t")
    assert _rows(engine, "demo.copy") == {key: row[:3] for key, row in _rows(engine).items()}
    assert set(_rows(engine)) == {1, 3, 4}
    assert [row[2] for row in engine.sql("select id, v, w from demo.t").rows] == [None] * 3
    kinds = engine.sql("select rowkind, count(*) from demo.`t$audit_log` group by 1").rows
    assert dict(kinds) == {"+I": 3}
    assert engine.table("demo.t").verify() == ()


@pytest.mark.nightly  # a stream, and Python workers for two frames
def test_streams_and_frames_carry_variants(engine: Engine, tmp_path: Path) -> None:
    """A stream of format("tablestore") into a table, a batch beside, and pyspark's own Arrow form of both."""
    session = engine.spark
    engine.sql(f"create table demo.source ({COLUMNS})")
    engine.sql(f"create table demo.sink ({COLUMNS}, primary key (id))")
    engine.sql(
        "insert into demo.source values (1, parse_json('1.5e0'), null, array(null)), (2, null, null, null)"
    )
    at = {"warehouse": engine.warehouse}
    reader = session.readStream.format("tablestore").options(**at, table="demo.source").load()
    writer = reader.writeStream.format("tablestore").options(**at, table="demo.sink")
    writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert (
        _rows(engine, "demo.sink")
        == _rows(engine, "demo.source")
        == {1: ["1.5", None, [None]], 2: [None] * 3}
    )
    frame = session.read.format("tablestore").options(**at, table="demo.sink").load().where("id = 1")
    frame.selectExpr("id + 5 as id", "v", "s", "a").write.format("tablestore").options(
        **at, table="demo.sink"
    ).mode("append").save()
    rows = engine.table("demo.sink").scan().to_arrow()
    assert session.createDataFrame(rows.filter(rows["v"].is_valid()).select(["v"])).schema[
        "v"
    ].dataType.typeName() == ("variant")
    assert _rows(engine, "demo.sink")[6] == ["1.5", None, [None]]
    assert dict(engine.query_duckdb("select id, v.metadata from demo.sink").rows)[6] == b"\1\0\0"


def test_rows_of_python_become_variants(engine: Engine) -> None:
    """A struct of the two binaries fits the column, and pyspark's mark makes a new table's column a VARIANT."""
    plain = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    rows = pa.table({"id": [1, 2], "v": pa.array([{"value": b"\0", "metadata": b"\1\0\0"}, None], plain)})
    engine.sql("create table demo.py (id bigint, v variant)")
    engine.write("demo.py", rows, WriteSpec())
    assert _rows(engine, "demo.py") == {1: ["null"], 2: [None]}
    engine.write("demo.py2", engine.table("demo.py").scan().to_arrow(), WriteSpec())
    assert engine.sql("describe demo.py2").rows[1][1] == "variant"


@pytest.mark.parametrize("statement", REFUSED)
def test_variants_that_mean_nothing_are_refused(engine: Engine, statement: str) -> None:
    """Keys, partitions, orders, indexes, Iceberg, Kafka, casts: by name, and nothing is made."""
    with pytest.raises(TablestoreError) as caught:
        engine.sql(statement)
    assert caught.value.code == REFUSED[statement]
    assert not engine.exists("demo.x")
