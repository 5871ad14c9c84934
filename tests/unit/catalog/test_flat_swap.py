"""Clones and swaps on a store that names files alone: the name means the old relation or the new one, whole."""

from __future__ import annotations

import pytest

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.table_swap import REPLACES
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.errors import RetryError, TablestoreError
from tablestore_engine.fileio.base import FileIO
from tests.doubles.faults import DyingFileIO, SimulatedCrash
from tests.doubles.memory_store import MemoryFileIO
from tests.unit.catalog import test_flat_store as flat
from tests.unit.catalog.test_flat_store import NAME, PLACE, age, catalog, create, ids, make
from tests.unit.store.table_world import put, row

COPY = Identifier("demo", "copy")
COPY_PLACE = "mem://warehouse/demo.db/copy"
store, names = flat.store, flat.names


def replacement(names: FilesystemCatalog, *keys: int) -> None:
    """A whole table that waits to take the place of what has the name."""
    state = names.table_swap(NAME).state()
    create(names, NAME.replacement)
    put(names.store(NAME.replacement), *map(row, keys), properties={REPLACES: state})


def seen(fileio: FileIO) -> object:
    """What a reader in another process finds under the name."""
    try:
        names = catalog(fileio)
        if names.has_table(NAME):
            assert names.store(NAME).verify() == ()
            return ids(names)
        view = names.views.find(NAME)
    except RetryError as error:
        return error.code
    return None if view is None else view.sql


def changes_of(store: MemoryFileIO, work: object) -> int:
    """How many changes a work makes when nobody stops it; the store is as before."""
    kept, probe = dict(store.objects), DyingFileIO(store)
    work(probe)  # type: ignore[operator]
    store.objects.clear()
    store.objects.update(kept)
    return 1_000_000 - probe.changes_left


# ---- clone -----------------------------------------------------------------------------------------------------------


def clone(fileio: FileIO) -> None:
    """The table under another name."""
    names = catalog(fileio)
    names.clone_flat(names.store(NAME).context, COPY)


