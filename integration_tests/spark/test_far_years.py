"""Dates and timestamps beyond the years 1 to 9999, which SQL can write and Python's own types cannot hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.cli.main import main
from tablestore_engine.errors import FixData

OPEN_END = "timestamp'9999-12-31 23:59:59 America/New_York'"
MADE = """create table demo.far (
    id int, at timestamp, day date, local timestamp_ntz, part struct<at: timestamp, n: int>,
    days array<date>, by map<string, timestamp_ntz>, primary key (id))
    tblproperties ('changelog-producer' = 'lookup', 'changelog-producer.row-deduplicate' = 'true')"""
FAR = f"""select 1 as id, {OPEN_END} as at, date'-0044-03-15' as day, timestamp_ntz'+12345-01-02 03:04:05.06' as local,
    named_struct('at', {OPEN_END}, 'n', 1) as part, array(date'+12345-01-01', date'2026-01-02') as days,
    map('a', timestamp_ntz'0000-01-01 00:00:00') as by"""
READ = {
    "id": 1,
    "at": "+10000-01-01T04:59:59Z",
    "day": "-0044-03-15",
    "local": "+12345-01-02T03:04:05.06",
    "part": {"at": "+10000-01-01T04:59:59Z", "n": 1},
    "days": ["+12345-01-01", "2026-01-02"],
}


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    """A warehouse of its own, and the table."""
    del spark
    engine = Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]"))
    engine.sql("create schema demo")
    engine.sql(MADE)
    engine.sql(f"insert into demo.far {FAR}")
    return engine


def printed(engine: Engine, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """The rows of a command's JSON."""
    command, table, *rest = words
    assert main([command, table, "--warehouse", engine.warehouse, *rest, "--json"]) == 0
    out = capsys.readouterr().out
    return list(json.loads(out)) if out.startswith("[") else [json.loads(line) for line in out.splitlines()]


def test_every_reader_shows_them(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands, statements and the changelog give text with a signed year; other values keep their type."""
    rows = printed(engine, capsys, "head", "demo.far")
    rows += printed(engine, capsys, "changelog", "demo.far")
    for row in rows:
        assert {name: row[name] for name in READ} == READ
    assert len(rows) == 2
    plain = engine.sql("select at, day, local, timestamp'2026-01-02 03:04:05' is not null from demo.far").rows
    assert plain == ((READ["at"], READ["day"], READ["local"], True),)
    nested = engine.sql("select part, days, by, id from demo.far").rows[0]
    assert nested[0].asDict() == READ["part"]
    assert str(nested[1][1]) == "2026-01-02"
    assert nested[2] == {"a": "0000-01-01T00:00:00"}


def test_an_equal_row_is_no_change(engine: Engine) -> None:
    """Far values are compared, alone and nested, and a refused row is shown."""
    engine.sql(f"insert into demo.far {FAR}")
    assert engine.sql("select count(*) from demo__changes_1_to_now.far").rows == ((0,),)
    engine.sql(f"insert into demo.far {FAR.replace('date' + chr(39) + '2026', 'date' + chr(39) + '2027')}")
    assert engine.sql("select count(*) from demo__changes_1_to_now.far").rows == ((2,),)
    with pytest.raises(FixData, match="10000-01-01T04:59:59Z"):
        engine.sql(f"insert into demo.far {FAR.replace('1 as id', 'cast(null as int) as id')}")
