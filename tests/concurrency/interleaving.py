"""Several processes on one name, switched at each file operation by a seed: any failing run replays exactly.

Judge      the snapshots of the table that has the name at the end, folded over a dict of each commit's rows, give the
           rows of every one of them; each commit is there at most once; one that was acknowledged is missing only if
           a rollback or a drop ran at the same time or later; one that was refused is not there.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import OutcomeUnknown, TablestoreError
from tablestore_engine.fileio.base import (
    ConditionalStore,
    FileIO,
    FileStatus,
    FolderStore,
    NewFile,
    SeenFile,
    conditional_of,
    folders_of,
    list_hidden,
)
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.schema_change import add_column, describe_column, drop_column
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.name_hold import LEASE_MS
from tablestore_engine.store.retention import Retention
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteRequest
from tests.doubles.faults import SimulatedCrash, seeded_runtime, tree_files
from tests.doubles.memory_store import MemoryFileIO
from tests.unit.store.table_world import COLUMNS, KEYED, Row, as_table, delete, put, row, rows_of

T = TypeVar("T")
NAME = Identifier("demo", "t")
COPY = Identifier("demo", "copy")
KEYS = 5


class Turns:
    """`step` gives the turn away; the scheduler's thread decides who goes on. `kill_rate`: deaths per step."""

    def __init__(self, seed: int, kill_rate: float) -> None:
        self.random = random.Random(seed)
        self.kill_rate = kill_rate
        self.clock = itertools.count(1)
        self._gates: dict[str, threading.Semaphore] = {}
        self._back = threading.Semaphore(0)

    def run(self, works: dict[str, Callable[[], None]]) -> None:
        """Until all are done. Raises what a work raised."""
        problems: list[BaseException] = []

        def body(name: str, work: Callable[[], None]) -> None:
            self._gates[name].acquire()
            try:
                work()
            except BaseException as problem:  # noqa: BLE001 - told to the scheduler's thread below
                problems.append(problem)
            finally:
                del self._gates[name]
                self._back.release()

        self._gates = {name: threading.Semaphore(0) for name in works}
        threads = [threading.Thread(target=body, args=item, daemon=True) for item in works.items()]
        for thread in threads:
            thread.start()
        while self._gates and not problems:
            self._gates[self.random.choice(sorted(self._gates))].release()
            self._back.acquire()
        if problems:
            raise problems[0]

    def step(self, name: str, *, may_die: bool = True) -> None:
        """Let somebody else go on; perhaps die."""
        self._back.release()
        self._gates[name].acquire()
        if may_die and self.random.random() < self.kill_rate:
            raise SimulatedCrash(name)


