"""Publishing against a raw transactional producer that sends the very same bytes, on the same broker.

Usage      python -m benchmarks.kafka [--rows 500000] [--rounds 5]: seconds, processor seconds of this process, and the
           ratio of their medians
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from benchmarks import limits
from benchmarks.data import rows_of
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import start_broker, stop_broker
from tablestore_engine.log.decode import LogMessage

T = TypeVar("T")


class SheetLike(Protocol):
    """Where figures go."""

    facts: dict[str, object]

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""


def measure_kafka(sheet: SheetLike, folder: Path, rows: int, rounds: int = 2) -> None:
    """ours: changelog files -> JSON -> one transaction with markers; raw: ready bytes -> one transaction."""
    broker = folder / "broker"
    url = start_broker(broker).url
    engine = Engine(str(folder / "kafka-warehouse"), log={"kafka.bootstrap.servers": url})
    try:
        engine.create_database("bench")
        for attempt in range(rounds):
            name, topic = f"bench.t{attempt}", f"bench{attempt}"
            options = {"bucket": "2", "log.system": "kafka", "kafka.topic": topic}
            spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options), publish=False)
            engine.write(name, rows_of(np.arange(rows), seed=attempt), spec)
            table = engine.table(name)
            report = sheet.time("kafka: ours", table.publish)
            messages = table.log_messages()
            ranges = {} if report.log is None else report.log.ranges
            if len(messages) != rows or sum(after - first for first, after in ranges.values()) != rows:
                raise SystemExit(f"the topic has {len(messages)} messages, not {rows}")
            ready = [(m.partition, m.key, m.value, _headers(m)) for m in messages]
            sheet.time(
                "kafka: raw producer", lambda ready=ready, topic=topic: limits.raw_producer(url, topic, ready)
            )
        sheet.facts["kafka rows"] = rows
    finally:
        engine.close()
        stop_broker(broker)


def _headers(message: LogMessage) -> list[tuple[str, bytes]]:
    """The four headers that the engine sent with the row."""
    kind = "" if message.kind is None else message.kind.short_string
    texts = {"s": str(message.snapshot_id), "c": str(message.commit), "k": kind, "q": str(message.sequence)}
    return [(name, text.encode()) for name, text in texts.items()]


class _Turns:
    """A sheet for the command alone: (wall, processor) seconds by name."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.seconds: dict[str, list[tuple[float, float]]] = {}

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""
        began, used = time.perf_counter(), time.process_time()
        result = work()
        self.seconds.setdefault(name, []).append((time.perf_counter() - began, time.process_time() - used))
        return result


def main(argv: list[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked, sheet = parser.parse_args(argv), _Turns()
    with tempfile.TemporaryDirectory() as folder:
        measure_kafka(sheet, Path(folder), asked.rows, asked.rounds)
    ours, raw = (
        [statistics.median(one[at] for one in sheet.seconds[name]) for at in (0, 1)]
        for name in ("kafka: ours", "kafka: raw producer")
    )
    for name, mine, theirs in zip(("wall", "processor"), ours, raw, strict=True):
        print(f"{name}: ours {mine:.2f} s, raw {theirs:.2f} s, raw / ours {theirs / mine:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
