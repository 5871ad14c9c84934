"""Every merge engine against Java Paimon: the same batches, by each of us alone and by both in turns, give equal rows.

Judge      a table that only Java writes, compacting with every commit; no test says what the rows must be.
Batches    keys repeat within a batch and over batches, so that versions meet in the write buffer, in level 0 and below.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import Kinded
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Change, Row, arrow_rows, assert_same
from integration_tests.interop.schemas import Schema, Type, schema

FULLY = {"write-only": "false"}
_KEYS, _BATCH, _BATCHES = 12, 14, 6


@dataclass(frozen=True)
class Engine:
    """Columns besides `id`, options, and what kinds of rows a batch may have.

    form   hides orders that Java leaves open
    """

    columns: Mapping[str, Type]
    options: Mapping[str, str]
    kinds: tuple[str, ...] = ("+I",)
    form: Callable[[Sequence[Row]], list[Row]] = list
    vectors: bool = True
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """With the key `id`, in two buckets."""
        vectors = {"deletion-vectors.enabled": str(self.vectors).lower(), "changelog-producer": "lookup"}
        return schema(
            {"id": "BIGINT", **self.columns}, keys=("id",), options={"bucket": "2", **vectors, **self.options}
        )

    def batch(self, chance: random.Random) -> list[Kinded]:
        """Rows of repeated keys; a value is NULL in one of four."""
        return [
            (
                chance.choice(self.kinds),
                {"id": chance.randrange(_KEYS), **{name: self._value(name, chance) for name in self.columns}},
            )
            for _ in range(_BATCH)
        ]

    def _value(self, name: str, chance: random.Random) -> Any:
        return None if chance.random() < 0.25 else chance.choice(self.values[name])


ENGINES: dict[str, Engine] = {
    "first-row": Engine(
        {"text": "STRING", "n": "INT"},
        {"merge-engine": "first-row"},
        vectors=False,
        values={"text": "abcdef", "n": range(9)},
    ),
    "first-row-ignoring": Engine(
        {"text": "STRING", "n": "INT"},
        {"merge-engine": "first-row", "ignore-delete": "true"},
        kinds=("+I", "+U", "-U", "-D"),
        vectors=False,
        values={"text": "abcdef", "n": range(9)},
    ),
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """One entry of ENGINES."""
    return ENGINES[request.param]


class Table:
    """One table of one engine; each write is a batch of both forms."""

    def __init__(self, location: Path, engine: Engine, java: JavaPaimon) -> None:
        self.location, self.engine, self.java, self.us = location, engine, java, Ours()

    def ours(self, batch: Sequence[Kinded]) -> None:
        """We commit."""
        rows = arrow_rows(self.engine.schema, [row for _, row in batch])
        self.us.write(self.location, rows, [kind for kind, _ in batch], duplicates="last")

    def theirs(self, batch: Sequence[Kinded], options: Mapping[str, str] | None = None) -> None:
        """Java commits; without FULLY it leaves level 0 in a write-only table."""
        rows = arrow_rows(self.engine.schema, [row for _, row in batch])
        self.java.write(self.location, rows, [kind for kind, _ in batch], options=options)

    def check(self, expected: Sequence[Row], where: str) -> None:
        """Both readers show these rows; our own checks find nothing."""
        for reader in (self.java, self.us):
            shown = self.engine.form(reader.read(self.location))
            assert_same(expected, shown, f"{reader.name} reads {where}")
        assert self.us.store(self.location).verify() == (), where

    def rows(self) -> list[Row]:
        """As Java reads them."""
        return self.engine.form(self.java.read(self.location))


@pytest.mark.parametrize("seed", [1, 2])
def test_our_tables_and_java_s_have_equal_rows(
    java: JavaPaimon, engine: Engine, tmp_path: Path, seed: int
) -> None:
    """The same batches in a table of ours and in one of Java's, each read by both; compactions change nothing."""
    chance = random.Random(seed)
    ours, theirs = (Table(tmp_path / "m.db" / name, engine, java) for name in ("ours", "theirs"))
    ours.us.create(ours.location, engine.schema)
    java.create(theirs.location, engine.schema)
    for number in range(_BATCHES):
        batch = engine.batch(chance)
        theirs.theirs(batch)
        expected = theirs.rows()
        ours.ours(batch)
        ours.check(expected, f"ours after batch {number}")
        theirs.check(expected, f"theirs after batch {number}")
    ours.us.compact(ours.location)
    java.compact(theirs.location)
    ours.check(expected, "ours, compacted by us")
    theirs.check(expected, "theirs, compacted by Java")
    java.compact(ours.location)
    ours.check(expected, "ours, compacted by Java")


@pytest.mark.parametrize("seed", [3, 4])
def test_a_table_written_in_turns_has_the_rows_of_java_alone(
    java: JavaPaimon, engine: Engine, tmp_path: Path, seed: int
) -> None:
    """Our commits, Java's in level 0 (several at once), Java's with its compaction: rows and changelog are right."""
    chance = random.Random(seed)
    shared, judge = (Table(tmp_path / "m.db" / name, engine, java) for name in ("shared", "judge"))
    shared.us.create(shared.location, engine.schema)
    java.create(judge.location, engine.schema)
    for number in range(_BATCHES):
        batches = [engine.batch(chance) for _ in range(3)]
        for batch in batches:
            judge.theirs(batch)
        shared.theirs(batches[0])
        shared.theirs(batches[1])
        shared.ours(batches[2])
        shared.check(judge.rows(), f"the shared table after round {number}")
        batch = engine.batch(chance)
        judge.theirs(batch)
        shared.theirs(batch, FULLY)
        shared.check(judge.rows(), f"the shared table after Java wrote round {number}")
    told = _told(java, shared)
    assert_same(engine.form(_replayed(told)), judge.rows(), "the changelog, as Java streams it")


def _told(java: JavaPaimon, table: Table) -> list[Change]:
    stream = java.stream(table.location, scan__mode="from-snapshot", scan__snapshot_id="1")
    return [change for _, batch in stream.poll() for change in batch]


def _replayed(told: Sequence[Change]) -> list[Row]:
    """The rows after a changelog; what is retracted was there."""
    rows: dict[Any, Row] = {}
    for kind, row in told:
        if kind in ("-U", "-D"):
            assert rows.pop(row[0]) == row
        else:
            assert row[0] not in rows
            rows[row[0]] = row
    return list(rows.values())