def test_a_clone_is_a_table_of_its_own(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """It has the rows, goes on by itself, and outlives the source."""
    make(names, 1, 2)
    clone(store)
    names.drop_table(NAME)
    put(names.store(COPY), row(3))
    assert ids(names, COPY) == [1, 2, 3]
    assert names.store(COPY).verify() == ()


@pytest.mark.parametrize("has_old", [False, True], ids=["free", "taken"])
def test_a_clone_that_dies_is_no_table(
    store: MemoryFileIO, names: FilesystemCatalog, *, has_old: bool
) -> None:
    """At each change: the old table, nothing, or the clone, whole; the next clone succeeds when the hold is stale."""
    make(names, 1, 2)
    if has_old:
        make(names, 9, name=COPY)
    start, outcomes = dict(store.objects), set()
    for left in range(changes_of(store, clone)):
        store.objects.clear()
        store.objects.update(start)
        with pytest.raises(SimulatedCrash):
            clone(DyingFileIO(store, changes_left=left))
        found = catalog(store)
        outcome = tuple(ids(found, COPY)) if found.has_table(COPY) else None
        outcomes.add(outcome)
        if f"{COPY_PLACE}/schema/schema-0" in store.objects:
            age(store, COPY_PLACE)
        clone(store)
        assert ids(found, COPY) == [1, 2]
        assert found.store(COPY).verify() == ()
    assert outcomes == ({None, (9,)} if has_old else {None})


def test_of_a_clone_and_a_create_one_wins(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """CREATE while the clone copies: the clone is refused (TS1368), the new table is whole."""
    make(names, 1, 2)
    slow = flat.Acting(store, "copy", lambda: create(catalog(store), COPY))
    with pytest.raises(RetryError, match="TS1368"):
        clone(slow)
    assert ids(names, COPY) == []
    slow = flat.Acting(store, "delete_many", lambda: refused(lambda: create(catalog(store), COPY)))
    clone(slow)
    assert ids(names, COPY) == [1, 2]


def refused(work: object) -> None:
    """The name is held, or taken."""
    with pytest.raises(TablestoreError, match=r"TS1368|TS1406"):
        work()  # type: ignore[operator]


# ---- swap ------------------------------------------------------------------------------------------------------------


def swap(fileio: FileIO) -> None:
    """The replacement takes its place."""
    catalog(fileio).table_swap(NAME).take_place()


@pytest.mark.parametrize("old", ["table", "view"])
def test_a_replacement_takes_the_place(store: MemoryFileIO, names: FilesystemCatalog, old: str) -> None:
    """The name means the new table, whose commits go on; nothing waits; what was replaced is known until cleared."""
    has_old(names, old)
    replacement(names, 7, 8)
    swap(store)
    assert seen(store) == [7, 8]
    assert names.views.find(NAME) is None
    assert not names.is_table(NAME.replacement)
    put(names.store(NAME), row(9))
    assert ids(names) == [7, 8, 9]
    assert names.store(NAME).verify() == ()
    found = names.table_swap(NAME)
    assert (found.is_cleared(), found.replaced_schema() is not None) == (False, old == "table")
    found.clear()
    assert found.is_cleared()
    assert names.list_tables("demo") == ("t",)


def has_old(names: FilesystemCatalog, old: str) -> None:
    """What has the name."""
    if old == "table":
        make(names, 1)
        names.store(NAME).tags.create("kept")
    else:
        names.put_view(NAME, ViewDefinition("select 1"))


@pytest.mark.parametrize("old", ["table", "view"])
def test_a_swap_that_dies_is_ended_or_undone(store: MemoryFileIO, names: FilesystemCatalog, old: str) -> None:
    """At each change a reader sees the old relation, the new one, or is told to wait; after the lease one of both."""
    has_old(names, old)
    replacement(names, 7, 8)
    start, before = dict(store.objects), seen(store)
    outcomes = []
    for left in range(changes_of(store, swap)):
        store.objects.clear()
        store.objects.update(start)
        with pytest.raises(SimulatedCrash):
            swap(DyingFileIO(store, changes_left=left))
        at_once = seen(store)
        assert at_once in (before, [7, 8], "TS1368")
        if at_once == "TS1368":
            age(store)
        after = seen(store)
        assert after in (before, [7, 8])
        outcomes.append(after)
        if after == before:
            swap(store)
        assert seen(store) == [7, 8]
    assert outcomes == sorted(outcomes, key=lambda one: one == [7, 8]), (
        "once the new one, then never the old one"
    )
    assert {str(one) for one in outcomes} == {str(before), "[7, 8]"}


def test_a_commit_to_the_old_table_refuses_the_swap(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """Before the swap, and while it copies: TS1480, and the old table has the commit."""
    make(names, 1)
    replacement(names, 7)
    put(names.store(NAME), row(2))
    with pytest.raises(RetryError, match="TS1480"):
        swap(store)
    assert seen(store) == [1, 2]
    names.drop_table(NAME.replacement)
    replacement(names, 7)
    with pytest.raises(RetryError, match="TS1480"):
        swap(flat.Acting(store, "copy", lambda: put(names.store(NAME), row(3))))
    assert seen(store) == [1, 2, 3]


def test_a_late_claim_of_the_old_table_is_no_success(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """Its check passed, the swap came, its put lands: TS1365, and the new table is as it was."""
    make(names, 1)
    replacement(names, 7)
    other = catalog(flat.late(store, "snapshot-3", lambda: swap(store)))
    with pytest.raises(RetryError, match="TS1365"):
        put(other.store(NAME), row(2))
    assert seen(store) == [7]
    put(names.store(NAME), row(8))
    put(names.store(NAME), row(9))
    assert seen(store) == [7, 8, 9]


def test_the_place_is_the_tables(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """No file of the old table is left in the place, but what the new one names."""
    make(names, 1)
    old = {path for path in store.objects if path.startswith(f"{PLACE}/") and "schema-0" not in path}
    replacement(names, 7)
    swap(store)
    shared = ("snapshot-1", "LATEST", "EARLIEST")
    assert not [path for path in old & set(store.objects) if not path.endswith(shared)]
