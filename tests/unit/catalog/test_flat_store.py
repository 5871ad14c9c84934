"""A store that names files alone: a name is dropped, cloned and swapped under a hold, and no late write hurts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.orphan_folders import delete_orphan_folder, list_orphan_folders
from tablestore_engine.errors import (
    FixData,
    FixRequest,
    NotFound,
    RetryError,
    StorageError,
    StoreAnswerUnknown,
    TablestoreError,
    Unsupported,
)
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.consumer import Consumer
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.runtime.moments import DAY_MS
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.identity import TABLE_KEY, find_identity
from tablestore_engine.store.metadata.name_hold import LEASE_MS
from tablestore_engine.store.orphan_files.clean_orphans import OrphanRequest
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.verify.table_check import verify_table
from tests.doubles.faults import DyingFileIO, SimulatedCrash, seeded_runtime
from tests.doubles.memory_store import MemoryFileIO
from tests.unit.store.table_world import put, row, rows_of

NAME = Identifier("demo", "t")
OPTIONS = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "num-levels": "9",
}
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("n", pa.int32())])
SEEDS = itertools.count(50)
PLACE = "mem://warehouse/demo.db/t"


@pytest.fixture
def store() -> MemoryFileIO:
    """An empty store."""
    return MemoryFileIO("mem://warehouse", itertools.count(1_700_000_000_000).__next__)


@pytest.fixture
def names(store: MemoryFileIO) -> FilesystemCatalog:
    """Its catalog, with a database."""
    made = catalog(store)
    made.create_database("demo")
    return made


def catalog(fileio: FileIO, runtime: Runtime | None = None) -> FilesystemCatalog:
    """As another process has it."""
    return FilesystemCatalog(fileio, "mem://warehouse", runtime or seeded_runtime(next(SEEDS)))


def create(names: FilesystemCatalog, name: Identifier = NAME) -> TableSchema:
    """An empty table."""
    return names.create_table(name, new_schema(ARROW, primary_keys=["id"], options=OPTIONS))


def make(names: FilesystemCatalog, *ids: int, name: Identifier = NAME) -> None:
    """A table with a snapshot and two schemas."""
    create(names, name)
    put(names.store(name), *map(row, ids or (1,)))
    names.alter_table(name, lambda old: set_options(old, {"num-levels": "6"}))


def ids(names: FilesystemCatalog, name: Identifier = NAME) -> list[int]:
    """The keys that a reader of the name sees."""
    return sorted(int(str(one["id"])) for one in rows_of(names.store(name)))


def age(store: MemoryFileIO, place: str = PLACE) -> None:
    """The process that holds the name has not renewed the hold for the lease."""
    path = TableLayout(place).schema_path(0)
    store.set_modified_ms(path, store.now_ms() - LEASE_MS)


def test_drop_leaves_nothing(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """All files go; the next table of the name begins from nothing; DROP DATABASE takes everything."""
    make(names)
    assert names.drop_table(NAME) is not None
    assert not [path for path in store.objects if path.startswith(f"{PLACE}/")]
    assert not names.has_table(NAME)
    make(names)
    assert names.store(NAME).snapshots.list_ids() == (1, 2)
    names.drop_database("demo", cascade=True)
    assert not [path for path in store.objects if path.startswith("mem://warehouse/demo.db")]


@pytest.mark.parametrize("changes", range(0, 17, 3))
def test_a_drop_that_dies_leaves_the_table_or_none(
    store: MemoryFileIO, names: FilesystemCatalog, changes: int
) -> None:
    """Before the hold all is there; behind it there is no table, and CREATE waits for the lease, then ends the drop."""
    make(names)
    old = find_identity(store, PLACE)
    dying = DyingFileIO(store, seed=1, changes_left=changes)
    with pytest.raises(SimulatedCrash):
        catalog(dying).drop_table(NAME)
    assert find_identity(store, PLACE) == (old if changes == 0 else None)
    if changes == 0:
        assert ids(names) == [1]
        return
    assert not names.has_table(NAME)
    assert names.list_tables("demo") == ()
    with pytest.raises(RetryError, match="TS1368"):
        create(names)
    with pytest.raises(RetryError, match="TS1368"):
        names.drop_table(NAME)
    age(store)
    make(names, 7)
    assert ids(names) == [7]
    assert names.store(NAME).verify() == ()


class Refusing(DyingFileIO):
    """After `allowed` calls that delete, the store refuses them."""

    allowed = 0

    def _refuse(self) -> None:
        if self.allowed == 0:
            raise StorageError(
                "TS1264", "the object store refused it", why="AccessDenied", fix="grant delete"
            )
        self.allowed -= 1

    def delete(self, path: str) -> None:
        """As FileIO."""
        self._refuse()
        super().delete(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """As FileIO."""
        self._refuse()
        super().delete_many(paths)


@pytest.mark.parametrize(
    "work",
    [
        lambda names: names.drop_table(NAME),
        lambda names: names.drop_database("demo", cascade=True),
        lambda names: names.clone_flat(names.store(Identifier("demo", "source")).context, NAME),
        lambda names: names.drop_remains(PLACE + "-left"),
    ],
    ids=["drop", "drop database", "clone", "remains"],
)
def test_store_that_refuses_deletes_leaves_the_table_whole(
    store: MemoryFileIO, names: FilesystemCatalog, work: Callable[[FilesystemCatalog], object]
) -> None:
    """TS1291 before anything is written: not one object is another one afterwards, and the next DROP works."""
    make(names)
    make(names, 3, name=Identifier("demo", "source"))
    store.write(f"{PLACE}-left/data", b"")
    before = dict(store.objects)
    with pytest.raises(
        StorageError, match=r"TS1291[\s\S]*nothing was changed[\s\S]*AccessDenied[\s\S]*grant"
    ):
        work(catalog(Refusing(store)))
    assert store.objects == before
    names.drop_table(NAME)
    assert not names.has_table(NAME)


def test_drop_that_is_refused_in_the_middle_is_ended_later(
    store: MemoryFileIO, names: FilesystemCatalog
) -> None:
    """TS1396 says that no table is left; readers find none, and after the lease the same command deletes the rest."""
    make(names)
    refusing = Refusing(store)
    refusing.allowed = 2  # the check, and the first batch
    with pytest.raises(RetryError, match=r"TS1396[\s\S]*means no table any more[\s\S]*run the same command"):
        catalog(refusing).drop_table(NAME)
    assert not names.has_table(NAME)
    assert [path for path in store.objects if path.startswith(f"{PLACE}/")]
    age(store)
    names.drop_table(NAME)
    assert not [path for path in store.objects if path.startswith(f"{PLACE}/")]


# ---- late writes of a dropped table --------------------------------------------------------------------------------


class LateFileIO(DyingFileIO):
    """`before_put` acts once behind the check of an exclusive create, right before the put of a path with `part`."""

    part = "snapshot-"
    before_put: Callable[[], object] | None = None

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """As FileIO."""

        def checked() -> None:
            if check is not None:
                check()
            action, is_there = self.before_put, self.part in path
            if action is not None and is_there:
                self.before_put = None
                action()

        return self.inner.create_exclusive(path, data, check=checked)


class Interrupted(DyingFileIO):
    """`after_delete` acts once, after the first deletion."""

    after_delete: Callable[[], None] | None = None

    def delete_many(self, paths: Sequence[str]) -> None:
        """As FileIO."""
        action, self.after_delete = self.after_delete, None
        super().delete_many(paths)
        if action is not None:
            action()


def test_a_dropper_that_was_taken_over_deletes_nothing_more(
    store: MemoryFileIO, names: FilesystemCatalog
) -> None:
    """Another process found its hold stale, ended the drop and created the table: the first one reports TS1367."""
    make(names)
    clock = itertools.count(0, LEASE_MS)
    slow = Interrupted(store)

    def taken() -> None:
        age(store)
        make(catalog(store), 5)

    slow.after_delete = taken
    with pytest.raises(RetryError, match="TS1367"):
        catalog(slow, replace(seeded_runtime(3), now_ms=clock.__next__)).drop_table(NAME)
    assert ids(names) == [5]
    assert names.store(NAME).verify() == ()


class Acting(DyingFileIO):
    """Somebody else acts once, at the first call of an operation."""

    def __init__(self, inner: FileIO, operation: str, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self.operation, self.action = operation, [action]

    def delete_many(self, paths: Sequence[str]) -> None:
        """As FileIO."""
        self._act("delete_many")
        super().delete_many(paths)

    def copy(self, source: str, target: str) -> None:
        """As FileIO."""
        self._act("copy")
        super().copy(source, target)

    def _act(self, operation: str) -> None:
        if operation == self.operation and self.action:
            self.action.pop()()


def late(store: MemoryFileIO, part: str, action: Callable[[], object]) -> LateFileIO:
    """A process whose next put of such a path comes late."""
    made = LateFileIO(store)
    made.part, made.before_put = part, action
    return made


def made_anew(store: MemoryFileIO, *commits: int) -> Callable[[], None]:
    """Another process drops the table, creates it again, and commits these keys, one a commit."""

    def act() -> None:
        names = catalog(store)
        names.drop_table(NAME)
        create(names)
        for number in commits:
            put(names.store(NAME), row(number))

    return act


def test_every_snapshot_names_its_table(names: FilesystemCatalog) -> None:
    """Commits, ALTER and compactions carry the identity of their table; a clone carries its own."""
    make(names)
    names.store(NAME).compact(full=True)
    names.clone_flat(names.store(NAME).context, Identifier("demo", "u"))
    for name in (NAME, Identifier("demo", "u")):
        store = names.store(name)
        said = {(one.properties or {}).get(TABLE_KEY) for one in store.snapshots.list_all()}
        assert said == {store.identity}
    assert names.store(NAME).identity != names.store(Identifier("demo", "u")).identity


@pytest.mark.parametrize("commits", [(), (7,), (7, 8), (7, 8, 9)], ids=len)
def test_a_late_claim_hurts_nobody(
    store: MemoryFileIO, names: FilesystemCatalog, commits: tuple[int, ...]
) -> None:
    """It is no success (TS1365); the new table is read and written as if it were not there, and replaces it."""
    make(names)
    other = catalog(late(store, "snapshot-3", made_anew(store, *commits)))
    with pytest.raises(RetryError, match="TS1365"):
        put(other.store(NAME), row(2))
    assert ids(names) == list(commits)
    table = names.store(NAME)
    assert table.snapshots.list_ids() == tuple(range(1, len(commits) + 1))
    assert table.verify() == ()
    for number in (11, 12, 13, 14):
        put(table, row(number))
    assert ids(names) == [*commits, 11, 12, 13, 14]
    assert table.snapshots.list_ids() == tuple(range(1, len(commits) + 5))
    assert table.verify() == ()


def test_a_late_claim_is_skipped_without_hints(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """Where LATEST and EARLIEST are missing or another table's, the listing leaves the foreign snapshot out."""
    make(names)
    other = catalog(late(store, "snapshot-3", made_anew(store, 7)))
    with pytest.raises(RetryError, match="TS1365"):
        put(other.store(NAME), row(2))
    for hint in ("LATEST", "EARLIEST"):
        store.replace(f"{PLACE}/snapshot/{hint}", b"3")
    snapshots = names.store(NAME).snapshots
    assert (snapshots.find_latest_id(), snapshots.find_earliest_id()) == (1, 1)
    assert snapshots.find(3) is None
    assert [one.id for one in snapshots.list_all()] == [1]
    for hint in ("LATEST", "EARLIEST"):
        store.delete(f"{PLACE}/snapshot/{hint}")
    assert (snapshots.find_latest_id(), snapshots.find_earliest_id()) == (1, 1)


