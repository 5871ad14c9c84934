"""How fresh a table is that follows a topic, and how fast its changes are read as a stream.

Steps      1 a process sends 20,000 change messages a second while `tablestore ingest --follow` writes a keyed table;
           another reader looks every 10 ms how far the newest snapshot has got: of each hundredth message, the time
           from produce() to the first snapshot with it 2 a table of n rows in ten commits: its changes through
           Table.stream, and as SQL in Spark, beside Spark's and pyarrow's plain read of the same rows from parquet
INVARIANT  all messages arrive, rows and sums are compared, or the figures are void.
Usage      python -m benchmarks.streams [seconds] [rows]
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.data import rows_of
from benchmarks.ingest import COLUMNS, PARTITIONS, _message, _Sheet
from tablestore_engine.api import ChangesBetween, Engine, TableSpec, TableVersion, WriteSpec
from tablestore_engine.devservers.kafka_broker import start_broker, stop_broker

T = TypeVar("T")
RATE, KEYS, SAMPLED = 20_000, 200_000, 100
COMMITS, REPEATS = 10, 3
_CHANGES = "bench__changes_start_to_now.t"


class SheetLike(Protocol):
    """Where figures go."""

    facts: dict[str, object]

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""


def measure_streams(sheet: SheetLike, folder: Path, seconds: int, rows: int) -> None:
    """Both."""
    _freshness(sheet, folder / "fresh", seconds)
    _reader(sheet, folder / "read", rows)


# how fresh ----------------------------------------------------------------------------------------------------------


def _freshness(sheet: SheetLike, folder: Path, seconds: int) -> None:
    (folder / "warehouse").mkdir(parents=True)
    url = start_broker(folder / "broker").url
    try:
        admin = AdminClient({"bootstrap.servers": url})
        admin.create_topics([NewTopic("changes", PARTITIONS, 1)])["changes"].result(30)
        following = subprocess.Popen(_ingest(folder, url), stdout=subprocess.DEVNULL)
        time.sleep(3)  # it has begun to follow
        sending = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.streams", "send", url, str(seconds), str(folder)]
        )
        seen = _watch(folder, (sending, following), seconds * RATE)
        following.send_signal(signal.SIGTERM)
        if sending.wait() != 0 or following.wait(60) != 0:
            raise SystemExit("a process failed")
        _check_rows(folder, seconds * RATE)
    finally:
        stop_broker(folder / "broker")
    delays = sorted(_delays(json.loads((folder / "sent.json").read_text()), seen))
    sheet.facts["stream messages a second"] = RATE
    sheet.facts["stream messages"] = seconds * RATE
    sheet.facts["stream commits"] = len(seen)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0)):
        sheet.facts[f"stream freshness {name} s"] = round(
            delays[min(int(len(delays) * share), len(delays) - 1)], 2
        )


def _ingest(folder: Path, url: str) -> list[str]:
    columns = [word for name, kind in COLUMNS.items() for word in ("--column", f"{name}={kind}")]
    words = [
        "debezium-json",
        "--topic",
        "changes",
        "--into",
        "bench.t",
        "--key",
        "id",
        "--decimals",
        "base64",
    ]
    place = ["--bootstrap", url, "--warehouse", str(folder / "warehouse"), "--option", f"bucket={PARTITIONS}"]
    program = [sys.executable, "-m", "tablestore_engine.cli.main", "ingest"]
    return [*program, *words, *columns, *place, "--follow", "--interval", "0.5"]


def send(url: str, seconds: str, folder: str) -> None:
    """In a process of its own: at RATE, a hundredth of a second at a time; notes when sampled messages were sent."""
    producer = Producer({"bootstrap.servers": url, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    sent: list[tuple[int, int, float]] = []
    next_offset = [0] * PARTITIONS  # one producer, in order: what it sends n-th into a partition has offset n
    begin, portion = time.time(), RATE // 100
    for tick in range(int(seconds) * 100):
        time.sleep(max(0.0, begin + tick / 100 - time.time()))
        for number in range(tick * portion, (tick + 1) * portion):
            key = number % KEYS
            partition = key % PARTITIONS
            producer.produce(
                "changes", _message(key, number % 1000, number, "u").encode(), b'{"id":%d}' % key, partition
            )
            if number % SAMPLED in (0, 1):
                sent.append((partition, next_offset[partition], time.time()))
            next_offset[partition] += 1
        producer.poll(0)
    late = time.time() - begin - int(seconds)
    if producer.flush(60) or late > 1:
        raise SystemExit(f"not sent at the rate: {late:.1f} s late")
    (Path(folder) / "sent.json").write_text(json.dumps(sent))


def _watch(
    folder: Path, processes: Sequence[subprocess.Popen[bytes]], messages: int
) -> list[tuple[float, dict[int, int]]]:
    """When which offsets were first seen in a snapshot."""
    seen: list[tuple[float, dict[int, int]]] = []
    with Engine(str(folder / "warehouse")) as engine:
        newest, patience = None, time.time() + 600
        while not seen or sum(seen[-1][1].values()) < messages:
            if time.time() > patience or any(one.poll() not in (None, 0) for one in processes):
                raise SystemExit(f"{seen[-1:]} of {messages} messages were seen")
            time.sleep(0.01)
            table = engine.find_table("bench.t")
            if table is None or table.latest_snapshot_id() in (None, newest):
                continue
            newest = table.latest_snapshot_id()
            seen.append((time.time(), _offsets(table.positions())))
    return seen


def _offsets(positions: object) -> dict[int, int]:
    """Of the only source, a topic: partition → next offset."""
    [text] = dict(positions).values()  # type: ignore[call-overload]
    return {int(partition): int(offset) for partition, offset in json.loads(text)["offsets"].items()}


def _delays(
    sent: Iterable[tuple[int, int, float]], seen: list[tuple[float, dict[int, int]]]
) -> Iterable[float]:
    for partition in range(PARTITIONS):
        turn = iter(seen)
        at, offsets = next(turn)
        for one, offset, moment in sent:
            if one == partition:
                while offsets.get(partition, 0) <= offset:
                    at, offsets = next(turn)
                yield at - moment


def _check_rows(folder: Path, messages: int) -> None:
    with Engine(str(folder / "warehouse")) as engine:
        rows = engine.table("bench.t").scan().to_arrow()
    newest = range(max(0, messages - KEYS), messages)
    expected = len(newest), sum(number % 1000 for number in newest)
    if (rows.num_rows, int(pc.sum(rows["quantity"]).as_py())) != expected:
        raise SystemExit(f"wrong: {rows.num_rows} rows, not {expected}")


# how fast -----------------------------------------------------------------------------------------------------------


def _reader(sheet: SheetLike, folder: Path, rows: int) -> None:
    folder.mkdir(parents=True)
    with Engine(str(folder / "warehouse")) as engine:
        engine.create_database("bench")
        parts = np.array_split(np.random.default_rng(1).permutation(rows), COMMITS)
        tables = [rows_of(keys, seed=number) for number, keys in enumerate(parts)]
        for table in tables:
            engine.write(
                "bench.t", table, WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
            )
        plain = folder / "plain"
        plain.mkdir()
        for number, table in enumerate(tables):
            pq.write_table(table, plain / f"{number}.parquet", compression="zstd")
        expected = rows, sum(int(pc.sum(table["quantity"]).as_py()) for table in tables)
        versions = {_CHANGES: TableVersion(changes=ChangesBetween(None, COMMITS))}
        asked = f"select count(*), sum(quantity) from {_CHANGES}"
        spark = engine.spark
        works: dict[str, Callable[[], tuple[int, int]]] = {
            "stream: Table.stream": lambda: _drain(engine.table("bench.t").stream("earliest", until="now")),
            "stream: changes as SQL": lambda: _pair(engine.sql(asked, versions=versions).rows[0]),
            "stream: pyarrow, plain parquet": lambda: _drain(
                batch for one in sorted(plain.iterdir()) for batch in pq.ParquetFile(one).iter_batches(65_536)
            ),
            "stream: Spark, plain parquet": lambda: _pair(
                spark.read.parquet(str(plain)).selectExpr("count(*)", "sum(quantity)").collect()[0]
            ),
        }
        for _ in range(REPEATS):
            for name, work in works.items():
                if sheet.time(name, work) != expected:
                    raise SystemExit(f"{name} is wrong")
        sheet.facts["stream rows"] = rows


def _drain(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    count = total = 0
    for batch in batches:
        count += batch.num_rows
        total += int(pc.sum(batch["quantity"]).as_py() or 0)
    return count, total


def _pair(row: Iterable[object]) -> tuple[int, int]:
    first, second = row
    return int(str(first)), int(str(second))


def main(seconds: str = "60", rows: str = "4000000") -> None:
    """Figures of both."""
    place, sheet = Path(tempfile.mkdtemp(prefix="streams-")), _Sheet()
    try:
        measure_streams(sheet, place, int(seconds), int(rows))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for name, times in sheet.seconds.items():
        print(f"{name}: {', '.join(f'{int(rows) / one:,.0f}' for one in times)} rows/s")
    print(sheet.facts)


if __name__ == "__main__":
    send(*sys.argv[2:]) if sys.argv[1:2] == ["send"] else main(*sys.argv[1:])
