"""executors: a table does not notice where its bucket work is done. Spark's context is one that runs groups here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.errors import StorageError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.spark import ship_package, task_placement
from tablestore_engine.spark.executors import Executors
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tests.doses import cases
from tests.unit.store.table_world import changes_of, make_table, put, row, rows_of


@dataclass
class _Slices:
    """An RDD of groups, one after the other in this process, in reversed order as any order may be."""

    work: list[bytes]
    run: Callable[[bytes], Iterator[Any]] | None = None

    def flatMap(self, run: Callable[[bytes], Iterator[Any]]) -> _Slices:
        return _Slices(self.work, run)

    def collect(self) -> list[Any]:
        assert self.run is not None
        return [outcome for group in reversed(self.work) for outcome in self.run(group)]


@dataclass
class _Context:
    defaultParallelism: int = 2  # noqa: N815 - PySpark's name
    jobs: list[int] = field(default_factory=list)

    def getConf(self) -> dict[str, str]:
        return {}

    def parallelize(self, work: list[bytes], slices: int) -> _Slices:
        self.jobs.append(slices)
        assert slices == len(work)
        return _Slices(work)


@dataclass
class _Session:
    """Stands for LazySession and for the session that it gives."""

    sparkContext: _Context = field(default_factory=_Context)  # noqa: N815 - PySpark's name
    is_started: bool = False

    def get(self) -> _Session:
        self.is_started = True
        return self

    def scratch(self) -> Path:
        return Path()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> _Session:
    """Nothing has to be shipped to this process; everything that reads a stored byte is large."""
    monkeypatch.setattr(ship_package, "ship", lambda *_: None)
    monkeypatch.setattr(task_placement, "SMALL_BYTES", 0)
    return _Session()


def _on_executors(root: Path, session: _Session, **table: Any) -> TableStore:
    made = make_table(root, **table)
    return TableStore(made.fileio, made.location, made.runtime, runner=Executors(session))  # type: ignore[arg-type]


def _work(store: TableStore) -> None:
    """Writes with folds, a difference, joins: every kind of task that a writer or a compaction asks for."""
    for turn in range(13):
        put(store, *(row(number, f"t{turn}") for number in range(turn, turn + 9)))
    put(store, *(row(number) for number in range(5, 20)), mode=WriteMode.OVERWRITE_TABLE)
    store.compact(full=True)


@pytest.mark.parametrize("keys", cases([("id",), ()], 1))
def test_the_same_table_on_executors_and_in_threads(
    tmp_path: Path, session: _Session, keys: tuple[str, ...]
) -> None:
    """Equal rows, snapshots and changelogs, of each snapshot; the work really went through jobs."""
    options = {"bucket": "3"} if keys else {}
    there = _on_executors(tmp_path / "executors", session, keys=keys, options=options)
    here = make_table(tmp_path / "threads", keys=keys, options=options)
    for store in (there, here):
        _work(store)
    assert len(session.sparkContext.jobs) >= 3
    assert there.snapshots.list_ids() == here.snapshots.list_ids()
    for one, other in zip(there.snapshots.list_all(), here.snapshots.list_all(), strict=True):
        assert one.commit_kind == other.commit_kind
        assert rows_of(there, one.id) == rows_of(here, one.id)
        assert changes_of(there, one.id) == changes_of(here, one.id)
    assert there.verify() == here.verify() == ()


def test_small_work_starts_no_spark(
    tmp_path: Path, session: _Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the size of a small write everything stays in the driver."""
    monkeypatch.setattr(task_placement, "SMALL_BYTES", 64 << 20)
    store = _on_executors(tmp_path, session)
    _work(store)
    assert not session.is_started
    assert not session.sparkContext.jobs


def test_rows_of_a_write_are_no_reason_for_spark(tmp_path: Path, session: _Session) -> None:
    """An upsert of rows that are in the driver stays there, however large the table is."""
    store = _on_executors(tmp_path, session)
    for turn in range(5):
        put(store, *(row(number, f"t{turn}") for number in range(9)))
    assert not session.is_started


class _FullBucket(LocalFileIO):
    """No room for data files of bucket 1, once that is said. Picklable, as what is sent to workers must be."""

    is_full = False

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Refuses the path with what a full disk is."""
        if self.is_full and "/bucket-1/data-" in path:
            raise StorageError("TS1261", f"no room for {path}", why="test", fix="test")
        return super().open_output(path)


def test_what_a_failed_job_made_is_deleted(tmp_path: Path, session: _Session) -> None:
    """A full disk for one bucket: its error arrives as itself, the table is as before, and no file is left over."""
    fileio = _FullBucket(str(tmp_path))
    store = _on_executors(tmp_path, session, options={"bucket": "3"}, fileio=fileio)
    for turn in range(2):
        put(store, *(row(number, f"t{turn}") for number in range(40)))
    files, rows = set(tmp_path.rglob("*.parquet")), rows_of(store)
    fileio.is_full = True
    with pytest.raises(StorageError, match="TS1261"):
        store.compact(full=True)
    assert session.sparkContext.jobs
    assert set(tmp_path.rglob("*.parquet")) == files
    assert rows_of(store) == rows
    fileio.is_full = False
    store.compact(full=True)
    assert rows_of(store) == rows
    assert store.verify() == ()
