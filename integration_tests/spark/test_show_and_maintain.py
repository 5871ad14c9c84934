"""SHOW, DESCRIBE HISTORY and maintenance: what hooks and packages of other adapters send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import TablestoreError
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.doses import case_rows

ORDERS = (
    "create table demo.orders (id int not null comment 'it''s the key', v string, day date, primary key (id, day)) "
    "partitioned by (day) comment 'of the shop' tblproperties ('bucket' = '2')"
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A warehouse with a table of three snapshots and a view."""
    with Engine(str(tmp_path)) as made:
        for text in ("create schema demo", ORDERS, "create view demo.some as select id from demo.orders"):
            made.sql(text)
        for value in ("a", "b", "c"):
            made.sql(f"insert into demo.orders values (1, '{value}', date '2026-01-01')")
        yield made


def test_show_create_table_makes_it_again(engine: Engine) -> None:
    """The text of a table, run in another schema, gives a table that is described by the same text."""
    engine.sql("create schema other")
    for name in ("orders", "some"):
        text = str(engine.sql(f"show create table demo.{name}").rows[0][0])
        engine.sql(text.replace("`demo`", "`other`", 1))
        again = str(engine.sql(f"show create table other.{name}").rows[0][0])
        assert again.replace("`other`", "`demo`", 1) == text
    facts = engine.table("other.orders").facts()
    assert (facts.primary_key, facts.partition_by, facts.buckets) == (("id", "day"), ("day",), 2)
    with pytest.raises(TablestoreError, match="TS1538"):
        engine.sql("show create table demo.nothing")


@pytest.mark.parametrize(
    ("statement", "code", "near"),
    case_rows(
        [
            ("select * from demo.somx", "TS1515", "demo.some"),
            ("select * from demo.ordrs", "TS1515", "demo.orders"),
            ("select * from demo.ordrs version as of 1", "TS1515", "demo.orders"),
            ("select * from demo.zzz", "TS1515", None),
            ("drop view demo.somx", "TS1410", "demo.some"),
            ("drop table demo.ordrs", "TS1410", "demo.orders"),
            ("drop table demo.somx", "TS1410", None),
            ("show create table demo.somx", "TS1538", "demo.some"),
            ("show columns in demo.ordrs", "TS1525", "demo.orders"),
            ("alter view demo.somx rename to demo.any", "TS1414", "demo.some"),
        ],
        5,
    ),
)
def test_a_mistyped_name_is_reported_with_the_nearest(
    engine: Engine, statement: str, code: str, near: str | None
) -> None:
    """Views where the statement takes a view; DROP TABLE suggests none."""
    with pytest.raises(TablestoreError, match=code) as caught:
        engine.sql(statement)
    assert caught.value.fix.partition("did you mean ")[2] == ("" if near is None else f"{near}?")


def test_show_table_extended(engine: Engine) -> None:
    """dbt-spark's listing: one row per name, facts in a text."""
    found = engine.sql("show table extended in demo like '*'")
    assert [name for name, _ in found.columns] == ["namespace", "tableName", "isTemporary", "information"]
    orders, some = found.rows
    assert orders[:3] == ("demo", "orders", False)
    assert "Type: MANAGED\n" in str(orders[3])
    assert " |-- day: date" in str(orders[3])
    assert "Type: VIEW\n" in str(some[3])
    assert engine.sql("show table extended in demo like 'so*'").rows == (some,)


def test_describe_history(engine: Engine) -> None:
    """Newest first; what travel can name."""
    found = engine.sql("describe history demo.orders")
    versions = [row[0] for row in found.rows]
    assert versions == sorted(engine.table("demo.orders").snapshot_ids(), reverse=True)
    assert len(versions) >= 3
    assert [row[0] for row in engine.sql("describe history demo.orders limit 1").rows] == versions[:1]
    assert "numRows" in found.rows[0][4]  # type: ignore[operator]  # a map


