"""demo.orders with a log, written by processes that are killed at failpoints; what a copy of it has to be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.runtime.outside_world import CRASH_ENV

NAME = "demo.orders"
Rows = Mapping[int, tuple[str, float]]
# where a writer is killed: rows that no snapshot has, a transaction without end, a snapshot that is not published
KILLS = {
    "transactional": ("log.rows:1", "log.marker:1", "commit.done:1", "log.committed:1"),
    "eventual": ("log.early:2", "commit.manifests:1", "log.marker:1"),
}


class OrderLog:
    """One table and its topic."""

    def __init__(
        self, folder: Path, url: str, consistency: str, *, is_keyed: bool = True, **options: str
    ) -> None:
        """With orders 0 to 11, the first of which is updated, the next deleted, and a new one."""
        self.folder, self.url, self.topic = folder, url, f"orders-{uuid.uuid4().hex[:12]}"
        self.engine = Engine(str(folder), log={"kafka.bootstrap.servers": url})
        self.consistency, self._writers = consistency, 0
        made = {
            "log.system": "kafka",
            "kafka.topic": self.topic,
            "log.consistency": consistency,
            "bucket": "2",
        }
        key = ("order_id",) if is_keyed else ()
        spec = WriteSpec(table=TableSpec(primary_key=key, options={**made, **options}))
        rows = {
            "order_id": list(range(12)),
            "customer": [f"first {one}" for one in range(12)],
            "amount": [one / 4 for one in range(12)],
        }
        self.engine.write(NAME, pa.table(rows), spec)
        self.put(0, "updated", 20)
        self.delete(1)
        self.put(50, "new", 21)

    def put(self, order: int, customer: str, amount: float) -> None:
        """Write one order."""
        row = {"order_id": [order], "customer": [customer], "amount": [float(amount)]}
        self.engine.write(NAME, pa.table(row), WriteSpec())

    def delete(self, order: int) -> None:
        """Delete one order."""
        self.engine.table(NAME).delete(f"order_id = {order}")

    def write(self, writes: int = 2, *, crash: str = "") -> None:
        """Random changes by a process of its own, which is killed at `crash`."""
        self._writers += 1
        command = [sys.executable, "-m", "integration_tests.docs.orders_writer", str(self.folder), self.url]
        done = subprocess.run(
            [*command, f"w{self._writers}", str(writes)],
            env={**os.environ, CRASH_ENV: crash},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == (-signal.SIGKILL if crash else 0), done.stderr

    def publish(self) -> None:
        """Send or withdraw what a killed process left."""
        self.engine.table(NAME).publish()

    def rows(self, snapshot: int | None = None) -> Rows:
        """What a copy should be."""
        scanned = self.engine.table(NAME).scan(snapshot=snapshot).to_arrow().to_pylist()
        return {row["order_id"]: (row["customer"], row["amount"]) for row in scanned}

    def published_rows(self) -> Rows:
        """The table at the newest snapshot that the log has."""
        status = self.engine.table(NAME).log_status()
        assert status is not None
        return self.rows(status.state.reached)
