"""The limits: what the same work costs without any table format, in the same process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import Producer


def arrow_sort_write(source: Path, folder: Path) -> None:
    """Read, split into two by key, sort, write zstd parquet: the floor of any writer in Python."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = pq.read_table(source)
    halves = [rows.filter(pc.equal(pc.bit_wise_and(rows["id"], 1), part)) for part in (0, 1)]

    def write(part: int) -> None:
        half = halves[part]
        order = np.argsort(half["id"].to_numpy(), kind="stable")
        pq.write_table(half.take(pa.array(order)), folder / f"{part}.parquet", compression="zstd")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (0, 1)))


def raw_producer(
    url: str, topic: str, messages: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]]
) -> None:
    """Send ready-made messages in one transaction, lz4, as the engine's client is set up."""
    producer = Producer(
        {
            "bootstrap.servers": url,
            "transactional.id": f"bench-{topic}",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition, key, value, headers in messages:
        while True:
            try:
                producer.produce(topic, value=value, key=key, partition=partition, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
    producer.commit_transaction(120)
