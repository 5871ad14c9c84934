"""Spark settings that the product makes change no answer: each is in a table, with the proof for it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore_engine
from integration_tests.interpreted import INTERPRETED, as_users_run
from integration_tests.spark.traced_world import P, R, S, traced_world
from tablestore_engine.api import ChangesBetween, Engine, TableSpec, TableVersion, WriteSpec
from tablestore_engine.spark import session, stateful_query
from tablestore_engine.spark.single_task import in_one_task
from tablestore_engine.spi import OutputMode
from tests.doses import examples, is_nightly

QUERIES, STREAMS = "queries", "streams"  # compared with and without the setting
PROCESS = "process"  # of the JVM, before there is a query
TASK = "one task"  # of a query in one task, which is compared
MEANT = "meant"  # it changes answers, and a page says so: time zone (sql.md), ${…} in texts, ANSI mode
PROOF: Mapping[str, str] = {
    "spark.sql.catalogImplementation": PROCESS,
    "spark.sql.warehouse.dir": PROCESS,
    "spark.sql.ansi.enabled": MEANT,
    "spark.sql.session.timeZone": MEANT,
    "spark.sql.variable.substitute": MEANT,
    "spark.sql.execution.arrow.pyspark.enabled": QUERIES,
    "spark.sql.execution.arrow.maxRecordsPerBatch": QUERIES,
    "spark.sql.parquet.filterPushdown": QUERIES,
    "spark.sql.sources.parallelPartitionDiscovery.threshold": QUERIES,
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": QUERIES,
    "spark.sql.codegen.wholeStage.union.enabled": QUERIES,
    "spark.sql.shuffle.partitions": QUERIES,
    "spark.sql.shuffle.orderIndependentChecksum.enabled": QUERIES,
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": QUERIES,
    "spark.sql.adaptive.enabled": TASK,
    "spark.sql.codegen.factoryMode": TASK,
    "spark.sql.codegen.wholeStage": TASK,
    "spark.sql.streaming.minBatchesToRetain": STREAMS,
    "spark.sql.streaming.stopTimeout": STREAMS,
    "spark.sql.streaming.stateStore.maintenanceInterval": STREAMS,
    "spark.sql.optimizer.excludedRules": STREAMS,
}
ONLY_READ = ("result_settings.py", "arrow_frame.py", "plain_scan.py")  # they ask for settings of the session
CORPUS = (
    f"select o.id, c.name, b.name from {S} o left join {P} c on o.customer = c.id left join {P} b on c.boss = b.id",
    f"select product, count(*) as n, sum(amount) as total from {S} group by rollup (product)",
    f"select id from {S} where customer not in (select boss from {P} where boss is not null)",
    f"select a.id, b.id as other from (select id from {R} union all select boss from {P}) a join {R} b on a.id < b.id",
    "select k, y, sum(x) over (partition by k order by x) as s from demo.odd where k is null or x <> 0",
    "select distinct d, n from demo.odd where d > 0 or n is null",
)[:: examples(2, 1)]
STREAM = ("demo__changes_start_to_now.left", "demo__changes_start_to_now.right")
STREAM_CORPUS = (
    f"select a.k, a.x, b.x as y from {STREAM[0]} a join {STREAM[1]} b on a.k = b.k and a.x = b.x",
    f"select a.k, a.x, b.one from {STREAM[0]} a join (select k, 1 one from {STREAM[1]}) b on a.k <=> b.k and 1 = one",
    f"select k, count(*) as n, max(one) as one from (select *, 'p' as one from {STREAM[0]}) group by k, one",
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Tables with NULLs, both zeros and NaN, and two that are streamed."""
    with traced_world(tmp_path_factory.mktemp("settings")) as engine, as_users_run(engine.spark):
        odd = {
            "k": [None, "b", "b", None, "c"],
            "x": [0.0, -0.0, float("nan"), None, 2.5],
            "y": [1, 2, 3, 4, 5],
            "d": pa.array([1, 1, None, -5, 7], pa.decimal128(20, 3)),
            "n": pa.array([None, 1, 1, None, 2], pa.timestamp("us")),
        }
        plain = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
        engine.write("demo.odd", pa.table(odd), plain)
        for name in ("left", "right"):
            engine.write(f"demo.{name}", pa.table({"k": [None, "b", "b"], "x": [1, 1, None]}), plain)
        yield engine


