"""dbt's built-in data tests answered from Arrow columns give Spark's numbers, over random tables of all types."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import dbt.include.global_project
import jinja2
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.catalog.read_log import ReadLog
from tablestore_engine.catalog.resolved_names import Overrides
from tablestore_engine.errors import NotFound
from tablestore_engine.spark.fetch_rows import fetch
from tablestore_engine.warehouse.statements import data_test_answer
from tablestore_engine.warehouse.statements.data_test_answer import answer_without_spark
from tests.doses import cases, examples

MACROS = Path(dbt.include.global_project.PACKAGE_PATH) / "macros"
MINUTE = dt.datetime.fromisoformat("2026-03-29 02:30")
VALUES: Mapping[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "tiny": (pa.int8(), lambda r: r.randint(-3, 3)),
    "small": (pa.int16(), lambda r: r.randint(-3, 3)),
    "whole": (pa.int32(), lambda r: r.choice([0, 1, 2**31 - 1, -(2**31)])),
    "big": (pa.int64(), lambda r: r.choice([0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)])),
    "price": (pa.decimal128(10, 2), lambda r: Decimal(r.randint(-200, 200)) / 100),
    "huge": (pa.decimal128(38, 0), lambda r: Decimal(r.choice([0, 10**37, 10**37 + 1]))),
    "word": (
        pa.string(),
        lambda r: r.choice(["", " ", "a", "A", "a ", "\u00e4", "a\u0308", "\U0001f600", "x\0"]),
    ),
    "flag": (pa.bool_(), lambda r: r.random() < 0.5),
    "day": (pa.date32(), lambda r: dt.date(1582, 10, 4) + dt.timedelta(r.randint(0, 12))),
    "at_ms": (pa.timestamp("ms"), lambda r: MINUTE + dt.timedelta(milliseconds=r.randint(0, 3))),
    "at_us": (pa.timestamp("us"), lambda r: MINUTE + dt.timedelta(microseconds=r.randint(0, 3))),
    "instant": (pa.timestamp("us", "UTC"), lambda r: MINUTE + dt.timedelta(microseconds=r.randint(0, 3))),
    "real": (pa.float64(), lambda r: r.choice([0.0, -0.0, 1.5, float("nan"), float("inf")])),
    "raw": (pa.binary(), lambda r: r.choice([b"", b"a", b"\0"])),
    "several": (pa.list_(pa.int32()), lambda r: r.choice([[], [1], [None]])),
}
EXACT = ("tiny", "small", "whole", "big", "price", "huge", "word", "flag", "day", "at_ms", "at_us", "instant")
LITERALS = {
    "tiny": "1, -2",
    "big": "9007199254740993, 0",
    "word": "'a', ' ', '\U0001f600'",
    "flag": "true",
    "real": "0, 1",
    "day": "'1582-10-04'",
    "price": "1, 2",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One warehouse, with the session of the folder's tests."""
    folder = tmp_path_factory.mktemp("tests_of_dbt")
    with Engine(str(folder), spark=SparkSettings("local[2]")) as opened:
        yield opened


def _macro(path: str, name: str) -> Callable[..., str]:
    """A macro of dbt-core, rendered without dbt."""
    environment = jinja2.Environment(autoescape=False, extensions=["jinja2.ext.do"])
    template = environment.from_string(
        (MACROS / path).read_text(), globals={"should_store_failures": lambda: False}
    )
    macro: Callable[..., str] = getattr(template.module, name)
    return macro


def _test_sql(
    test: str, *arguments: object, warn: str = "!= 0", error: str = "!= 0", limit: int | None = None
) -> str:
    body = _macro(f"generic_test_sql/{test}.sql", f"default__test_{test}")(*arguments)
    frame = _macro("materializations/tests/helpers.sql", "default__get_test_sql")
    return frame(body, "count(*)", warn, error, limit)


