"""Queries by DuckDB: the rows that DuckDB gives over the same rows in memory; only what they need is read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixRequest, NotFound, SparkSettings, Unsupported
from tests.doses import cases, examples

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "part": pa.string(),
        "n": pa.int32(),
        "f": pa.float64(),
        "d": pa.decimal128(12, 3),
        "s": pa.string(),
        "day": pa.date32(),
        "moment": pa.timestamp("us", tz="UTC"),
        "yes": pa.bool_(),
    }
)
LITERALS = {
    "id": ("3", "17", "-1"),
    "part": ("'a'", "'b'", "'zz'"),
    "n": ("0", "5", "2147483647", "-3"),
    "f": ("0.0", "-0.0", "1.5", "'nan'::double", "'inf'::double"),
    "d": ("1.250", "0", "-7.001", "99999"),
    "s": ("''", "'x'", "'Ä'", "'y%'"),
    "day": ("date '2026-03-29'", "date '1969-12-31'"),
    "moment": ("timestamptz '2026-03-29 01:30:00+00'", "timestamptz '1970-01-01 00:00:00+00'"),
    "yes": ("true", "false"),
}
SPECIAL = (0.0, -0.0, 1.5, float("nan"), float("inf"), -2.25, None)


def _row(key: int, draw: random.Random) -> dict[str, object]:
    start = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    values: dict[str, object] = {
        "part": draw.choice("abc"),
        "n": draw.choice((0, 5, 2**31 - 1, -3, 7)),
        "f": draw.choice(SPECIAL),
        "d": draw.choice((Decimal("1.250"), Decimal("-7.001"), Decimal(0))),
        "s": draw.choice(("", "x", "Ä", "y%", "yes")),
        "day": draw.choice((date(2026, 3, 29), date(1969, 12, 31), date(2000, 2, 29))),
        "moment": draw.choice((start, start + timedelta(hours=1), datetime(1970, 1, 1, tzinfo=UTC))),
        "yes": draw.choice((True, False)),
    }
    gone = draw.choice([None, "n", "d", "s", "day", "moment", "yes"])
    return {"id": key, **{name: None if name == gone else value for name, value in values.items()}}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Three partitions, three commits, deleted rows; one view."""
    draw = random.Random(5)
    with Engine(str(tmp_path_factory.mktemp("warehouse"))) as engine:
        table = engine.create_table(
            "demo.t", SCHEMA, primary_key=("id", "part"), partition_by=("part",), options={"bucket": "2"}
        )
        for start in (0, 60, 30):
            table.upsert([_row(key, draw) for key in range(start, start + 60)])
        table.delete("id < 7")
        yield engine


def _predicate(draw: random.Random, depth: int = 2) -> str:
    if depth and draw.random() < 0.5:
        joined = draw.choice((" and ", " or ")).join(_predicate(draw, depth - 1) for _ in range(2))
        return draw.choice(("({})", "not ({})", "({})")).format(joined)
    name = draw.choice(tuple(LITERALS))
    kind = draw.randrange(5)
    if kind == 0:
        return f"{name} is {draw.choice(('', 'not '))}null"
    if kind == 1:
        return f"{name} in ({', '.join(draw.sample(LITERALS[name], 2))})"
    if kind == 2 and name == "s":
        return draw.choice(("s like 'y%'", "s like '%e%'", "starts_with(s, 'x')", "length(s) > 1"))
    return f"{name} {draw.choice(('=', '<>', '<', '<=', '>', '>='))} {draw.choice(LITERALS[name])}"


@pytest.mark.parametrize("seed", cases(range(8), 1))
def test_filters_give_what_duckdb_gives_over_rows_in_memory(engine: Engine, seed: int) -> None:
    """Random predicates over every type, with NULL and NaN: what DuckDB asks of the table is exact."""
    draw = random.Random(seed)
    oracle = duckdb.connect()
    oracle.execute("set TimeZone = 'UTC'")
    oracle.register("rows", engine.table("demo.t").to_arrow())
    for _ in range(examples(10, 60)):
        wanted = _predicate(draw)
        columns = ", ".join(draw.sample(tuple(LITERALS), draw.randint(1, 3)))
        tail = f"from {{}} where {wanted}"
        expected = oracle.sql(f"select {columns} {tail.format('rows')}").to_arrow_table()
        got = engine.query_duckdb(f"select {columns} {tail.format('demo.t')}")
        shown = [tuple(row.values()) for row in expected.to_pylist()]
        assert sorted(map(repr, got.rows)) == sorted(map(repr, shown)), wanted
        count = oracle.sql(f"select count(*) {tail.format('rows')}").fetchall()
        assert list(engine.query_duckdb(f"select count(*) {tail.format('demo.t')}").rows) == count, wanted


