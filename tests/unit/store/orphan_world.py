"""Tables with orphan files, for tests: a history of everything, what can be read of it, cleanings whatever the age."""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tablestore_engine.store.orphan_files.clean_orphans import OrphanReport, OrphanRequest
from tablestore_engine.store.table_store import TableStore
from tests.unit.store.expiry_world import newest, visible
from tests.unit.store.table_world import (
    changes_of,
    delete,
    make_table,
    open_table,
    overwrite,
    put,
    row,
)

AT_ONCE = -(1 << 60)  # the clocks of tests begin anew with each handle
UUID = "0a0b0c0d-1111-4222-8333-444455556666"


def clean(store: TableStore, **more: object) -> OrphanReport:
    """Delete what is left over, whatever its age."""
    return store.orphans(OrphanRequest(grace_ms=AT_ONCE, delete=True, **more))  # type: ignore[arg-type]


def found(store: TableStore) -> OrphanReport:
    """The same, looked at only."""
    return store.orphans(OrphanRequest(grace_ms=AT_ONCE))


def readable(store: TableStore) -> dict[str, object]:
    """Rows of everything, and the changelog of each snapshot."""
    logs = {f"changes {number}": changes_of(store, number) for number in store.snapshots.list_ids()[1:]}
    return {**visible(store), **logs}


def files_of(store: TableStore) -> set[str]:
    """Paths of all files in the folder."""
    root = Path(store.location)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@contextlib.contextmanager
def unchanged(store: TableStore) -> Iterator[None]:
    """What can be read before is read the same behind it."""
    before = readable(open_table(Path(store.location).parents[1]))
    yield
    again = open_table(Path(store.location).parents[1])
    assert readable(again) == before
    assert again.verify() == ()


def history(root: Path) -> TableStore:
    """Vectors, folds, a tag whose snapshot expired, a stage, a rolled back end, a discarded stage: a copy of it."""
    shutil.copytree(_history(), root, dirs_exist_ok=True)
    return open_table(root)


@functools.cache
def _history() -> Path:
    root = Path(tempfile.mkdtemp(prefix="tablestore-history-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    store = make_table(root, options={"manifest.merge-min-count": "3"})
    for number in range(5):
        put(store, row(number % 3, f"v{number}"), row(7))
    delete(store, {"id": 7})
    store.tags.create("old", 2)
    store.expire(newest(3))
    put(store, row(1, "dropped"), stage="no")
    store.staging.discard("no")
    put(store, row(2, "lost"))
    overwrite(store, row(3, "lost"))
    store.rollback(6)
    put(store, row(4, "staged"), stage="gate")
    return root
