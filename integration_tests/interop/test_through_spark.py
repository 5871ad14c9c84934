"""Our Spark side: Java's tables through our views; what our SQL and our distributed writes made, read by others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration_tests.interop.golden import KINDS, Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import Oracle
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import arrow_rows, assert_same, plain_rows
from integration_tests.interop.sample_data import ALL_TYPES, make_rows
from integration_tests.interop.schemas import Type, schema
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tests.doses import cases

SETTINGS = SparkSettings("local[2]", {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"})
MERGE = (
    "merge into demo.t t using (select id + 15 id, 'merged' text from range(10)) s on t.id = s.id "
    "when matched then update set text = s.text when not matched then insert (id, text) values (s.id, s.text)"
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine over a warehouse of the test's own."""
    opened = Engine(str(tmp_path), spark=SETTINGS)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", cases([name for name in KINDS if name != "with_time"], 2))
def test_java_tables_through_our_views(golden: Callable[[str], Golden], name: str) -> None:
    """Spark SQL over our views shows Java's tables as the oracle does: newest snapshot, and one in the middle."""
    table = golden(name)
    engine = Engine(str(table.location.parent.parent), spark=SETTINGS)
    shown = table.history.rows
    newest, middle = max(shown), sorted(shown)[len(shown) // 2]
    for snapshot, text in ((newest, ""), (middle, f" version as of {middle}")):
        frame = engine.query(f"select * from theirs.{name}{text}")
        assert_same(shown[snapshot], plain_rows(frame.toArrow()), f"{name}, snapshot {snapshot}")
    engine.close()


@pytest.mark.parametrize(
    "name",
    cases(["all_types", "nested", "folding", "partitioned_keyed", "evolving_keyed", "evolving_append"], 2),
)
def test_our_tables_through_our_views(ours: Callable[[str], Golden], name: str) -> None:
    """Our own tables show the same through Spark as through every other reader, at each snapshot."""
    assert name in OURS
    table = ours(name)
    engine = Engine(str(table.location.parent.parent), spark=SETTINGS)
    for snapshot, expected in list(table.history.rows.items())[::6]:
        frame = engine.table(f"ours.{name}").scan(snapshot=snapshot).to_spark()
        assert_same(expected, plain_rows(frame.toArrow()), f"{name}, snapshot {snapshot}")
    engine.close()


def test_sql_of_ours_is_read_by_others(
    java: JavaPaimon,
    spark: ProcessPeer,
    pypaimon: ProcessPeer,
    rust: ProcessPeer,
    engine: Engine,
    tmp_path: Path,
) -> None:
    """CREATE, INSERT, MERGE, UPDATE, DELETE and INSERT OVERWRITE by SQL: all readers show what SQL shows."""
    engine.create_database("demo")
    engine.sql(
        "create table demo.t (id bigint not null, text string, price decimal(18,4), day date) "
        "tblproperties ('primary-key' = 'id', 'bucket' = '2')"
    )
    statements = (
        "insert into demo.t select id, concat('t', id), cast(id as decimal(18,4)) / 3, date'2024-01-01' from range(20)",
        MERGE,
        "update demo.t set price = price + 1 where id % 2 = 0",
        "delete from demo.t where id in (3, 16, 99)",
        "insert overwrite demo.t select id, 'new', null, null from range(2, 7)",
    )
    for statement in statements:
        engine.sql(statement)
        expected = plain_rows(engine.query("select * from demo.t").toArrow())
        for reader in (java, spark, pypaimon, rust):
            assert_same(
                expected, reader.read(tmp_path / "demo.db" / "t"), f"{reader.name} after {statement[:20]}"
            )
    assert sorted(row[0] for row in expected) == [2, 3, 4, 5, 6]
    assert Ours().store(tmp_path / "demo.db" / "t").verify() == ()


def test_distributed_writes_are_read_by_java(java: JavaPaimon, engine: Engine, tmp_path: Path) -> None:
    """Rows that Spark tasks write, every atomic type, many enough to be shuffled: Java shows and updates each key."""
    columns: dict[str, Type] = {"id": "BIGINT", **ALL_TYPES}
    made = schema(columns, keys=("id",))
    oracle, location = Oracle(made), tmp_path / "demo.db" / "wide"
    engine.create_database("demo")
    rows = make_rows(columns, range(300), seed=1, required=("id",))
    frame = engine.spark.createDataFrame(arrow_rows(made, rows)).repartition(3)
    engine.write("demo.wide", frame, WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "3"})))
    oracle.apply(("+I", row) for row in rows)
    assert_same(oracle.rows(), java.read(location), "java")
    again = make_rows(columns, range(150, 320), seed=2, required=("id",))
    spelled = engine.table("demo.wide").schema.arrow_schema()  # Spark knows TIMESTAMP(6) only
    java.write(location, arrow_rows(made, again).cast(spelled), options={"write-only": "false"})
    oracle.apply(("+U", row) for row in again)
    assert_same(oracle.rows(), plain_rows(engine.table("demo.wide").scan().to_arrow()), "ours after java")
