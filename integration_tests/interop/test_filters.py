"""Our statistics: a reader that prunes files by them loses no row. Java prunes files and row groups."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import Row, arrow_rows, assert_same, plain_rows
from integration_tests.interop.sample_data import ALL_TYPES, make_rows
from integration_tests.interop.schemas import Schema, schema
from tests.doses import cases

COLUMNS = {"id": "BIGINT", **ALL_TYPES, "part": "INT"}
LONG = ("🛫" * 20, "\uffff" * 17, "é" * 16 + "z", "a" * 15 + "\U0010ffff" * 3, "\U0010ffff" * 18, "z" * 40)
TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: a == b,
    "lessOrEqual": lambda a, b: a <= b,
    "greaterThan": lambda a, b: a > b,
}
MODES = {
    "metadata.stats-mode": "none",
    "fields.id.stats-mode": "counts",
    "fields.c_text.stats-mode": "truncate(3)",
    "fields.c_dec38.stats-mode": "full",
    "fields.c_date.stats-mode": "counts",
}
COMPARED = [name for name in COLUMNS if name not in {"c_bytes", "c_float", "c_double"}]


@pytest.fixture(scope="module", params=cases(["keyed", "append", "partitioned", "modes"], 1))
def pruned(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Schema, list[Row]]:
    """Small files with long texts in them; `modes` has statistics of some columns only."""
    keyed = request.param != "append"
    made = schema(COLUMNS, keys=("id",) if keyed else (), options={"bucket": "4"} if keyed else {})
    if request.param == "partitioned":
        made = schema(COLUMNS, keys=("part", "id"), partitions=("part",), options={"bucket": "2"})
    if request.param == "modes":
        made = replace(made, options={**made.options, **MODES})
    location = tmp_path_factory.mktemp("pruned") / "ours.db" / request.param
    Ours().create(location, made)
    rows = []
    for number in range(6):
        part = make_rows(COLUMNS, range(number * 6, number * 6 + 6), seed=number, required=("id", "part"))
        part[0]["c_text"] = LONG[number % len(LONG)]
        for row in part:
            row["part"] = number % 3
        Ours().write(location, arrow_rows(made, part))
        rows += part
    return location, made, plain_rows(arrow_rows(made, rows))


def test_filters_of_java_lose_no_row(java: JavaPaimon, pruned: tuple[Path, Schema, list[Row]]) -> None:
    """For values of every column, Java's filtered reads give the rows that a filter over all rows gives."""
    location, made, rows = pruned
    for position, column in enumerate(made.names):
        values = sorted({row[position] for row in rows if row[position] is not None}, key=repr)
        asked = [(test, values[len(values) // 2]) for test in TESTS] if column in COMPARED else []
        asked += [("equal", value) for value in LONG if column == "c_text"]
        for test, value in asked:
            expected = [
                row for row in rows if row[position] is not None and TESTS[test](row[position], value)
            ]
            got = java.filter(location, column, test, _text(value))
            assert_same(expected, got, f"{column} {test} {value!r}")
        nulls = [row for row in rows if row[position] is None]
        assert_same(nulls, java.filter(location, column, "isNull"), f"{column} is null")


def test_filters_of_spark_lose_no_row(spark: ProcessPeer, pruned: tuple[Path, Schema, list[Row]]) -> None:
    """paimon-spark 0.9.0 with a filter on key, text and decimal gives the rows that a filter over all rows gives."""
    location, made, rows = pruned
    for column, literal in (
        ("id", "17"),
        ("c_text", f"'{LONG[2]}'"),
        ("c_dec38", "0"),
        ("c_date", "DATE'1970-01-01'"),
    ):
        position = made.names.index(column)
        wanted = {"id": 17, "c_text": LONG[2], "c_dec38": 0, "c_date": dt.date(1970, 1, 1)}[column]
        for sign, passes in (
            ("=", TESTS["equal"]),
            ("<=", TESTS["lessOrEqual"]),
            (">", TESTS["greaterThan"]),
        ):
            expected = [row for row in rows if row[position] is not None and passes(row[position], wanted)]
            got = spark.select(location, f"SELECT * FROM {{table}} WHERE {column} {sign} {literal}")
            assert_same(expected, got, f"{column} {sign} {literal}")


def _text(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value).lower() if isinstance(value, bool) else str(value)