def _rows(seed: int, count: int) -> pa.Table:
    draw = random.Random(seed)
    columns: dict[str, pa.Array] = {"id": pa.array(range(count), pa.int64())}
    for name, (type_, make) in VALUES.items():
        nulls = draw.choice([0.0, 0.3, 1.0])
        columns[name] = pa.array([None if draw.random() < nulls else make(draw) for _ in range(count)], type_)
    return pa.table(columns)


def _make(engine: Engine, name: str, seed: int) -> None:
    """A keyed table whose rows were replaced and deleted."""
    draw, rows = random.Random(seed), _rows(seed, seed * 7 % 40)
    table = engine.create_table(name, rows.schema, primary_key="id", if_exists="replace")
    table.upsert(rows)
    table.upsert(_rows(seed + 1, draw.randint(0, 10)))
    table.delete("id in (1, 3, 5)")


def _both(engine: Engine, text: str) -> tuple[tuple[object, ...] | None, tuple[object, ...]]:
    """Without Spark (None: Spark is asked), and Spark's; what both have read is the same."""
    log, log_of_spark = ReadLog(), ReadLog()
    fetched = answer_without_spark(engine._warehouse, text, Overrides(reads=log))
    with engine._warehouse.running(needs_spark=True):
        frame = engine._warehouse.resolver.pinned_query(text, Overrides(reads=log_of_spark))[0]
        row = tuple(frame.collect()[0])
        types = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    if fetched is None:
        assert log.reads() == ()
        return None, row
    assert fetched.columns == types
    assert log.reads() == log_of_spark.reads()
    return fetched.rows[0], row


@pytest.mark.parametrize("seed", cases(range(1, 4), 1))
def test_answers_are_those_of_spark(engine: Engine, seed: int) -> None:
    """Every test over every column; types that Arrow compares exactly are answered without Spark."""
    engine.create_database("shop") if "shop" not in engine.databases() else None
    _make(engine, "shop.child", seed)
    _make(engine, "shop.parent", seed + 50)
    for name in list(VALUES)[:: examples(4, 1)]:
        texts = {
            "not_null": _test_sql("not_null", "shop.child", name),
            "unique": _test_sql("unique", "shop.child", f"`{name}`", warn="> 2", error=">= 3"),
            "limited": _test_sql("unique", "shop.child", name, limit=1),
            "relationships": _test_sql("relationships", "shop.child", name, "shop.parent", name),
        }
        for test, text in texts.items():
            answer, expected = _both(engine, text)
            assert (answer is not None) == (test == "not_null" or name in EXACT), (name, test)
            assert answer in (None, expected), (name, test)
    for name, literals in LITERALS.items():
        answer, expected = _both(engine, _accepted(name, literals))
        assert (answer is not None) == (name in ("tiny", "big", "word", "flag")), name
        assert answer in (None, expected), name


def _accepted(name: str, literals: str) -> str:
    return _test_sql("accepted_values", "shop.child", name, literals.split(", "), False)


def test_columns_of_two_integer_types_are_compared(engine: Engine) -> None:
    """TINYINT with BIGINT; BIGINT with DECIMAL is cast by Spark, so Spark is asked."""
    engine.create_database("shop") if "shop" not in engine.databases() else None
    _make(engine, "shop.child", 5)
    answer, expected = _both(engine, _test_sql("relationships", "shop.child", "tiny", "shop.child", "big"))
    assert answer == expected
    assert _both(engine, _test_sql("relationships", "shop.child", "big", "shop.child", "price"))[0] is None


def test_past_states_views_and_other_spellings(engine: Engine) -> None:
    """A version in the name is read as it was; a view and another letter case are Spark's."""
    engine.create_database("shop") if "shop" not in engine.databases() else None
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "tiny": pa.array([7, 7], pa.int8())})
    table = engine.create_table("shop.past", rows.schema, primary_key="id")
    table.upsert(rows)
    table.delete("id = 2")
    for schema, failures in (("shop__at_snapshot_1", 1), ("shop", 0)):
        answer, expected = _both(engine, _test_sql("unique", f"{schema}.past", "tiny"))
        assert answer == expected == (failures, failures > 0, failures > 0)
    engine.sql("create view shop.seen as select * from shop.past")
    for text in (_test_sql("not_null", "shop.seen", "tiny"), _test_sql("not_null", "shop.past", "TINY")):
        assert _both(engine, text)[0] is None


