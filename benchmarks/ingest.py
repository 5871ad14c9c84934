"""Messages of Debezium in a topic → a committed keyed table, beside a plain consumer of the same topic in the same run.

Steps      1 n messages of about 400 bytes with their source block, without schemas 2 ours: the whole topic into a new
           table 3 plain: a consumer that takes key and value of each message
INVARIANT  rows and the sum of a column are compared with what was sent, or the figures are void.
Usage      python -m benchmarks.ingest [messages] [folder]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow.compute as pc
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tablestore_engine.api import Engine, IngestSpec
from tablestore_engine.devservers.kafka_broker import start_broker, stop_broker

T = TypeVar("T")
PARTITIONS, REPEATS = 2, 3
TUNED = {"fetch.queue.backoff.ms": 20}  # as ours: by default it rests for a second whenever its queue is full
COLUMNS = {
    "id": "BIGINT",
    "customer": "STRING",
    "quantity": "INT",
    "price": "DECIMAL(10,2)",
    "at": "TIMESTAMP(6)",
    "note": "STRING",
}
_SOURCE = (
    '"source":{"version":"3.5.0.Final","connector":"postgresql","name":"shop","ts_ms":1700000000000,"snapshot":"false",'
    '"db":"shop","sequence":"[\\"1\\",\\"2\\"]","ts_us":1700000000000000,"schema":"public","table":"orders","txId":5,'
    '"lsn":%d,"xmin":null},"transaction":null,"op":"%s","ts_ms":1700000000000}'
)


class SheetLike(Protocol):
    """Where figures go."""

    facts: dict[str, object]

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""


def measure_ingest(sheet: SheetLike, folder: Path, messages: int) -> None:
    """Figures under `ingest: …`."""
    broker = folder / "broker-of-ingest"
    url = start_broker(broker).url
    try:
        total = _fill(url, "changes", messages)
        for attempt in range(REPEATS):
            place = folder / f"ingested-{attempt}"
            spec = IngestSpec(
                format="debezium-json",
                into="bench.t",
                topic="changes",
                key=("id",),
                columns=COLUMNS,
                decimals="base64",
                options={"bucket": str(PARTITIONS)},
            )
            with Engine(str(place), log={"kafka.bootstrap.servers": url}) as engine:
                report = sheet.time(
                    "ingest: debezium-json into a table", lambda engine=engine, spec=spec: engine.ingest(spec)
                )
                rows = engine.table("bench.t").scan().to_arrow()
                got = int(pc.sum(rows["quantity"]).as_py())
                if (report.messages, rows.num_rows, got) != (messages, messages // 2, total):
                    raise SystemExit(
                        f"wrong: {report.summary()}, {rows.num_rows} rows, sum {got}, not {total}"
                    )
            taken = sheet.time("ingest: plain consumer", lambda: _consume(url, "changes", messages))
            if taken != messages:
                raise SystemExit(f"the consumer got {taken} messages")
        sheet.facts["ingest messages"] = messages
        sheet.facts["ingest commits"] = report.commits
    finally:
        stop_broker(broker)


def _fill(url: str, topic: str, messages: int) -> int:
    """Inserts of all keys, then updates; the sum of `quantity` at the end."""
    admin = AdminClient({"bootstrap.servers": url})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer(
        {"bootstrap.servers": url, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    total = 0
    for number in range(messages):
        key = number % (messages // 2)
        is_first = number < messages // 2
        quantity = key % 100 + (0 if is_first else 1)
        total += 0 if is_first else quantity
        value = _message(key, quantity, number, "c" if is_first else "u").encode()
        producer.produce(topic, value, b'{"id":%d}' % key, key % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("messages were not sent")
    return total


def _message(key: int, quantity: int, number: int, op: str) -> str:
    row = {
        "id": key,
        "customer": f"customer {key % 5000}",
        "quantity": quantity,
        "price": "A3g=",
        "at": 1_700_000_000_000_000 + number,
        "note": "x" * 20,
    }
    return f'{{"before":null,"after":{json.dumps(row, separators=(",", ":"))},' + _SOURCE % (number, op)


def _consume(url: str, topic: str, count: int) -> int:
    """Keys and values of so many messages."""
    consumer = Consumer(
        {
            "bootstrap.servers": url,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20,
            **TUNED,
        }
    )
    consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
    got = size = 0
    while got < count:
        for message in consumer.consume(1_000, timeout=0.1):
            if message.error() is None:
                got += 1
                size += len(message.key() or b"") + len(message.value() or b"")
    consumer.close()
    return got


class _Sheet:
    """Prints."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.seconds: dict[str, list[float]] = {}

    def time(self, name: str, work: Callable[[], T]) -> T:
        begin = time.perf_counter()
        result = work()
        self.seconds.setdefault(name, []).append(time.perf_counter() - begin)
        return result


def main(messages: str = "1000000", folder: str | None = None) -> None:
    """Messages per second of each, best of three."""
    place, sheet = Path(folder or tempfile.mkdtemp(prefix="ingest-")), _Sheet()
    try:
        measure_ingest(sheet, place, int(messages))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for name, seconds in sheet.seconds.items():
        told = ", ".join(f"{int(messages) / one:,.0f}" for one in seconds)
        print(f"{name}: {told} messages/s")
    print(sheet.facts)


if __name__ == "__main__":
    main(*sys.argv[1:])
