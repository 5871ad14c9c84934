"""Random histories of keyed tables, what they must show, and tables folded out of changes: for soak/six_ways.py."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from integration_tests.interop.oracle import DYNAMIC, Stored
from integration_tests.interop.rows import plain_changes
from integration_tests.interop.scenarios import Step
from integration_tests.interop.schemas import Schema
from integration_tests.soak.plain_consumer import Key
from integration_tests.soak.random_tables import random_schema, random_step

State = Mapping[Key, Stored]


@dataclass(frozen=True)
class Turn:
    """One thing that happens; `restores`: which of the snapshots so far, from 0 to 1; `fails`: an eventual write does,
    just before its claim.
    """

    step: Step = field(default_factory=Step)
    restores: float | None = None
    fails: bool = False
    by_other: bool = False


@dataclass(frozen=True)
class RandomHistory:
    """What the seed decides."""

    seed: int
    schema: Schema
    turns: tuple[Turn, ...]


def random_history(seed: int) -> RandomHistory:
    """The same seed gives the same history."""
    chance = random.Random(f"six ways {seed}")
    schema = random_schema(chance, always_keyed=True)
    buckets = chance.choice((1, 2, 3))
    schema = replace(schema, options={**schema.options, "bucket": str(buckets)})
    turns, current = [], schema
    for number in range(chance.randint(4, 9)):
        if number > 1 and chance.random() < 0.12:
            turns.append(Turn(restores=chance.random()))
            continue
        step = _written_by_api(random_step(current, chance, number))
        current = step.schema or current
        turns.append(Turn(step, fails=chance.random() < 0.15, by_other=chance.random() < 0.15))
    return RandomHistory(seed, schema, tuple(turns))


def _written_by_api(step: Step) -> Step:
    """The API overwrites the partitions of the rows, not one that is named."""
    if step.overwrite is None or not step.partition:
        return step
    return replace(step, partition=DYNAMIC) if step.overwrite else Step(compact=True)


# what must be ---------------------------------------------------------------------------------------------------


@dataclass
class Truth:
    """States by snapshot, from the oracle alone; columns by their names, of which none is given twice."""

    schema: Schema
    states: dict[int, State] = field(default_factory=lambda: {0: {}})
    schemas: dict[int, Schema] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.evolve(self.schema)

    def evolve(self, schema: Schema) -> None:
        """Its columns from now on."""
        self.schema = schema
        self.ids.update({column.name: column.id for column in schema.columns})

    @property
    def newest(self) -> int:
        """Of the snapshots."""
        return max(self.states)

    def key_of(self, row: Stored) -> Key:
        """Of values by column id."""
        return tuple(row[self.ids[name]] for name in self.schema.keys)

    def check(self, got: State, snapshot: int, names: Sequence[str] | None, where: str) -> None:
        """Whether these rows are the snapshot's, in these columns (None: in the snapshot's own)."""
        shown = self.schemas[snapshot].names if names is None and snapshot else names or ()
        ids = [self.ids[name] for name in shown]
        wanted = _projected(self.states[snapshot], ids)
        if wanted != (found := _projected(got, ids)):
            keys = [key for key in {**wanted, **found} if wanted.get(key) != found.get(key)]
            lines = [f"  {key}: expected {wanted.get(key)}, got {found.get(key)}" for key in keys[:3]]
            raise AssertionError("\n".join([f"{where}: snapshot {snapshot}, {len(keys)} keys", *lines]))


def _projected(state: State, ids: Sequence[int]) -> Mapping[Key, Sequence[Any]]:
    return {key: [row.get(one) for one in ids] for key, row in state.items()}


@dataclass
class Fold:
    """A table out of its changes, one after the other; `is_terse`: an update that changes nothing is wrong."""

    truth: Truth
    where: str
    rows: dict[Key, Stored] = field(default_factory=dict)
    at: int = 0
    compared: int = 0
    is_terse: bool = False
    before: Stored | None = None

    def take(self, kind: str, names: Sequence[str], values: Sequence[Any]) -> None:
        """+I and +U bring a row of a key that has none; -U and -D take one that is there, as it is."""
        row = {self.truth.ids[name]: value for name, value in zip(names, values, strict=True)}
        key = self.truth.key_of(row)
        if kind in ("+I", "+U"):
            assert key not in self.rows, f"{self.where}: {kind} of {key}, which is there"
            is_told_twice = self.is_terse and kind == "+U" and self.before == row
            assert not is_told_twice, f"{self.where}: nothing changes of {key}"
            self.rows[key] = row
        else:
            there = self.rows.pop(key, None)
            assert there is not None, f"{self.where}: {kind} of {key}, which is not there"
            same = {one: there.get(one) for one in row}
            assert same == row, f"{self.where}: {kind} of {key}: {row}, it was {same}"
            self.before = row

    def reach(self, snapshot: int, names: Sequence[str]) -> None:
        """Everything up to this snapshot was taken; those in between changed nothing."""
        for number in range(self.at, snapshot + 1):
            if number in self.truth.states:
                self.truth.check(self.rows, number, names, self.where)
                self.compared += 1
        self.at = snapshot

    def take_batch(self, batch: pa.RecordBatch, *, is_ordered: bool = True) -> None:
        """Of a stream; in an ordered one every snapshot is whole when the next one begins."""
        table = pa.Table.from_batches([batch])
        ids = table.column("_snapshot_id").to_pylist()
        names = table.column_names[:-2]
        changes = plain_changes(table.drop_columns(["_snapshot_id"]), "_row_kind")
        for snapshot, (kind, values) in zip(ids, changes, strict=True):
            if is_ordered and snapshot > self.at:
                self.reach(snapshot - 1, names)
                self.at = snapshot
            self.take(kind, names, values)
