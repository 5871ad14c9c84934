"""What a function gives besides its arguments and rows: refused, in the digest, or harmless, for each one of Spark.

Complete   by Spark's own registry: each function that can be called without an argument, or whose class is Spark's
           Nondeterministic, or takes a seed, has a row in `CALLS`; a new one fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from tablestore_engine.api import Engine, SparkSettings, TableSpec, TableVersion, WriteSpec
from tablestore_engine.spark.result_settings import read_result_settings
from tablestore_engine.spi import MOMENT

REFUSED, DIGEST, HARMLESS, FOLLOWED = "refused", "in the digest", "harmless", "followed"
_CLASSES = (
    "org.apache.spark.sql.catalyst.expressions.Nondeterministic",
    "org.apache.spark.sql.catalyst.expressions.ExpressionWithRandomSeed",
)
_CHANCE = "'java.util.UUID', 'randomUUID'"
# function → (its arguments, what is done)
CALLS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("current_catalog", "current_database", "current_path", "current_schema",
         "current_time", "current_user", "input_file_block_length", "input_file_block_start",
         "input_file_name", "localtime", "monotonically_increasing_id", "rand", "randn",
         "random", "session_user", "spark_partition_id", "user", "uuid"), ("", REFUSED),
    ),
    **dict.fromkeys(
        ("curdate", "current_date", "current_timestamp", "localtimestamp", "now", "unix_timestamp"), ("", FOLLOWED),
    ),
    **dict.fromkeys(("java_method", "reflect", "try_reflect"), (_CHANCE, REFUSED)),
    "aes_encrypt": ("'a', '0000111122223333'", REFUSED),
    "randstr": ("3", REFUSED),
    "shuffle": ("array(1, 2)", REFUSED),
    "uniform": ("1, 2", REFUSED),
    "current_timezone": ("", DIGEST),
    "version": ("", DIGEST),
    **dict.fromkeys(
        ("array", "arrays_zip", "concat", "e", "make_dt_interval", "make_interval", "make_ym_interval", "map",
         "map_concat", "named_struct", "pi", "struct"), ("", HARMLESS),
    ),
}  # fmt: skip
_TIME_ZONE = "spark.sql.session.timeZone"
_IN_DIGEST = {"current_timezone": f"{_TIME_ZONE}=Asia/Tokyo", "version": "version="}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One table of two rows."""
    folder: Path = tmp_path_factory.mktemp("functions")
    with Engine(str(folder), spark=SparkSettings("local[2]", {})) as made:
        made.write("demo.t", pa.table({"id": [1, 2]}), WriteSpec(TableSpec()))
        yield made


@pytest.mark.nightly  # by day the next test; only another pyspark can change it
def test_function_without_argument_or_of_chance_is_decided(engine: Engine) -> None:
    """No function of the registry of Spark that moves by itself is missing in CALLS."""
    spark = engine.spark
    assert sorted(_moving(spark) - set(CALLS)) == []


def test_moving_function_is_refused_or_in_the_digest(engine: Engine) -> None:
    """Each call is refused with the name of what moves, or what it gives is a line of the settings in the digest, or it
    is a function of the time: with a moment it is followed in a condition. Without one, and as a column, it is refused.
    """
    known = {str(row[0]) for row in engine.spark.sql("show all functions").collect()}
    before = str(engine.spark.conf.get(_TIME_ZONE))
    engine.spark.conf.set(_TIME_ZONE, "Asia/Tokyo")
    settings = read_result_settings(engine.spark)
    engine.spark.conf.set(_TIME_ZONE, before)
    found = {}
    for name in sorted(set(CALLS) & known):
        call = f"select id, {name}({CALLS[name][0]}) as x from demo.t"
        with engine.changed_keys.trace(call, versions={}) as traced:
            line = _IN_DIGEST.get(name)
            still = HARMLESS if line is None or line not in settings else DIGEST
            found[name] = still if traced.volatile is None else REFUSED
        moment = {MOMENT: TableVersion(timestamp_ms=0)}
        with engine.changed_keys.trace(call, versions=moment) as traced:
            assert (traced.volatile is not None) == (found[name] == REFUSED), name
        where = f"select id from demo.t where {name}({CALLS[name][0]}) = {name}({CALLS[name][0]}) and id > 1"
        if found[name] == REFUSED:
            with engine.changed_keys.trace(where, versions=moment) as traced:
                found[name] = REFUSED if traced.volatile else FOLLOWED if traced.follows_time else "lost"
    assert found == {name: CALLS[name][1] for name in found}


def _moving(spark: Any) -> set[str]:
    found, jvm = set(), spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    wanted = [jvm.java.lang.Class.forName(name, False, loader) for name in _CLASSES]
    catalog = spark._jsparkSession.sessionState().catalog()
    for name in (str(row[0]) for row in spark.sql("show all functions").collect()):
        try:
            if spark.sql(f"select `{name}`()") is not None:
                found.add(name)
        except PySparkException:
            info = catalog.lookupFunctionInfo(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))
            if str(info.getClassName()) == "None":  # an operator: the parser's
                continue
            kind = jvm.java.lang.Class.forName(str(info.getClassName()), False, loader)
            if any(one.isAssignableFrom(kind) for one in wanted):
                found.add(name)
    return found