def test_a_late_claim_without_a_table_does_not_keep_the_name(
    store: MemoryFileIO, names: FilesystemCatalog
) -> None:
    """The snapshot lands where no table is: CREATE works, and the first commit replaces it."""
    make(names)
    other = catalog(late(store, "snapshot-3", lambda: names.drop_table(NAME)))
    with pytest.raises(RetryError, match="TS1365"):
        put(other.store(NAME), row(2))
    assert not names.has_table(NAME)
    make(names, 4)
    assert ids(names) == [4]


def test_a_late_schema_counts_for_nothing(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """An ALTER of the dropped, empty table lands in the new one: its columns stay, and it can be altered."""
    create(names)
    other = catalog(late(store, "schema-1", made_anew(store, 7)))
    other.alter_table(NAME, lambda old: set_options(old, {"num-levels": "5"}))
    assert names.store(NAME).schema.options["num-levels"] == "9"
    names.alter_table(NAME, lambda old: set_options(old, {"num-levels": "7"}))
    assert names.store(NAME).schema.options["num-levels"] == "7"
    assert ids(names) == [7]


def test_a_late_schema_without_a_table_is_no_table(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """It lands behind the drop: the name means nothing, is not listed, and can be created."""
    create(names)
    other = catalog(late(store, "schema-1", lambda: names.drop_table(NAME)))
    other.alter_table(NAME, lambda old: set_options(old, {"num-levels": "5"}))
    assert (names.has_table(NAME), names.list_tables("demo")) == (False, ())
    make(names, 4)
    assert ids(names) == [4]
    assert names.store(NAME).schema.options["num-levels"] == "6"


def test_a_late_floor_hides_nothing(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """The floor of the dropped table's expiry, and its rollback's mark, do not count in the new one."""
    make(names)
    old = names.store(NAME).snapshots
    made_anew(store, 7, 8)()
    layout = TableLayout(PLACE)
    store.write(layout.floor_path(2, "u"), old.own_mark)
    store.write(layout.keep_path(1), old.own_mark)
    table = names.store(NAME)
    assert (table.snapshots.list_ids(), table.snapshots.find_floor()) == ((1, 2), 0)
    store.write(layout.floor_path(2, "v"), table.snapshots.own_mark)
    assert table.snapshots.list_ids() == (2,)


def test_a_late_tag_is_not_there(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """A tag of the dropped table is neither listed nor found, and its name is free."""
    make(names)
    path = TableLayout(PLACE).tag_path("x")
    names.store(NAME).tags.create("x")
    stored = store.read(path)
    made_anew(store, 7, 8)()
    store.write(path, stored)
    tags = names.store(NAME).tags
    assert dict(tags.list_all()) == {}
    with pytest.raises(NotFound, match="TS1321"):
        tags.get("x")
    assert tags.create("x").snapshot.id == 2
    assert dict(tags.list_all()) == {"x": 2}


def test_a_late_consumer_is_not_there(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """Progress that the dropped table's reader stored does not move the new table's reader of that name."""
    make(names)
    path = TableLayout(PLACE).consumer_path("c")
    context = names.store(NAME).context
    context.consumers.put("c", Consumer(9))
    stored = store.read(path)
    made_anew(store, 7)()
    store.replace(path, stored)
    fresh = names.store(NAME).context.consumers
    assert (fresh.find("c"), fresh.list_all()) == (None, ())
    with pytest.raises(RetryError, match="TS1365"):
        context.consumers.put("c", Consumer(10))
    fresh.put("c", Consumer(2))
    assert fresh.find("c") == Consumer(2)


def test_rename_names_the_way_out(names: FilesystemCatalog) -> None:
    """RENAME needs two names at once: TS1204, and nothing changes."""
    make(names)
    with pytest.raises(Unsupported, match="TS1204"):
        names.rename_table(NAME, Identifier("demo", "u"))
    assert names.list_tables("demo") == ("t",)


def test_an_unused_table_is_dropped_and_a_used_one_comes_back(
    store: MemoryFileIO, names: FilesystemCatalog
) -> None:
    """Under the hold it is looked at again: a commit that came before the hold brings the table back."""
    create(names)
    identity = str(find_identity(store, PLACE))
    assert names.drop_unused(NAME, "another") is None
    assert names.drop_unused(NAME, identity) is not None
    assert not names.has_table(NAME)
    create(names)
    identity = str(find_identity(store, PLACE))
    with pytest.raises(SimulatedCrash):
        catalog(DyingFileIO(store, changes_left=1)).drop_unused(NAME, identity)
    age(store)
    with pytest.raises(FixRequest, match="TS1406"):
        create(names)
    assert find_identity(store, PLACE) == identity


def test_what_a_killed_drop_left_is_found_and_goes(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """Files without a table are an orphan folder once they are old; a table that is created meanwhile stays."""
    make(names)
    with pytest.raises(SimulatedCrash):
        catalog(DyingFileIO(store, changes_left=3)).drop_table(NAME)
    grace = 1_000
    assert list_orphan_folders(names, grace, lambda _: False) == ()
    for path in store.objects:
        if path.startswith(f"{PLACE}/"):
            store.set_modified_ms(path, store.now_ms() - LEASE_MS - grace)
    (found,) = list_orphan_folders(names, grace, lambda _: False)
    assert found.path == PLACE
    delete_orphan_folder(names, found)
    assert not [path for path in store.objects if path.startswith(f"{PLACE}/")]
    make(names, 4)
    delete_orphan_folder(names, found)
    assert ids(names) == [4]


def test_the_age_of_orphan_files_is_the_stores(store: MemoryFileIO, names: FilesystemCatalog) -> None:
    """A machine whose clock is a day ahead takes no young file of another writer for an old one."""
    make(names)
    store.write(
        f"{PLACE}/bucket-0/data-{seeded_runtime(9).new_uuid()}-0.parquet", b"a write that is under way"
    )
    ahead = catalog(store, replace(seeded_runtime(4), now_ms=lambda: store.now_ms() + 2 * DAY_MS))
    request = OrphanRequest(grace_ms=DAY_MS, delete=True)
    assert ahead.store(NAME).orphans(request).found == ()
    report = ahead.store(NAME).orphans(replace(request, grace_ms=0))
    assert [one.kind for one in report.found] == ["data"]


def test_a_claim_never_replaces_a_snapshot_of_its_own_table(
    store: MemoryFileIO, names: FilesystemCatalog
) -> None:
    """A writer whose number was taken by another writer of the table loses: the file stays as it is."""
    make(names)
    context, path = names.store(NAME).context, TableLayout(PLACE).snapshot_path(2)
    before, own = store.read(path), context.snapshots.get(2)
    assert not context.snapshots.claim(replace(own, uuid=seeded_runtime(9).new_uuid()), context.guard.check)
    assert store.read(path) == before


@pytest.mark.parametrize(
    ("damaged", "code"),
    [(lambda whole: whole[:1], "TS1111"), (lambda whole: whole.replace(b'"id"', b'"ie"', 1), "TS1160")],
    ids=["torn", "changed"],
)
def test_a_damaged_first_schema_is_an_error_and_no_empty_table(
    store: MemoryFileIO, names: FilesystemCatalog, damaged: Callable[[bytes], bytes], code: str
) -> None:
    """The identity changes with the file, so the snapshots look like another table's: reading and `verify` tell.

    The newest schema, which readers take, is another file.
    """
    make(names, 1, 2)
    first = TableLayout(PLACE).schema_path(0)
    whole = store.read(first)
    store.delete(first)
    store.write(first, damaged(whole))
    opened = catalog(store).store(NAME)
    assert [one.split(" ")[:2] for one in verify_table(opened.context)] == [["schema-0:", code]]
    with pytest.raises(TablestoreError) as told:
        rows_of(opened)
    assert told.value.code == code


@pytest.mark.parametrize("size", [1, (64 << 20) + 1], ids=["torn", "too large"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_table_whose_schema_cannot_be_read_is_listed_and_can_be_dropped(
    store: MemoryFileIO, names: FilesystemCatalog, number: int, size: int
) -> None:
    """Also one whose file is too large to be read: its name is held by the marks of its content."""
    make(names, 1)
    make(names, 1, name=Identifier("demo", "sound"))
    store.replace(TableLayout(PLACE).schema_path(number), b"{".ljust(size))
    fresh = catalog(store)
    assert fresh.list_tables("demo") == ("sound", "t")
    fresh.drop_table(NAME)
    assert (fresh.list_tables("demo"), store.list(PLACE)) == (("sound",), [])
    assert len(rows_of(fresh.store(Identifier("demo", "sound")))) == 1


def test_a_snapshot_that_takes_the_number_of_a_rolled_back_one_is_read_anew() -> None:
    """At the same time, with the same size: the times of a store may be whole seconds."""
    store = MemoryFileIO("mem://warehouse", lambda: 1_700_000_000_000)
    names = catalog(store)
    names.create_database("demo")
    make(names, 1)
    put(names.store(NAME), row(2))
    reader = names.store(NAME).snapshots
    before, old = reader.list_newest_first()[0], reader.list_all()[-1]
    names.store(NAME).rollback(old.id - 1)
    put(names.store(NAME), row(3))
    after = reader.list_newest_first()[0]
    assert replace(after, mark=before.mark) == before
    assert reader.list_all()[-1].uuid != old.uuid


def test_drop_on_a_store_that_does_not_answer_deletes_nothing(
    names: FilesystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged schema does not stop a DROP; one that cannot be read now does, since it names the table's log."""

    def problem(kind: type[TablestoreError]) -> None:
        def fail(_: TableStore) -> TableSchema:
            raise kind("TS1266", "no answer", why="", fix="")

        monkeypatch.setattr(TableStore, "schema", property(fail))

    make(names, 1)
    problem(StoreAnswerUnknown)
    with pytest.raises(StoreAnswerUnknown):
        names.drop_table(NAME)
    assert names.is_table(NAME)
    problem(FixData)
    assert names.drop_table(NAME) is None
    assert not names.is_table(NAME)


def test_verify_does_not_call_a_store_without_an_answer_damage(
    names: FilesystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it reads: the error is told, and no problem of the table."""
    make(names, 1, 2)
    opened, read = names.store(NAME), MemoryFileIO.read
    for part in ("snapshot-1", "manifest-list-", "/data-"):

        def fail(self: MemoryFileIO, path: str, part: str = part) -> bytes:
            if part in path:
                raise StoreAnswerUnknown("TS1266", "no answer", why="away", fix="again")
            return read(self, path)

        with monkeypatch.context() as patch:
            patch.setattr(MemoryFileIO, "read", fail)
            patch.setattr(MemoryFileIO, "open_input", lambda self, path: pa.BufferReader(self.read(path)))
            context = names.store(NAME).context
            with pytest.raises(StoreAnswerUnknown):
                verify_table(context)
    assert verify_table(opened.context) == ()