class SteppingIO:
    """One actor's file system."""

    def __init__(
        self,
        inner: FileIO,
        step: Callable[[], None],
        chance: random.Random,
        stall: Callable[[], None] = lambda: None,
    ) -> None:
        self._inner, self._step, self._random, self._stall = inner, step, chance, stall

    @property
    def folders(self) -> FolderStore | None:
        """As FileIO."""
        return None if self._inner.folders is None else self

    @property
    def conditional(self) -> ConditionalStore | None:
        """As FileIO."""
        return None if self._inner.conditional is None else self

    def read_seen(self, path: str) -> SeenFile:
        """As FileIO."""
        self._step()
        return conditional_of(self._inner).read_seen(path)

    def replace_if(self, path: str, data: bytes, seen: SeenFile) -> bool:
        """As FileIO."""
        self._step()
        self._stall()
        won = conditional_of(self._inner).replace_if(path, data, seen)
        self._step()
        return won

    def read(self, path: str) -> bytes:
        """As FileIO."""
        self._step()
        return self._inner.read(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """As FileIO."""
        return self._inner.open_input(path)

    def list(self, path: str) -> Sequence[FileStatus]:
        """As FileIO."""
        self._step()
        return self._inner.list(path)

    def list_hidden(self, path: str) -> Sequence[FileStatus]:
        """As FileIO."""
        self._step()
        return list_hidden(self._inner, path)

    def exists(self, path: str) -> bool:
        """As FileIO."""
        self._step()
        return self._inner.exists(path)

    def exists_file(self, path: str) -> bool:
        """As FileIO."""
        self._step()
        return self._inner.exists_file(path)

    def size(self, path: str) -> int:
        """As FileIO."""
        return self._inner.size(path)

    def write(self, path: str, data: bytes) -> None:
        """As FileIO."""
        self._step()
        self._inner.write(path, data)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """As FileIO."""
        self._step()
        return self._inner.open_output(path)

    def copy(self, source: str, target: str) -> None:
        """As FileIO."""
        self._inner.copy(source, target)

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """As FileIO; others may go on between the check and the link, and before the answer."""
        self._step()

        def checked() -> None:
            if check is not None:
                check()
            self._step()
            self._stall()

        won = self._inner.create_exclusive(path, data, check=None if check is None else checked)
        self._step()
        return won

    def replace(self, path: str, data: bytes) -> None:
        """As FileIO."""
        self._step()
        self._inner.replace(path, data)

    def mkdirs(self, path: str) -> None:
        """As FileIO."""
        self._step()
        self._inner.mkdirs(path)

    def delete(self, path: str) -> None:
        """As FileIO."""
        self._step()
        self._inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """As FileIO, in any order."""
        for path in self._random.sample(paths, len(paths)):
            self.delete(path)

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """As FileIO, in any order."""
        results = {at: calls[at]() for at in self._random.sample(range(len(calls)), len(calls))}
        return [results[at] for at in range(len(calls))]

    def write_many(self, files: Sequence[NewFile]) -> None:
        """As FolderStore, one after the other: a failure leaves what is written."""
        for one in files:
            self.write(one.path, one.data)
            if one.also is not None:
                self.copy(one.path, one.also)

    def delete_tree(self, path: str) -> None:
        """As FileIO, file by file."""
        for file in tree_files(self._inner, path):
            self.delete(file)
        self._step()
        self._inner.delete_tree(path)

    def rename(self, source: str, target: str) -> bool:
        """As FileIO."""
        self._step()
        return folders_of(self._inner, source, "a rename", "-").rename(source, target)


@dataclass
class Command:
    """What was asked, and what came back. `rows`: key → row, None for a deleted key."""

    kind: str
    user: str
    rows: dict[int, Row | None] = field(default_factory=dict)
    began: int = 0
    ended: int | None = None
    outcome: str = "running"  # done, refused, unknown
    is_nothing: bool = False

    @property
    def is_done(self) -> bool:
        """Acknowledged."""
        return self.outcome == "done"


@dataclass
class World:
    """One seed."""

    root: Path
    seed: int
    kill_rate: float = 0.0
    is_flat: bool = False
    commands: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = Turns(self.seed, self.kill_rate)
        self._users = itertools.count(1)
        self._seeds = itertools.count(self.seed * 1_000 + 1)
        self.plain: FileIO = LocalFileIO(str(self.root))
        if self.is_flat:
            self.plain = MemoryFileIO(str(self.root), itertools.count(1_700_000_000_000).__next__)
        self.catalog(self.plain).create_database("demo")
        self.create(self.plain)
        put(
            self.store(self.plain),
            *[row(key, "first") for key in range(KEYS)],
            commit_user="u0",
            commit_identifier=1,
        )
        self.commands.append(
            Command("write", "u0", {key: row(key, "first") for key in range(KEYS)}, 0, 0, "done")
        )

    def runtime(self, sleep: Callable[[float], None] = lambda _: None) -> Runtime:
        """Ids of its own; a pause gives the turn away."""
        return replace(seeded_runtime(next(self._seeds)), sleep=sleep)

    def catalog(self, fileio: FileIO) -> FilesystemCatalog:
        """Names."""
        return FilesystemCatalog(fileio, str(self.root), self.runtime())

    def store(self, fileio: FileIO, sleep: Callable[[float], None] = lambda _: None) -> TableStore:
        """The table by its name."""
        return TableStore(fileio, store_place(self.root), self.runtime(sleep))

    def create(self, fileio: FileIO) -> None:
        """The table anew."""
        fields = [DataField(0, name, parse_type(text)) for name, text in COLUMNS.items()]
        options = {**KEYED, "num-levels": "5"}
        self.catalog(fileio).create_table(NAME, new_schema(fields, primary_keys=("id",), options=options))

    def command(self, kind: str) -> Command:
        """A new one, begun now."""
        made = Command(kind, f"u{next(self._users)}", began=next(self.turns.clock))
        self.commands.append(made)
        return made

    # ---- what is left --------------------------------------------------------------------------------------

    def judge(self) -> None:
        """See Judge above."""
        store = self.store(self.plain)
        self._end_hold()
        if store.identity is None:
            assert any(one.kind == "recreate" for one in self.commands), "the table vanished"
            return
        assert store.verify() == ()
        self._judge_copy()
        for staged in store.staging.list_all():
            assert store.on_staged(staged.name).verify() == (), f"staged {staged.name}"
        snapshots = store.snapshots.list_all()
        expired = self._expired(snapshots)
        assert [one.id for one in snapshots] == list(range(expired + 1, expired + len(snapshots) + 1)), (
            "ids have a gap"
        )
        state: dict[int, Row] = {}
        by_user = {one.user: one for one in self.commands}
        seen: set[str] = set()
        for snapshot in snapshots:
            if expired and snapshot is snapshots[0]:
                state = content(store, snapshot)  # what it was made of has expired
            elif snapshot.commit_user in by_user and snapshot.commit_kind is not CommitKind.COMPACT:
                command = by_user[snapshot.commit_user]
                assert snapshot.commit_user not in seen, f"{command} is there twice"
                assert command.outcome != "refused", f"{command} is there"
                seen.add(snapshot.commit_user)
                state = {key: one for key, one in {**state, **command.rows}.items() if one is not None}
            assert content(store, snapshot) == state, f"rows of snapshot {snapshot.id}"
        if snapshots:
            assert counts(store.schema, snapshots[-1]), "a schema counts that no snapshot names"
        for command in self.commands:
            if command.rows and command.is_done and not command.is_nothing and command.user not in seen:
                if expired:
                    continue  # it may have expired; what counts of it is in the rows of the first snapshot
                assert self._is_undone(command), f"{command} is lost"

    def _judge_copy(self) -> None:
        """A clone is whole: one of its states, or one that an actor has written into it."""
        self._end_hold("copy")
        copy = TableStore(self.plain, store_place(self.root, "copy"), self.runtime())
        if copy.identity is not None:
            assert copy.verify() == ()
            rows_of(copy)

    def _expired(self, snapshots: Sequence[Snapshot]) -> int:
        """How many snapshots of the table are gone."""
        first = snapshots[0].id if snapshots else 1
        assert first == 1 or any(one.kind == "expire" for one in self.commands), "snapshots vanished"
        return first - 1

    def _end_hold(self, name: str = "t") -> None:
        """Of a process that died: stale by now."""
        path = TableLayout(store_place(self.root, name)).schema_path(0)
        if isinstance(self.plain, MemoryFileIO) and self.plain.exists(path):
            self.plain.set_modified_ms(path, self.plain.now_ms() - LEASE_MS)
            with suppress(TablestoreError):
                self.catalog(self.plain).end_hold(Identifier("demo", name))

    def _is_undone(self, command: Command) -> bool:
        return any(
            other.kind in ("rollback", "recreate") and (other.ended is None or other.ended > command.began)
            for other in self.commands
        )


def store_place(root: Path, name: str = "t") -> str:
    """Of the table."""
    return f"{root}/demo.db/{name}"


def counts(schema: TableSchema, newest: Snapshot) -> bool:
    """Named by the snapshot; or made by an ALTER of the table while it was empty, which is complete in itself."""
    return schema.id == newest.schema_id or (schema.claim is None and schema.id > newest.schema_id)


def content(store: TableStore, snapshot: Snapshot) -> dict[int, Row]:
    """Key → row, without columns that ALTERs added."""
    rows = rows_of(store, snapshot.id)
    assert all(one[name] is None for one in rows for name in one if name not in COLUMNS)
    return {int(str(one["id"])): {name: one[name] for name in COLUMNS} for one in rows}


@dataclass
class Actor:
    """A process with a handle of its own, which it keeps until it dies."""

    world: World
    name: str
    kinds: Sequence[str]
    count: int

    def run(self) -> None:
        """Its commands, one after the other."""
        store = self._open()
        for _ in range(self.count):
            command = self.world.command(self.world.turns.random.choice(self.kinds))
            try:
                self._do(store, command)
                command.outcome = "done"
            except OutcomeUnknown:
                command.outcome = "unknown"
            except TablestoreError:
                command.outcome = "refused"
            except SimulatedCrash:
                command.outcome = "unknown"
                store = self._open()
            command.ended = next(self.world.turns.clock)

    def _open(self) -> TableStore:
        turns = self.world.turns
        stall = self._sleep_long if self.world.is_flat else lambda: None
        self.fileio = SteppingIO(self.world.plain, lambda: turns.step(self.name), turns.random, stall)
        return self.world.store(self.fileio, lambda _: turns.step(self.name, may_die=False))

    def _sleep_long(self) -> None:
        """Sometimes so long that others drop and create the table: a put on its way knows nothing of it."""
        turns = self.world.turns
        for _ in range(turns.random.choice((0, 0, 0, 200))):
            turns.step(self.name, may_die=False)

    def _do(self, store: TableStore, command: Command) -> None:
        match command.kind:
            case "write":
                self._write(store, command)
            case "widen":
                self._widen(store, command)
            case "stage":
                self._write(store, command, stage=f"gate_{self.name}")
                store.staging.publish(f"gate_{self.name}")
            case "alter":
                store.alter(self._change)
            case "compact":
                store.compact(full=True)
            case "rollback":
                ids = store.snapshots.list_ids()
                store.rollback(self.world.turns.random.choice(ids or (1,)))
            case "recreate":
                with suppress(TablestoreError):
                    self.world.catalog(self.fileio).drop_table(NAME)
                self.world.create(self.fileio)
            case "clone":
                with suppress(FileNotFoundError):
                    self.world.catalog(self.fileio).clone_flat(store.context, COPY)
            case "tag":
                name = f"tag_{self.world.turns.random.randint(1, 2)}"
                if name in store.tags.list_all():
                    store.tags.delete(name)
                else:
                    store.tags.create(name)
            case "expire":
                store.expire(Retention(keep_min=1, keep_max=2, retained_ms=0, grace_ms=0, limit=None))
            case "read":
                self._read(store)

    def _batch(self, command: Command) -> tuple[list[Row], list[Row]]:
        chance = self.world.turns.random
        keys = chance.sample(range(KEYS), chance.randint(1, 3))
        kept = [row(key, command.user, chance.randint(0, 9)) for key in keys[1:]]
        command.rows = {int(str(one["id"])): one for one in kept}
        if chance.random() < 0.5:
            kept.append(row(keys[0], command.user))
            command.rows[keys[0]] = kept[-1]
            return kept, []
        command.rows[keys[0]] = None
        return kept, [row(keys[0])]

    def _write(self, store: TableStore, command: Command, **request: object) -> None:
        kept, gone = self._batch(command)
        identity = {"commit_user": command.user, "commit_identifier": 1, **request}
        if gone and not kept:
            report = delete(store, *gone, **identity)
            command.is_nothing = not report.deleted  # the key was not there: no snapshot is needed
            return
        schema = store.schema
        kinds = pa.array([0] * len(kept) + [3] * len(gone), pa.int8())
        store.write(WriteRequest(as_table([*kept, *gone], schema), kinds=kinds, **identity))  # type: ignore[arg-type]

    def _widen(self, store: TableStore, command: Command) -> None:
        kept, gone = self._batch(command)
        schema = store.schema
        changed = replace(add_column(schema, f"w_{command.user}", parse_type("INT")), id=schema.id + 1)
        kinds = pa.array([0] * len(kept) + [3] * len(gone), pa.int8())
        store.write(
            WriteRequest(
                as_table([*kept, *gone], changed),
                kinds=kinds,
                new_schema=changed,
                identity=store.identity,
                commit_user=command.user,
                commit_identifier=1,
            )
        )

    def _change(self, schema: TableSchema) -> TableSchema:
        chance = self.world.turns.random
        added = [name for name in schema.field_names if name not in COLUMNS]
        if added and chance.random() < 0.4:
            return drop_column(schema, added[0])
        if chance.random() < 0.4:
            return describe_column(schema, "name", f"by {self.name}")
        return add_column(schema, f"a_{next(self.world.turns.clock)}", parse_type("INT"))

    def _read(self, store: TableStore) -> None:
        """A reader never sees columns that its snapshot does not name."""
        plan = store.plan_scan()
        if plan.snapshot is not None:
            assert counts(plan.schema, plan.snapshot)
            with suppress(FileNotFoundError):  # dropped while it is read
                store.read(plan)
