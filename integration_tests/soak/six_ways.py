"""One history read six ways: whoever reads a table, wherever he begins and however often he stops, has the same table.

Tables     every history is written twice: with a transactional log, and with an eventual one, whose writes fail at
           times when their rows are out already
Ways       1 files: rows at each snapshot, and all changelogs folded
           2 a plain `read_committed` consumer, folded by key (soak/plain_consumer.py)
           3 hybrid: rows of each snapshot, then the log
           4 Table.stream over files and over the log, as the table grows; stopped anywhere, and gone on at its position
             in another engine
           5 the same over the eventual log, normalized
           6 Java Paimon's stream
INVARIANT  expected is what a dictionary says (interop/oracle.py), at every snapshot; a fold is strict: a row that comes
           is not there, one that goes is there and is the same.
INVARIANT  a difference names the seed: `make soak ARGS='six-ways --seed S --count 1'` shows it again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import DYNAMIC, Oracle, Stored
from integration_tests.interop.ours import KINDS, Ours
from integration_tests.interop.rows import arrow_rows, plain_changes
from integration_tests.soak.plain_consumer import Key, Read, consume
from integration_tests.soak.six_histories import Fold, RandomHistory, State, Truth, Turn
from tablestore_engine.api import Engine, Table, TableSpec, TableStream, WriteMode, WriteSpec
from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.stream.key_state import KeyState
from tablestore_engine.stream.log_changes import LogChanges

Counts = Counter[str]


# one history ----------------------------------------------------------------------------------------------------


class SixWays:
    """What histories share."""

    def __init__(self, url: str, folder: Path, java: JavaPaimon) -> None:
        self.url, self.folder, self.java = url, folder, java
        self.failing = False
        log = {"kafka.bootstrap.servers": url}
        self._stack = ExitStack()
        self.engine = Engine(str(folder), log=log, runtime=Runtime(on_crash_point=self._at_point))
        self.other = Engine(str(folder), log=log)

    def __enter__(self) -> Self:
        self._stack.enter_context(self.engine)
        self._stack.enter_context(self.other)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _at_point(self, name: str) -> None:
        if self.failing and name == "commit.manifests":
            raise RetryError("TS1305", "overtaken", why="a test", fix="none")


@dataclass
class _Live:
    """A reader that follows while the table grows."""

    fold: Fold
    words: Mapping[str, Any]
    is_ordered: bool = True
    position: str | None = None
    stream: TableStream | None = None
    stops: int = 0

    def follow(self, engines: Sequence[Engine], name: str, chance: random.Random) -> None:
        """Up to what there is; it stops anywhere, and goes on in whichever engine."""
        truth = self.fold.truth
        if chance.random() < 0.5:
            self._stop()
        while True:
            if self.stream is None:
                start = {"position": self.position} if self.position else {"mode": "earliest"}
                rows = chance.choice((1, 3, 1000))
                table = chance.choice(engines).table(name)
                self.stream = table.stream(**start, **self.words, batch_rows=rows, wait=lambda _: True)
            batch = next(self.stream, None)
            self.position = self.stream.position
            if batch is None:
                break
            self.fold.take_batch(batch, is_ordered=self.is_ordered)
            if chance.random() < 0.2:
                self._stop()
        if self.is_ordered:
            self.fold.reach(truth.newest, truth.schema.names)
        else:
            truth.check(self.fold.rows, truth.newest, truth.schema.names, self.fold.where)
            self.fold.compared += 1

    def _stop(self) -> None:
        if self.stream is not None:
            self.stream.close()
            self.stops += 1
        self.stream = None

    def close(self) -> None:
        """Give what it holds up."""
        if self.stream is not None:
            self.stream.close()


@contextmanager
def _small_memory(chance: random.Random) -> Iterator[None]:
    """Readers of the log take few messages at a time, and remember few keys in memory."""
    portion, keys = LogChanges.__init__.__kwdefaults__, KeyState.__init__.__kwdefaults__
    assert portion is not None
    assert keys is not None
    before = portion["portion_rows"], keys["keys_max"]
    portion["portion_rows"], keys["keys_max"] = (
        chance.choice((20, before[0])),
        chance.choice((4, before[1])),
    )
    try:
        yield
    finally:
        portion["portion_rows"], keys["keys_max"] = before


def read_six_ways(history: RandomHistory, world: SixWays) -> Counts:
    """Raises AssertionError at the first difference."""
    counts: Counts = Counter()
    chance = random.Random(f"readers {history.seed}")
    with _small_memory(chance):
        for name, consistency in (("tx", "transactional"), ("ev", "eventual")):
            counts += _read_table(history, world, f"{name}{history.seed}", consistency, chance)
    return counts


def _read_table(
    history: RandomHistory, world: SixWays, short: str, consistency: str, chance: random.Random
) -> Counts:
    name, where = f"six.{short}", f"seed {history.seed}, {consistency}"
    topic = f"six-{short}-{random.randrange(10**9)}"
    options = {"log.system": "kafka", "log.consistency": consistency, "kafka.topic": topic}
    schema, location = history.schema, world.folder / "six.db" / short
    Ours().create(location, schema)
    spec = TableSpec(primary_key=schema.keys, partition_by=schema.partitions, options=options)
    truth, oracle, kept = Truth(schema), Oracle(schema), {0: {}}
    is_eventual = consistency == "eventual"
    live = [
        _Live(Fold(truth, f"{where}, live over files"), {"read_mode": "file"}),
        _Live(
            Fold(truth, f"{where}, live over the log", is_terse=True),
            {"read_mode": "log"},
            is_ordered=not is_eventual,
        ),
    ]
    engines, counts = (world.engine, world.other), Counter()
    for number, turn in enumerate(history.turns):
        table = engines[turn.by_other].table(name)
        _perform(turn, table, world, oracle, kept, WriteSpec(table=spec))
        truth.evolve(oracle.schema)
        fresh = [one for one in table.snapshot_ids() if one not in kept]
        for one in fresh:
            kept[one] = oracle.state() if one == fresh[-1] else kept[one - 1]
            truth.states[one], truth.schemas[one] = kept[one], oracle.schema
        for reader in live:
            reader.fold.where = f"{reader.fold.where.split(' @')[0]} @ turn {number}"
            reader.follow(engines, name, chance)
        counts["commits"] += len(fresh)
    for reader in live:
        reader.close()
        counts["stops"] += reader.stops
        counts["states"] += reader.fold.compared
    table = world.other.table(name)
    counts["states"] += _read_files(table, truth, where)
    counts["states"] += _consume(world, topic, truth, where, is_eventual=is_eventual)
    counts += _hybrid(table, truth, where, is_eventual=is_eventual)
    counts["states"] += _java(world.java, location, truth, where)
    assert table.verify() == (), where
    world.engine.drop_table(name)
    counts["tables"] += 1
    return counts


def _perform(
    turn: Turn, table: Table, world: SixWays, oracle: Oracle, kept: Mapping[int, State], spec: WriteSpec
) -> None:
    step = turn.step
    if turn.restores is not None:
        number = sorted(kept)[1:][int(turn.restores * (len(kept) - 1))]
        table.restore(snapshot=number)
        oracle.put_back(kept[number])
    elif step.schema is not None:
        Ours().alter(Path(table.store.location), *step.alter)
        oracle.evolve(step.schema)
    elif step.compact:
        table.compact(full=True)
    elif step.overwrite is not None:
        mode = WriteMode.OVERWRITE_PARTITIONS if step.partition == DYNAMIC else WriteMode.OVERWRITE_TABLE
        _write(turn, table, world, arrow_rows(oracle.schema, step.overwrite), replace(spec, mode=mode))
        oracle.overwrite(step.overwrite, step.partition)
    else:
        rows = arrow_rows(oracle.schema, [row for _, row in step.changes])
        kinds = pa.array([int(KINDS[kind]) for kind, _ in step.changes], pa.int8())
        _write(turn, table, world, rows.append_column("_ROW_KIND", kinds), spec)
        oracle.apply(step.changes)


def _write(turn: Turn, table: Table, world: SixWays, rows: pa.Table, spec: WriteSpec) -> None:
    """A write that fails is done again, as dbt and people do."""
    if turn.fails and not turn.by_other:
        world.failing = True
        with suppress(RetryError):
            table.write(rows, spec)
        world.failing = False
    table.write(rows, spec)


# the ways that read it at the end -------------------------------------------------------------------------------


def _read_files(table: Table, truth: Truth, where: str) -> int:
    """Rows of each snapshot in its own columns; all changes, in those of today."""
    for number in sorted(truth.states)[1:]:
        rows = table.scan(snapshot=number).to_arrow()
        fold = Fold(truth, f"{where}, files")
        for kind, values in plain_changes(rows.append_column("k", pa.array(["+I"] * len(rows))), "k"):
            fold.take(kind, rows.column_names, values)
        truth.check(fold.rows, number, None, f"{where}, files")
    fold = Fold(truth, f"{where}, changelogs")
    for batch in table.changes(0).to_batches():
        fold.take_batch(batch)
    fold.reach(truth.newest, truth.schema.names)
    return fold.compared + len(truth.states) - 1


def _consume(world: SixWays, topic: str, truth: Truth, where: str, *, is_eventual: bool) -> int:
    """Messages of an eventual log do not all say their snapshot: folded, they are the newest one."""

    def columns(snapshot: int | None) -> Any:
        return truth.schemas[snapshot or truth.newest].columns

    if is_eventual and len({schema.columns for schema in truth.schemas.values()}) > 1:
        return 0  # whoever reads plainly does not know which columns a row without a snapshot has
    told = list(consume(world.url, topic, Read(columns, truth.schema.keys)))
    places = [truth.newest] if is_eventual else sorted(truth.states)
    for number in places:
        state: dict[Key, Stored] = {}
        for one in told:
            if is_eventual or (one.snapshot or 0) <= number:
                state.pop(one.key, None)
                if one.row is not None:
                    state[one.key] = one.row
        truth.check(state, number, truth.schema.names, f"{where}, plain consumer")
    return len(places)


def _hybrid(table: Table, truth: Truth, where: str, *, is_eventual: bool) -> Counts:
    """From each snapshot; an eventual log may have no place where just this snapshot ends, and says so."""
    counts: Counts = Counter()
    for number in sorted(truth.states)[1:]:
        fold = Fold(truth, f"{where}, hybrid from {number}")
        try:
            stream = table.stream("from-snapshot-full", snapshot_id=number, read_mode="log", until="now")
        except NotFound as error:
            if not is_eventual or error.code != "TS1356":
                raise
            counts["no place"] += 1
            continue
        with stream:
            fold.at = number
            for batch in stream:
                fold.take_batch(batch, is_ordered=not is_eventual)
        if is_eventual:
            fold.at = truth.newest
        fold.reach(truth.newest, truth.schema.names)
        counts["states"] += fold.compared
    return counts


def _java(java: JavaPaimon, location: Path, truth: Truth, where: str) -> int:
    fold, names = Fold(truth, f"{where}, Java's stream"), truth.schema.names
    stream = java.stream(location, columns_of_today=True, scan__mode="from-snapshot", scan__snapshot_id="1")
    for snapshot, changes in stream.poll():
        fold.reach(snapshot - 1, names)
        fold.at = snapshot
        for kind, values in changes:
            fold.take(kind, names, values)
    fold.reach(truth.newest, names)
    return fold.compared