def rows(engine: Engine, sql: str, **more: Any) -> Counter[str]:
    """As texts: NaN is no value that equals itself."""
    return Counter(map(repr, map(tuple, engine.query(sql, **more).collect())))


def made() -> set[str]:
    """Every spark.sql setting that the engine makes or names in code that makes settings."""
    found = {*session.DEFAULT_CONF, *session._LOCAL_CONF, *session._CLUSTER_CONF}
    found |= {*stateful_query._SETTINGS, *stateful_query._CLUSTER_SETTINGS}
    for path in Path(tablestore_engine.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if path.name in ONLY_READ or "spark.sql" not in text:
            assert "conf.set" not in text or "spark.sql" not in text, path.name
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {node.value} if re.fullmatch(r"spark\.sql(\.\w+){2,}", node.value) else set()
    return {one for one in found if one.startswith("spark.sql.")} - {session._CHECKSUM}


def test_every_setting_of_the_product_has_a_proof() -> None:
    """A new spark.sql setting fails here until it is decided; one that is gone leaves the table."""
    assert made() | {"spark.sql.shuffle.partitions", "spark.sql.catalogImplementation"} == set(PROOF)


def test_answers_of_queries_do_not_depend_on_our_settings(engine: Engine) -> None:
    """The corpus gives the same rows with each setting, with none of them, and with Spark's defaults."""
    conf = engine.spark.conf
    ours = {key: session.DEFAULT_CONF.get(key) or session._CLUSTER_CONF.get(key) for key in PROOF}
    ours["spark.sql.shuffle.partitions"] = "4"
    kept = {key: conf.get(key, None) for key, proof in PROOF.items() if proof == QUERIES}
    wanted = [rows(engine, sql) for sql in CORPUS]
    assert all(wanted)
    try:
        for key in kept:
            conf.unset(key)
        assert [rows(engine, sql) for sql in CORPUS] == wanted
        for key in kept:
            conf.set(key, str(ours[key]))
        assert [rows(engine, sql) for sql in CORPUS] == wanted
    finally:
        for key, value in kept.items():
            conf.unset(key) if value is None else conf.set(key, value)


def test_sessions_of_this_suite_interpret_plans_by_day(engine: Engine) -> None:
    """The options of the JVM reach a session that the engine starts; at night nothing is set."""
    started = engine.spark.sparkContext.getConf()
    wanted = dict.fromkeys(INTERPRETED) if is_nightly() else INTERPRETED
    assert {name: started.get(name) for name in INTERPRETED} == wanted


def test_answers_do_not_depend_on_interpreted_plans(engine: Engine) -> None:
    """What the suites of the day run with, and a query in one task, give the rows that users get."""
    conf = engine.spark.conf
    assert conf.get("spark.sql.codegen.wholeStage") == conf.get("spark.sql.adaptive.enabled") == "true"
    wanted = [rows(engine, sql) for sql in CORPUS]
    frames = (in_one_task(engine.query(sql), has_ties=False) for sql in CORPUS)
    assert [Counter(map(repr, map(tuple, one.collect()))) for one in frames] == wanted
    for key, value in INTERPRETED.items():
        conf.set(key, value)
    found = [rows(engine, sql) for sql in CORPUS]
    for key in INTERPRETED:
        conf.unset(key)
    assert found == wanted


@pytest.mark.nightly  # by day random runs of adapter/test_stateful_streaming.py equal one query
@pytest.mark.parametrize("is_ours", [True, False])
def test_answers_of_stateful_queries_do_not_depend_on_our_settings(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, *, is_ours: bool
) -> None:
    """Joins and totals of streams are what the same SQL over the tables gives, with our settings and with Spark's:
    NULL meets no NULL in `=`, constants of a range are no filter of the other side.
    """
    if not is_ours:
        monkeypatch.setattr(stateful_query, "_SETTINGS", {})
    for number, sql in enumerate(STREAM_CORPUS):
        used = [one for one in STREAM if one in sql]
        versions = {one: TableVersion(changes=ChangesBetween(None, 1)) for one in used}
        key = [] if "join" in sql else ["k"]
        mode = OutputMode.APPEND if "join" in sql else OutputMode.UPDATE
        with engine.stateful.run(
            f"demo.t{number}", sql, used, mode=mode, state=None, key=key, versions=versions
        ) as run:
            found = rows(engine, run.select)
        assert found == rows(engine, sql, versions=versions), sql