def test_only_what_a_query_needs_is_read(engine: Engine, tmp_path: Path) -> None:
    """A partition whose files are gone does not matter to a query over another one."""
    del engine
    with Engine(str(tmp_path)) as own:
        table = own.create_table("demo.t", SCHEMA, partition_by=("part",))
        table.append([_row(key, random.Random(key)) for key in range(30)])
        for path in (tmp_path / "demo.db" / "t").glob("part=a/*/*.parquet"):
            path.unlink()
        expected = sum(row["part"] == "b" for row in (_row(key, random.Random(key)) for key in range(30)))
        assert own.query_duckdb("select count(n is null) from demo.t where part = 'b'").rows == ((expected,),)
        with pytest.raises(NotFound):
            own.query_duckdb("select sum(n) from demo.t")


def test_names_states_and_joins(engine: Engine) -> None:
    """Past states by their names, two tables in one query, names in any case and quoted."""
    first = engine.query_duckdb("select count(*) from demo__at_snapshot_1.t").rows
    assert first == ((60,),)
    now = engine.query_duckdb('select count(*) from "demo"."t"').rows
    assert now == ((engine.table("demo.t").count(),),)
    both = "select count(*) from demo.t join demo__at_snapshot_1.t o using (id, part) where o.id < 30"
    assert engine.query_duckdb(both).rows == ((23,),)
    assert len(engine.query_duckdb("describe demo.t").rows) == len(SCHEMA)
    assert engine.query_duckdb("with x as (select 1 as a) select a from x").rows == ((1,),)


def test_result_has_types_and_duplicate_names(engine: Engine) -> None:
    """Types are DuckDB's; two columns of one name are both there."""
    found = engine.query_duckdb("select 1 as a, 2 as a, 3::hugeint as b, [1, null] as c")
    assert found.columns == (("a", "INTEGER"), ("a", "INTEGER"), ("b", "HUGEINT"), ("c", "INTEGER[]"))
    assert found.rows == ((1, 2, 3, [1, None]),)
    assert engine.query_duckdb("select 1 where false").rows == ()


def test_time_zone_is_the_sessions(tmp_path: Path) -> None:
    """As Spark would show it."""
    spark = SparkSettings(conf={"spark.sql.session.timeZone": "America/New_York"})
    with Engine(str(tmp_path), spark=spark) as engine:
        text = "select strftime(timestamptz '2026-07-01 00:00:00+00', '%H')"
        assert engine.query_duckdb(text).rows == (("20",),)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("insert into demo.t values (1)", "TS1552"),
        ("select 1; select 2", "TS1552"),
        ("", "TS1552"),
        ("selec 1", "TS1552"),
        ("copy (select 1) to 'x'", "TS1552"),
        ("attach 'x' as y", "TS1552"),
        ("set threads = 1", "TS1552"),
        ("select nope from demo.t", "TS1552"),
        ("select * from read_text('/etc/hosts')", "TS1552"),
        ("show tables", "TS1552"),
        ("select * from '/etc/hosts'", "TS1552"),
        ("select * from t", "TS1552"),
        ("select * from engine", "TS1552"),
        ("select * from INFORMATION_SCHEMA.tables", "TS1553"),
        ("select * from memory.demo.t", "TS1554"),
        ('select * from "a""b".t', "TS1554"),
        ("select * from demo.nope", "TS1554"),
        ("select * from demo__changes_start_to_now.t", "TS1553"),
    ],
)
def test_what_duckdb_may_not_do_is_refused(engine: Engine, text: str, error: str) -> None:
    """One query over tables of the warehouse, and no other file, variable or statement."""
    with pytest.raises((FixRequest, NotFound, Unsupported)) as caught:
        engine.query_duckdb(text)
    assert caught.value.code == error
