"""Spark reads a table on an S3 server natively and by Arrow, beside plain Parquet of the same rows on the same server.

Steps      a server → a keyed table with dead rows, and plain Parquet of what is visible of it, both written over the
           server → four queries, plain, native and portable in turn in one session → docs/performance.json
INVARIANT  all three give the same count and sums for each query, or the run fails.
Usage      python -m benchmarks.store_reads [--small]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row

from benchmarks.store_bench import run_on_server
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec
from tablestore_engine.devservers.hadoop_jars import fetch_s3_jars
from tablestore_engine.fileio.object_store import ObjectFileIO
from tablestore_engine.fileio.store_address import parse_address
from tablestore_engine.spark.spark_settings import ReadWay

_TABLE, _AGAIN, _BUCKETS = "demo.t", 3, 12
GOALS = {"native": 1.3, "portable": 3.0}
_QUERIES: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "three sums": lambda rows: rows.selectExpr("count(*)", "sum(amount)", "sum(score)"),
    "group by a text": lambda rows: rows.groupBy("city").agg({"amount": "sum", "*": "count"}),
    "one key": lambda rows: rows.where("id = 77").selectExpr("count(*)", "sum(amount)"),
    "all columns": lambda rows: rows.selectExpr("count(*)", "sum(hash(*))"),
}
Reading = Callable[[str], DataFrame]


def some_rows(ids: np.ndarray, round_: int) -> pa.Table:
    """Eight columns."""
    return pa.table(
        {
            "id": ids,
            "amount": pa.array(ids * 7 % 100_000),
            "score": pa.array((ids % 1000) / 8.0),
            "city": [f"city {number % 500}" for number in ids.tolist()],
            "name": [f"customer {number % 50_000}" for number in ids.tolist()],
            "flag": pa.array(ids % 2 == 0),
            "day": pa.array((ids % 3650).astype(np.int32), pa.int32()).cast(pa.date32()),
            "round": pa.array(np.full(len(ids), round_, np.int32)),
        }
    )


def fill(engine: Engine, place: str, count: int) -> str:
    """A fifth of the rows is written again; the place of the plain files."""
    spec = WriteSpec(
        table=TableSpec(primary_key=("id",), options={"bucket": str(_BUCKETS)}), mode=WriteMode.UPSERT
    )
    engine.write(_TABLE, some_rows(np.arange(count, dtype=np.int64), 0), spec)
    engine.write(_TABLE, some_rows(np.arange(0, count, 5, dtype=np.int64), 1), spec)
    visible, files = engine.table(_TABLE).scan().to_arrow(), ObjectFileIO(parse_address(place))
    size = -(-visible.num_rows // _BUCKETS)
    for number in range(_BUCKETS):
        with files.open_output(f"{files.root}/plain/part-{number}.parquet") as sink:
            pq.write_table(visible.slice(number * size, size), sink, compression="zstd")
    return f"{files.root}/plain".replace("s3://", "s3a://", 1)


def _plain(engine: Engine, folder: str) -> DataFrame:
    session = engine.query("select 1").sparkSession
    options = engine._warehouse.resolver.reads.places
    reader = session.read.options(**({} if options is None else dict(options.options)))
    return reader.parquet(folder)


def _timed(make: Callable[[], DataFrame]) -> tuple[float, list[Row]]:
    started = time.monotonic()
    rows = make().collect()
    return time.monotonic() - started, sorted(rows, key=str)


def measure(place: str, count: int) -> dict[str, dict[str, float]]:
    """Seconds, and ratios to plain Parquet, by query and way: medians."""
    ways = (ReadWay.NATIVE, ReadWay.PORTABLE)
    engines = {
        way: Engine(
            place, spark=SparkSettings("local[2]", read_way=way, more_jars=lambda: fetch_s3_jars(print))
        )
        for way in ways
    }
    folder = fill(engines[ReadWay.NATIVE], place, count)
    found: dict[str, dict[str, float]] = {}
    for name, query in _QUERIES.items():
        makers: dict[str, Callable[[], DataFrame]] = {
            "plain": lambda query=query: query(_plain(engines[ReadWay.NATIVE], folder)),  # type: ignore[misc]
            **{
                way.value: lambda query=query, way=way: query(engines[way].query(_text(query)))  # type: ignore[misc]
                for way in ways
            },
        }
        seconds: dict[str, list[float]] = {way: [] for way in makers}
        for turn in range(_AGAIN + 1):
            answers = []
            for way, make in makers.items():
                taken, rows = _timed(make)
                answers.append(rows)
                if turn:
                    seconds[way].append(taken)
            if any(one != answers[0] for one in answers):
                raise SystemExit(f"{name}: the answers differ: {[one[:2] for one in answers]}")
        medians = {way: statistics.median(all_) for way, all_ in seconds.items()}
        ratios = {f"{way}_ratio": medians[way] / medians["plain"] for way in makers if way != "plain"}
        found[name] = {key: round(value, 2) for key, value in {**medians, **ratios}.items()}
        sys.stdout.write(f"{name}: {found[name]}\n")
    return found


def _text(query: Callable[[DataFrame], DataFrame]) -> str:
    """Conditions of a frame come too late for an Arrow read: what is asked stands in the text."""
    return _TEXTS[next(name for name, one in _QUERIES.items() if one is query)]


_TEXTS = {
    "three sums": f"select amount, score from {_TABLE}",
    "group by a text": f"select city, amount from {_TABLE}",
    "one key": f"select id, amount from {_TABLE} where id = 77",
    "all columns": f"select * from {_TABLE}",
}


def main() -> None:
    """Measure and record."""
    run_on_server(
        __doc__, "store reads", lambda at, count, _: {"goals": GOALS, "queries": measure(at("w"), count)}
    )


if __name__ == "__main__":
    main()