def test_optimize_compacts(engine: Engine) -> None:
    """One file is left, with the same rows; what has no meaning is named. Rows of an append table are sorted."""
    before = engine.table("demo.orders").facts()
    done = engine.sql("optimize demo.orders where day = date '2026-01-01' zorder by (v)")
    assert "files → 1" in str(done.rows[0][0])
    assert done.notice is not None
    assert "ZORDER" in done.notice
    assert engine.table("demo.orders").facts().files < before.files
    engine.write("demo.plain", pa.table({"a": [3, 1, 2], "b": [1, 1, 1]}), WriteSpec(mode=WriteMode.APPEND))
    assert engine.sql("optimize demo.plain zorder by (b, a)").notice is None
    assert engine.table("demo.plain").scan().to_arrow().column("a").to_pylist() == [1, 2, 3]
    assert [row[:2] for row in engine.sql("select * from demo.orders").rows] == [(1, "c")]


def test_partitions_are_dropped(engine: Engine) -> None:
    """ALTER TABLE … DROP PARTITION deletes the rows of those that it chooses; one that is not there is refused."""
    rows = pa.table({"n": [1, 2, 3], "day": ["a", "b", None], "r`x": ["e", "e", "f"]})
    parts = TableSpec(partition_by=("day", "r`x"))
    engine.write("demo.parts", rows, WriteSpec(mode=WriteMode.APPEND, table=parts))
    with pytest.raises(TablestoreError, match="TS1216"):
        engine.sql("alter table demo.parts drop partition (day > 'b')")
    engine.sql("alter table demo.parts drop if exists partition (day > 'b')")
    engine.sql("alter table demo.parts drop partition (day = 'a', `r``x` <> 'z'), partition (day = null)")
    assert engine.table("demo.parts").scan().to_arrow().column("n").to_pylist() == [2]
    assert engine.table("demo.parts").drop_partitions({"day": "b"}).rows == 1


def test_vacuum_lets_snapshots_go(engine: Engine, tmp_path: Path) -> None:
    """A dry run says what would go; what somebody may still read stays, and tomorrow RETAIN 0 HOURS keeps one state."""
    table = engine.table("demo.orders")
    known = table.snapshot_ids()
    engine.sql("vacuum demo.orders retain 0 hours")
    assert table.snapshot_ids() == known
    tomorrow = replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + 86_400_000)
    with Engine(str(tmp_path), runtime=tomorrow) as later:
        assert "2 snapshots" in str(later.sql("vacuum demo.orders retain 0 hours dry run").rows[0][0])
        assert later.table("demo.orders").snapshot_ids() == known
        later.sql("vacuum demo.orders retain 0 hours")
        assert later.table("demo.orders").snapshot_ids() == known[-1:]
    assert [row[:2] for row in engine.sql("select * from demo.orders").rows] == [(1, "c")]
    assert table.verify() == ()


@pytest.mark.parametrize(
    "text",
    [
        "analyze table demo.orders partition (id) compute statistics",
        "refresh table demo.orders",
        "cache table demo.orders",
        "uncache table if exists demo.orders",
        "msck repair table demo.orders",
        "grant select on table demo.orders to `someone`",
        "revoke all privileges on table demo.orders from someone",
    ],
)
def test_what_has_no_effect_says_so(engine: Engine, text: str) -> None:
    """It is no error, and changes nothing."""
    before = engine.table("demo.orders").snapshot_ids()
    done = engine.sql(text)
    assert done.notice is not None
    assert done.notice.startswith(text.split(maxsplit=1)[0].upper() + " has no effect: ")
    assert engine.table("demo.orders").snapshot_ids() == before


@pytest.mark.parametrize(
    "text",
    ["optimize demo.nothing", "optimize demo.orders garbage", "vacuum demo.orders retain many hours",
     "describe history demo.nothing", "describe history demo.orders limit x", "show table extended demo"],
)  # fmt: skip
def test_bad_input_is_refused(engine: Engine, text: str) -> None:
    """With a code."""
    with pytest.raises(TablestoreError, match=r"TS1\d\d\d"):
        engine.sql(text)
