"""Writers killed between the claim of a snapshot and the hint of its Iceberg metadata, before any operation on files.

Whatever they left, Iceberg's newest version is a state of the table and at most one commit behind, every listed state
is as our own plan has it, and the next commit makes it complete.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.fileio.base import NewFile
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.unit.store.expiry_world import newest
from tests.unit.store.iceberg_world import (
    assert_complete,
    hinted,
    iceberg_table,
    listed,
    metadata,
    planned,
    snapshot_ids,
    sync,
)
from tests.unit.store.table_world import delete, open_table, put, row

KILLS = [("2", 2), ("3", 2), *(pytest.param(one, 150, marks=pytest.mark.nightly) for one in ("2", "3"))]
LAST = 14  # operations after the claim, at most
CHANGES = ("write", "create_exclusive", "replace", "delete", "delete_many")
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.unit.store.iceberg_world", "tests.unit.store.table_world"])


class KilledFileIO:
    """A folder; once armed, the process is killed before the n-th change of a file."""

    def __init__(self, root: str, nth: int) -> None:
        self._real, self._left, self.armed = LocalFileIO(root), nth, False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in CHANGES:
            return found

        def change(*words: Any, **more: Any) -> Any:
            if self.armed:
                self._left -= 1
                if self._left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return found(*words, **more)

        return change

    @property
    def folders(self) -> KilledFileIO:
        """Its own changes, too."""
        return self

    def write_many(self, files: Sequence[NewFile]) -> None:
        """One after the other, each of which may be the last."""
        for one in files:
            for path in filter(None, (one.path, one.also)):
                self.write(path, one.data)


def commit(root: str, number: int, nth: int) -> None:
    """A commit of this number, and its metadata; the process dies after the claim."""
    fileio = KilledFileIO(root, nth)

    def passed(point: str) -> None:
        fileio.armed = fileio.armed or point == "commit.claimed"

    store = open_table(root, runtime=replace(SYSTEM, on_crash_point=passed), fileio=fileio)  # type: ignore[arg-type]
    change(store, number)
    sync(store)


def change(store: Any, number: int) -> None:
    """Rows that replace some, rows that are deleted, or an expiry besides."""
    if number % 4 == 3:
        delete(store, {"id": number % 7})
    else:
        put(store, *(row(one % 11, f"{number}") for one in range(number, number + 5)))
    if number % 10 == 9:
        store.expire(newest(4))


@pytest.mark.parametrize(("version", "kills"), KILLS)
def test_a_killed_writer_leaves_iceberg_right_and_at_most_one_behind(
    tmp_path: Path, version: str, kills: int
) -> None:
    """Each kill is followed by a look, and by a commit that lives. A writer that ends first is no kill."""
    store = iceberg_table(tmp_path, options={"bucket": "2", "metadata.iceberg.format-version": version})
    put(store, *(row(one) for one in range(11)))
    sync(store)
    chance, killed, number = random.Random(f"kills {version}"), 0, 0
    behind = set()
    while killed < kills:
        child = PROCESSES.Process(target=commit, args=(str(tmp_path), number, chance.randint(1, LAST)))
        child.start()
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
        killed += child.exitcode != 0
        reopened = open_table(tmp_path)
        last = reopened.snapshots.find_latest_id() or 0
        for value in (metadata(reopened), hinted(reopened)):
            behind.add(last - value["current-snapshot-id"])
            for known in set(snapshot_ids(value)) & set(reopened.snapshots.list_ids()):
                assert listed(reopened, known, value) == planned(reopened, known)
        change(reopened, number + 1)
        sync(reopened)
        assert_complete(open_table(tmp_path))
        number += 1
        assert number <= 4 * kills
    assert behind <= {0, 1}