def test_large_tables_are_spark_s(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row more than the limit."""
    engine.create_database("shop") if "shop" not in engine.databases() else None
    _make(engine, "shop.large", 5)
    rows = engine.table("shop.large").scan(columns=["id"]).to_arrow().num_rows
    text = _test_sql("unique", "shop.large", "id")
    for limit, is_answered in ((rows, True), (rows - 1, False)):
        monkeypatch.setattr(data_test_answer, "ROWS_MAX", limit)
        assert (_both(engine, text)[0] is not None) is is_answered


def test_no_session_starts_and_missing_tables_are_said(tmp_path: Path) -> None:
    """What dbt gets from Engine.sql, in an engine whose Spark cannot start."""
    with Engine(str(tmp_path), spark=SparkSettings("nonsense")) as opened:
        _make(opened, "shop.small", 5)
        found = opened.sql(_test_sql("not_null", "shop.small", "id"))
        assert found.columns == (
            ("failures", "bigint"),
            ("should_warn", "boolean"),
            ("should_error", "boolean"),
        )
        assert found.rows == ((0, False, False),)
        opened.create_table("shop.staged_only", pa.schema([("id", pa.int64())]), primary_key="id")
        with pytest.raises(NotFound):
            opened.sql(_test_sql("not_null", "shop__at_snapshot_9.small", "id"))


def test_a_collation_of_the_session_is_spark_s(tmp_path: Path) -> None:
    """Texts may be equal there that differ here."""
    conf = {"spark.sql.session.collation.default": "UTF8_LCASE"}
    with Engine(str(tmp_path), spark=SparkSettings(conf=conf)) as opened:
        _make(opened, "shop.small", 5)
        assert (
            answer_without_spark(opened._warehouse, _test_sql("unique", "shop.small", "word"), Overrides())
            is None
        )


def test_aggregates_of_metadata_have_sparks_names_types_and_values(engine: Engine) -> None:
    """Each text once without Spark and once by it: columns and rows are equal."""
    _make(engine, "shop.aggregated", 3)
    engine.table("shop.aggregated").compact(full=True)
    for text in (
        "select count(*), min(id), max(id), min(tiny), max(small) from shop.aggregated",
        "SELECT COUNT(*) AS `all rows`, Max(`whole`), max(big) as Top, min(day) FROM shop.`aggregated`;",
    ):
        fetched = answer_without_spark(engine._warehouse, text, Overrides())
        assert fetched is not None, text
        with engine._warehouse.running(needs_spark=True):
            spark = fetch(engine._warehouse.resolver.pinned_query(text.rstrip(";"))[0])
        assert fetched == spark


@pytest.mark.parametrize("seed", cases(range(1, 9), 2))
def test_aggregates_of_columns_are_those_of_spark(engine: Engine, seed: int) -> None:
    """Of tables with replaced and deleted rows, several at once; types with rules of their own are Spark's."""
    _make(engine, "shop.totals", seed)
    numbers = ("id", "tiny", "small", "whole")
    items = [f"{function}({name})" for function in ("min", "max") for name in (*numbers, "big", "day")]
    items += [f"sum({name})" for name in numbers]
    items += [f"count({name})" for name in ("*", *VALUES) if name != "several"]
    draw = random.Random(seed)
    draw.shuffle(items)
    for at in range(0, len(items), 7):
        answer, expected = _both(engine, f"select {', '.join(items[at : at + 7])} from shop.totals")
        assert answer == expected, items[at : at + 7]
    for one in ("sum(price)", "sum(real)", "max(real)", "min(word)", "count(several)", "max(flag)"):
        assert _both(engine, f"select {one} from shop.totals")[0] is None
