"""What following a log costs, beside plain consuming of the same topic; how soon a commit is seen.

Steps      1 a table of n rows, a snapshot; n upserts of it behind that, in ten snapshots 2 hybrid: the rows of the
           snapshot, then the log — beside plain parquet of as many rows, and a plain consumer of as many messages
           3 the normalize step alone (benchmarks/normalize.py) 4 commits of 1,000 rows,
           transactional and eventual: from the snapshot's claim to the moment a plain read_committed consumer has the
           last row
INVARIANT  rows and checksums of every read are compared, or the figures are void.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from benchmarks.data import rows_of
from benchmarks.normalize import measure_normalize
from tablestore_engine.api import Engine, Table, TableSpec, WriteReport, WriteSpec
from tablestore_engine.devservers.kafka_broker import start_broker, stop_broker
from tablestore_engine.log.followed_log import Place
from tablestore_engine.runtime.outside_world import Runtime

T = TypeVar("T")
UPSERTS, COMMITS, COMMIT_ROWS = 10, 100, 1_000
_TUNED = {"fetch.queue.backoff.ms": 20}  # by default it rests for a second whenever its queue is full


class SheetLike(Protocol):
    """Where figures go."""

    facts: dict[str, object]
    seconds: dict[str, list[float]]

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""


def measure_log_readers(sheet: SheetLike, folder: Path, rows: int) -> None:
    """Figures under `follow: …`."""
    broker = folder / "broker-of-readers"
    url = start_broker(broker).url
    try:
        _reads(sheet, folder, url, rows)
        for consistency in ("transactional", "eventual"):
            _delays(sheet, folder, url, consistency)
    finally:
        stop_broker(broker)


def _engine(folder: Path, url: str, runtime: Runtime | None = None) -> Engine:
    return Engine(
        str(folder), log={"kafka.bootstrap.servers": url}, **({} if runtime is None else {"runtime": runtime})
    )


def _spec(topic: str, consistency: str) -> WriteSpec:
    options = {"bucket": "2", "log.system": "kafka", "kafka.topic": topic, "log.consistency": consistency}
    return WriteSpec(table=TableSpec(primary_key=("id",), options=options))


# how much -----------------------------------------------------------------------------------------------------------


def _reads(sheet: SheetLike, folder: Path, url: str, rows: int) -> None:
    engine = _engine(folder / "followed", url)
    engine.create_database("bench")
    spec = _spec("followed", "transactional")
    base = rows_of(np.random.default_rng(1).permutation(rows), seed=1)
    engine.write("bench.t", base, spec)
    parts = np.array_split(np.random.default_rng(2).permutation(rows), UPSERTS)
    for number, keys in enumerate(parts):
        engine.write("bench.t", rows_of(keys, seed=10 + number), spec)
    table, plain = engine.table("bench.t"), folder / "followed.parquet"
    pq.write_table(base, plain, row_group_size=500_000, compression="zstd")
    place = _place_behind(table, 1)
    for _ in range(3):
        for normalizes in (False, True):
            name = "follow: hybrid, normalized" if normalizes else "follow: hybrid, messages as they are"
            words = {"snapshot_id": 1, "read_mode": "log", "normalize": normalizes, "until": "now"}
            read = sheet.time(name, lambda words=words: _drain(table.stream("from-snapshot-full", **words)))
            _check(read[0], 3 * rows if normalizes else 2 * rows)
            if normalizes:
                _check(read[1], int(table.scan().to_arrow()["quantity"].to_numpy().astype(np.int64).sum()))
        sheet.time("follow: plain parquet", lambda: _check(pq.read_table(plain).num_rows, rows))
        for name, more in (("as it comes", {}), ("tuned", _TUNED)):
            sheet.time(
                f"follow: plain consumer, {name}",
                lambda more=more: _check(_consume(url, "followed", place, rows, more), rows),
            )
        sheet.time(
            "follow: plain consumer, tuned, that parses each value",
            lambda: _check(_consume(url, "followed", place, rows, _TUNED, parses=True), rows),
        )
    sheet.facts["follow: normalize step alone"] = measure_normalize(folder / "normalized", rows)
    sheet.facts["follow rows"] = rows
    engine.close()


def _place_behind(table: Table, snapshot: int) -> Place:
    log = table.warehouse.logs.follow(table.identifier)
    if log is None:
        raise SystemExit("the table has lost its log")
    with closing(log):
        return next(one for one in log.boundaries() if one.snapshot_id == snapshot).place


def _drain(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    """Rows, and the sum of `quantity` that is left when all are applied."""
    count = total = 0
    for batch in batches:
        count += batch.num_rows
        gone = pc.is_in(batch["_row_kind"], pa.array(["-U", "-D"]))
        signs = np.where(gone.to_numpy(zero_copy_only=False), -1, 1)
        total += int((batch["quantity"].to_numpy(zero_copy_only=False).astype(np.int64) * signs).sum())
    return count, total


def _consume(
    url: str, topic: str, place: Place, count: int, more: Mapping[str, object], *, parses: bool = False
) -> int:
    """Keys and values of so many messages, as anybody reads them; `more`: settings of the client.

    `parses`: with json.loads, which is the least that gives rows.
    """
    consumer = _consumer(url, more)
    consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in place.items()])
    got = size = 0
    while got < count:
        for message in consumer.consume(1_000, timeout=0.1):
            if message.error() is None:
                got += 1
                size += len(message.key() or b"") + len(message.value() or b"")
                if parses:
                    size += len(json.loads(message.value() or b"")["after"])
    consumer.close()
    return got


def _consumer(url: str, more: Mapping[str, object]) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": url,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
            **more,
        }
    )


# how soon -----------------------------------------------------------------------------------------------------------


def _delays(sheet: SheetLike, folder: Path, url: str, consistency: str) -> None:
    claims: list[float] = []

    def at_point(name: str) -> None:
        if name == "commit.claimed":
            claims.append(time.time())

    engine = _engine(folder / consistency, url, Runtime(on_crash_point=at_point))
    engine.create_database("bench")
    spec, topic = _spec(consistency, consistency), consistency
    engine.write("bench.t", rows_of(np.arange(100_000), seed=1), spec)
    behind: list[float] = []
    seen = _Seen(url, topic)
    rng = np.random.default_rng(3)
    for number in range(COMMITS):
        keys = rng.choice(100_000, COMMIT_ROWS, replace=False)
        report: WriteReport = engine.write("bench.t", rows_of(keys, seed=100 + number), spec)
        seen.await_rows((number + 1) * COMMIT_ROWS)
        if report.snapshot_id is None:
            raise SystemExit("a commit made no snapshot")
        behind.append(claims[-1])  # a fold, which has a claim of its own, comes before
    arrived = seen.close()
    engine.close()
    _check(len(arrived), COMMITS * COMMIT_ROWS)
    groups = [arrived[start : start + COMMIT_ROWS] for start in range(0, len(arrived), COMMIT_ROWS)]
    if consistency == "transactional":
        late = [group[-1] - claim for group, claim in zip(groups, behind, strict=True)]
        sheet.facts["follow: last row visible behind the claim, s"] = _summary(late)
    else:
        early = [claim - group[-1] for group, claim in zip(groups, behind, strict=True)]
        sheet.facts["follow: last row visible before the claim, s"] = _summary(early)


def _summary(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "median": round(statistics.median(ordered), 4),
        "p5": round(ordered[len(ordered) * 5 // 100], 4),
        "p95": round(ordered[len(ordered) * 95 // 100], 4),
        "max": round(ordered[-1], 4),
    }


class _Seen:
    """When each message of a topic was there for a plain consumer, from now on."""

    def __init__(self, url: str, topic: str) -> None:
        self._consumer = _consumer(url, {})
        self._consumer.assign([TopicPartition(topic, partition, OFFSET_END) for partition in (0, 1)])
        self._consumer.consume(1, timeout=2.0)  # where the end is, before anything comes
        self._times: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1_000, timeout=0.005):
                if message.error() is None:
                    self._times.append(time.time())

    def await_rows(self, count: int) -> None:
        """Until so many have come; a minute at most."""
        deadline = time.monotonic() + 60
        while len(self._times) < count:
            if time.monotonic() > deadline:
                raise SystemExit(f"{len(self._times)} rows came, expected {count}")
            time.sleep(0.002)

    def close(self) -> list[float]:
        """Times in the order of arrival."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()
        return self._times


def _check(got: int, expected: int) -> None:
    if got != expected:
        raise SystemExit(f"expected {expected}, got {got}: the measurement is void")
