"""A drop of a staged snapshot against a write into it, at the moment in which both take the same turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.store.stage.stage_drop import begin_drop
from tests.unit.store.table_world import make_table, open_table, put, row, rows_of


class LateFileIO(LocalFileIO):
    """Another process works just before this one takes a turn."""

    def __init__(self, root: str, work: Callable[[], object]) -> None:
        super().__init__(root)
        self.work = work

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """As LocalFileIO."""
        if "/turn/" in path:
            self.work()
        return super().create_exclusive(path, data, check=check)


def test_a_write_that_took_the_turn_before_the_drop_keeps_its_rows(tmp_path: Path) -> None:
    """The drop was sure that nobody writes, until the turn was gone: it withdraws, and the stage has both writes."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2), stage="run", builds_on_stage=True)
    staged = store.staging.get("run")
    fileio = LateFileIO(
        str(tmp_path), lambda: put(open_table(tmp_path), row(3), stage="run", builds_on_stage=True)
    )
    assert begin_drop(open_table(tmp_path, fileio=fileio).context, staged) is None
    assert not list(tmp_path.rglob("dropping-*"))
    assert rows_of(store.on_staged("run")) == [row(1), row(2), row(3)]
    assert store.staging.publish("run").snapshot_id == 2


def test_a_stage_that_is_gone_is_not_dropped_and_not_made_again(tmp_path: Path) -> None:
    """Another process published or dropped it since the look: no folder comes back."""
    store = make_table(tmp_path)
    put(store, row(1), stage="run")
    staged = store.staging.get("run")
    store.staging.discard("run")
    assert begin_drop(store.context, staged) is None
    assert not list(tmp_path.rglob("branch-*"))


def test_a_mark_of_an_older_staged_snapshot_of_the_name_counts_for_nothing(tmp_path: Path) -> None:
    """It has the uuid of what it was about."""
    store = make_table(tmp_path)
    put(store, row(1), stage="run")
    old = store.staging.get("run")
    drop = begin_drop(store.context, old)
    assert drop is not None
    put(store, row(2), stage="run", commit_user="other")
    assert begin_drop(store.context, old) is None
    assert store.staging.publish("run").snapshot_id == 1
