"""Real processes on one table: everybody succeeds, in some order, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.table_store import TableStore
from tests.doses import cases
from tests.doubles.reference_model import Key, ModelTable, Row, content_of
from tests.unit.store.table_world import make_table, open_table, rows_of

ROOT = Path(__file__).resolve().parents[2]
COMMITS = 6


def start(root: Path, writer: int, mode: str, **env: str) -> subprocess.Popen[bytes]:
    """A writing process."""
    command = [
        sys.executable,
        "-m",
        "tests.concurrency.writer_process",
        str(root),
        str(writer),
        str(COMMITS),
        mode,
    ]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **env}, stderr=subprocess.PIPE)


def finish(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait for all; each must have succeeded."""
    for process in processes:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error.decode()[-2000:]


@pytest.mark.parametrize("writers", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_writers_on_one_bucket_all_succeed(tmp_path: Path, writers: int) -> None:
    """Each commit is one snapshot; changelogs, applied in order, give the final rows."""
    make_table(tmp_path, runtime=SYSTEM)
    finish([start(tmp_path, writer, "upsert") for writer in range(writers)])
    store = open_table(tmp_path)
    assert store.verify() == ()
    appends = [one for one in store.snapshots.list_all() if one.commit_kind == "APPEND"]
    assert len(appends) == writers * COMMITS
    rows = content_of(rows_of(store), ("id",))
    assert len([key for key in rows if int(str(key[0])) >= 1_000]) == writers * COMMITS
    assert replay(store) == rows


def replay(store: TableStore) -> dict[Key, Row]:
    """Apply every changelog row in order; each must fit what is there."""
    model = ModelTable(("id",))
    for snapshot in store.snapshots.list_all():
        for batch in ChangelogReader(store.context).read(snapshot):
            for one in batch.rows.to_pylist():
                kind, key = one.pop("_ROW_KIND"), (one["id"],)
                if kind in (1, 3):
                    assert model.rows.pop(key) == one
                else:
                    assert key not in model.rows
                    model.rows[key] = one
    return model.rows


def test_appending_writers_lose_nothing(tmp_path: Path) -> None:
    """Append-only rows of two processes are all there."""
    make_table(tmp_path, keys=(), runtime=SYSTEM)
    finish([start(tmp_path, writer, "append") for writer in range(2)])
    store = open_table(tmp_path)
    assert len(rows_of(store)) == 2 * COMMITS
    assert store.verify() == ()


@pytest.mark.parametrize(
    "point", cases(["write.data_files", "commit.manifests", "commit.claimed", "commit.done"], 1)
)
def test_a_killed_writer_does_not_disturb_the_other_and_goes_on(tmp_path: Path, point: str) -> None:
    """SIGKILL at a crash point beside a second writer; the killed command run again converges, each commit once."""
    make_table(tmp_path, runtime=SYSTEM)
    killed = start(tmp_path, 0, "upsert", TABLESTORE_CRASH_AT=f"{point}:3")
    other = start(tmp_path, 1, "upsert")
    killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGKILL
    finish([other, start(tmp_path, 0, "upsert")])
    store = open_table(tmp_path)
    assert store.verify() == ()
    by_writer = [one.commit_user for one in store.snapshots.list_all() if one.commit_kind == "APPEND"]
    assert sorted(by_writer) == ["w0"] * COMMITS + ["w1"] * COMMITS
    assert replay(store) == content_of(rows_of(store), ("id",))


@pytest.mark.nightly  # by day the other writers here; test_interleavings.py
@pytest.mark.parametrize("point", cases(["commit.claimed", "write.data_files", "commit.manifests"], 1))
def test_compactions_beside_a_writer(tmp_path: Path, point: str) -> None:
    """While a process writes and leaves folds to others, one that compacts is killed, then two compact at once. Nothing
    is lost, no fold changes a row, and a further compaction leaves one run.
    """
    make_table(tmp_path, runtime=SYSTEM, options={"tablestore.compaction": "dedicated"})
    finish([start(tmp_path, 0, "upsert")])
    writer = start(tmp_path, 1, "upsert")
    killed = start(tmp_path, 2, "compact", TABLESTORE_CRASH_AT=f"{point}:1")
    killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGKILL
    finish([writer, *(start(tmp_path, number, "compact") for number in (3, 4))])
    store = open_table(tmp_path)
    assert store.verify() == ()
    assert len([one for one in store.snapshots.list_all() if one.commit_kind == "APPEND"]) == 2 * COMMITS
    store.compact(full=True)
    assert len(store.plan_scan().files) == 1
    assert replay(store) == content_of(rows_of(store), ("id",))
    assert store.verify() == ()
