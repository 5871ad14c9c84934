"""Readers in real processes, killed and started again beside writers and expiry: each change once, in order."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tablestore_engine.runtime.outside_world import SYSTEM
from tests.concurrency.test_writers import ROOT, finish
from tests.doses import cases, examples
from tests.unit.store.expiry_world import newest
from tests.unit.store.table_world import make_table, open_table, put, row
from tests.unit.stream.stream_world import fold, state_of

KILLS = examples(2, 8)


def follow(root: Path, folder: Path, mode: str) -> subprocess.Popen[bytes]:
    """A following process."""
    command = [sys.executable, "-m", "tests.concurrency.follower_process", str(root), str(folder), mode]
    return subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stderr=subprocess.PIPE)


@pytest.mark.parametrize("mode", cases(["earliest", "latest-full"], 1))
def test_a_reader_that_is_killed_gets_each_change_once(mode: str, tmp_path: Path) -> None:
    """Killed at any time while two others write, fold and expire all that its consumer does not keep."""
    store = make_table(tmp_path, options={"bucket": "2", "num-levels": "4"}, runtime=SYSTEM)
    folder, chance = tmp_path / "told", random.Random(7)
    folder.mkdir()
    put(store, *(row(key) for key in range(20)))
    follower, killed, turn = follow(tmp_path, folder, mode), 0, 0
    while killed < KILLS:
        ends = time.monotonic() + chance.uniform(0.3, 2.0)
        while time.monotonic() < ends:
            turn += 1
            put(store, *(row(chance.randrange(30), f"v{turn}", key) for key in range(1)), row(100 + turn))
            if turn % 7 == 0 and (tmp_path / "demo.db/t/consumer").exists():
                open_table(tmp_path, runtime=SYSTEM).expire(newest(2))
        if follower.poll() is not None:
            break
        follower.send_signal(signal.SIGKILL)
        follower.communicate()
        killed += 1
        follower = follow(tmp_path, folder, mode)
    last = store.snapshots.find_latest_id() or 0
    (folder / "end").write_text(str(last))
    finish([follower])
    rows = [one for path in sorted(folder.glob("batch-*")) for one in json.loads(path.read_text())["rows"]]
    assert [one["_snapshot_id"] for one in rows] == sorted(one["_snapshot_id"] for one in rows)
    assert fold(Counter(), rows, ("id",)) == state_of(store, last)
    store.expire(newest(1))
    assert len(store.snapshots.list_ids()) == 1
