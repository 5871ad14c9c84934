"""`kill -9` of a driver between the steps of a batch: the next start gives every row once and commits nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration_tests.spark.streams import Shop
from tablestore_engine.api import TableSpec, WriteSpec

EVENTS = WriteSpec(TableSpec())
BATCHES = 7
# what is there at last when the driver is killed, in the checkpoint or in the target's folder
POINTS = (
    "c/offsets/0",
    "c/offsets/1",
    "warehouse/demo.db/copy/snapshot/snapshot-2",
    "c/commits/2",
    "c/offsets/5",
)


def start(shop: Shop) -> subprocess.Popen[bytes]:
    """A driver with a session of its own."""
    words = [
        sys.executable,
        "-m",
        "integration_tests.spark.stream_child",
        shop.engine.warehouse,
        shop.checkpoint(),
    ]
    log = (shop.folder / "child.log").open("ab")
    return subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)


def kill_at(shop: Shop, path: Path) -> None:
    """As soon as the file is there: driver and JVM at once; Python workers end when they find nobody."""
    child = start(shop)
    deadline = time.monotonic() + 240
    while not path.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert path.exists(), (shop.folder / "child.log").read_text()[-3000:]
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@pytest.mark.nightly
def test_a_killed_driver_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Killed five times; tables without a key, so that a row that comes twice would be seen."""
    shop = Shop(None, tmp_path)  # type: ignore[arg-type]  # the children have sessions
    for number in range(BATCHES - 1):
        shop.put((number, "a"), (number, "b"), spec=EVENTS)
    spec = EVENTS.table
    shop.engine.create_table(
        "demo.copy",
        shop.table.schema.arrow_schema(),
        primary_key=spec.primary_key,
        partition_by=spec.partition_by,
        options=spec.options,
    )
    for point in POINTS:
        kill_at(shop, tmp_path / point)
    shop.put((BATCHES - 1, "a"), spec=EVENTS)
    child = start(shop)
    assert child.wait(timeout=240) == 0, (tmp_path / "child.log").read_text()[-3000:]
    copy = shop.engine.table("demo.copy")
    commits = [one for one in copy.snapshots() if one.commit_kind == "APPEND"]  # files are joined in between
    assert [one.commit_identifier for one in commits] == list(range(BATCHES))
    assert len({one.commit_user for one in commits}) == 1
    rows = [sorted(table.scan().to_arrow().to_pylist(), key=repr) for table in (copy, shop.table)]
    assert rows[0] == rows[1]
    assert copy.verify() == ()
    (consumer,) = shop.table.consumers()
    assert consumer.next_snapshot >= BATCHES
