"""Flink and we write one table in turns: rows, changelog and files agree after each round (decision 0105).

Waiting    what Flink writes to a table with `write-only` lies in level 0: no reader shows it before we compact it
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.flink_tables import FlinkTables
from integration_tests.interop.oracle import Kinded, Oracle
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import Change, arrow_rows, assert_same
from integration_tests.interop.sample_data import ALL_TYPES, make_rows
from integration_tests.interop.schemas import Schema, Type, schema
from tests.doses import examples

pytestmark = pytest.mark.nightly  # 190 MB of jars
SEED = int(os.environ.get("TABLESTORE_SEED", "739580"))
COLUMNS = {"id": "BIGINT", **ALL_TYPES}


class SharedWithFlink:
    """One table with two writers, and the oracle that follows both. `waiting`: what Flink left in level 0."""

    def __init__(self, flink: FlinkTables, location: Path, made: Schema) -> None:
        """An empty table of ours, and one for the rows that Flink inserts."""
        self.flink, self.location, self.us = flink, location, Ours()
        self.fresh = location.with_name("fresh")
        self.oracle = Oracle(made)
        self.us.create(location, made)
        self.us.create(self.fresh, schema({one.name: one.type for one in made.columns}))
        self.changes: list[Change] = []
        self.waiting: list[Kinded] = []

    def ours(self, changes: Iterable[Kinded]) -> None:
        """We commit; level 0 is compacted before."""
        listed = list(changes)
        rows = arrow_rows(self.oracle.schema, [row for _, row in listed])
        self.us.write(self.location, rows, [kind for kind, _ in listed])
        self._compacted()
        self.changes += self.oracle.apply(listed)

    def compact(self) -> None:
        """As `tablestore compact` does."""
        self.us.compact(self.location)
        self._compacted()

    def insert(self, rows: list[dict[str, Any]], *, compacts: bool = False) -> None:
        """Flink inserts rows of any type, from a table that has them."""
        self.us.write(self.fresh, arrow_rows(self.oracle.schema, rows), overwrite={})
        names = self.location.parent.name.removesuffix(".db")
        self._run(f"INSERT INTO {{table}} SELECT * FROM p.`{names}`.`fresh`", compacts=compacts)
        self._written([("+I", row) for row in rows], is_seen=compacts)

    def update(self, ids: Iterable[int], values: Mapping[str, str], *, compacts: bool = False) -> None:
        """Flink sets texts in the rows that it sees."""
        chosen = self._rows(ids)
        setting = ", ".join(f"{name} = '{value}'" for name, value in values.items())
        listed = ", ".join(map(str, ids))
        self._run(f"UPDATE {{table}} SET {setting} WHERE id IN ({listed})", compacts=compacts)
        self._written([("+U", {**row, **values}) for row in chosen], is_seen=compacts)

    def delete(self, ids: Iterable[int], *, compacts: bool = False) -> None:
        """Flink deletes rows that it sees."""
        chosen = self._rows(ids)
        listed = ", ".join(map(str, ids))
        self._run(f"DELETE FROM {{table}} WHERE id IN ({listed})", compacts=compacts)
        self._written([("-D", row) for row in chosen], is_seen=compacts)

    def check(self, where: str) -> None:
        """Both show what the oracle says and the same changelog; our checks find nothing."""
        assert_same(self.oracle.rows(), self.us.read(self.location), f"ours, {where}")
        assert_same(self.oracle.rows(), self.flink.read(self.location), f"flink, {where}")
        assert self.us.store(self.location).verify() == (), where
        newest = self.us.snapshots(self.location)[-1][0]
        assert_same(self.changes, self.us.changelog(self.location, 0, newest), f"our changelog, {where}")
        assert_same(self.changes, self.flink.follow(self.location), f"flink's stream, {where}")

    def _run(self, statement: str, *, compacts: bool) -> None:
        """`compacts`: by the setting of docs/engines.md, which UPDATE and DELETE take too. A hint only INSERT does."""
        setting = f"SET 'paimon.p.shared.{self.location.name}.write-only' = 'false';\n" if compacts else ""
        self.flink.sql(self.location, statement, before=setting)

    def _rows(self, ids: Iterable[int]) -> list[dict[str, Any]]:
        columns, chosen = self.oracle.schema.columns, set(ids)
        rows = (zip(columns, row, strict=True) for row in self.oracle.rows())
        listed = [{one.name: _unplain(one.type, value) for one, value in row} for row in rows]
        return [row for row in listed if row["id"] in chosen]

    def _written(self, changes: list[Kinded], *, is_seen: bool) -> None:
        self.waiting += changes
        if is_seen:
            self._compacted()

    def _compacted(self) -> None:
        """What waited becomes visible at once: one net change for each key."""
        self.changes += self.oracle.apply(self.waiting)
        self.waiting = []


def _unplain(wanted: Type, value: Any) -> Any:
    """Floats that are texts in the plain form."""
    return float(value) if wanted in ("FLOAT", "DOUBLE") and isinstance(value, str) else value


def _rows(ids: Iterable[int], seed: int, made: Schema) -> list[dict[str, Any]]:
    columns = {one.name: one.type for one in made.columns}
    rows = make_rows(columns, ids, seed=seed, required=("id", "dt"))
    return [{**row, "dt": f"day {row['id'] % 3}"} if "dt" in row else row for row in rows]


def _upserts(ids: Iterable[int], seed: int, made: Schema) -> list[Kinded]:
    return [("+U", row) for row in _rows(ids, seed, made)]


KINDS = {
    "every type": schema(COLUMNS, keys=("id",), options={"bucket": "2"}),
    "partitioned": schema(
        {"dt": "STRING", "id": "BIGINT", "c_text": "STRING", "c_double": "DOUBLE"},
        keys=("dt", "id"),
        partitions=("dt",),
        options={"bucket": "1", "num-levels": "5"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_flink_writes_in_turns_with_us(flink_tables: FlinkTables, tmp_path: Path, kind: str) -> None:
    """INSERT, UPDATE and DELETE wait in level 0, unseen; our next commit or compaction shows them, with changes."""
    made = KINDS[kind]
    shared = SharedWithFlink(flink_tables, tmp_path / "shared.db" / "t", made)
    shared.ours(_upserts(range(20), 1, made))
    shared.insert(_rows(range(15, 30), 2, made))
    shared.check("inserted rows wait")
    shared.ours([*_upserts(range(10, 18), 3, made), ("-D", _rows([0], 1, made)[0])])
    shared.check("our commit")
    shared.update(range(3, 9), {"c_text": "by Flink"})
    shared.delete([1, 2, 25])
    shared.check("updated rows wait")
    shared.compact()
    shared.check("our compaction")
    shared.ours(_upserts(range(5, 35, 3), 4, made))
    shared.check("our last commit")


@pytest.mark.parametrize("by_option", [False, True], ids=["by setting", "by table option"])
@pytest.mark.parametrize("kind", KINDS)
def test_flink_compacts_when_it_is_asked_to(
    flink_tables: FlinkTables, tmp_path: Path, kind: str, by_option: bool
) -> None:
    """With `write-only` = `false` each write is seen at once, with its changes, and what waited before it."""
    made = KINDS[kind].with_options(write_only="false") if by_option else KINDS[kind]
    shared = SharedWithFlink(flink_tables, tmp_path / "shared.db" / "t", made)
    shared.ours(_upserts(range(20), 1, made))
    shared.insert(_rows(range(15, 30), 2, made), compacts=True)
    shared.check("insert")
    shared.ours(_upserts(range(10, 18), 3, made))
    shared.update(range(3, 9), {"c_text": "by Flink"}, compacts=True)
    shared.check("update")
    shared.delete([1, 2, 25], compacts=True)
    shared.check("delete")
    if not by_option:
        shared.insert(_rows(range(40, 44), 5, made))
        shared.check("inserted rows wait")
    shared.insert(_rows(range(50, 60), 7, made), compacts=True)  # into each bucket: others keep level 0
    shared.check("with those that waited")
    shared.ours(_upserts(range(38, 42), 6, made))
    shared.check("our last commit")


@pytest.mark.parametrize("number", range(examples(1, 6)))
def test_random_turns(flink_tables: FlinkTables, tmp_path: Path, number: int) -> None:
    """Ten rounds of a seed: anything that either does, also several statements of Flink that wait together."""
    chance = random.Random(1000 * SEED + number)
    made = KINDS[chance.choice(sorted(KINDS))].with_options(num_levels=chance.choice(["4", "20"]))
    shared = SharedWithFlink(flink_tables, tmp_path / "shared.db" / "t", made)
    shared.ours(_upserts(range(0, 40, 2), number, made))
    for turn in range(10):
        done = _random_turn(shared, chance)
        shared.check(f"seed {1000 * SEED + number}, turn {turn}: {done}")


def _random_turn(shared: SharedWithFlink, chance: random.Random) -> str:
    """What was done. Before Flink compacts nothing waits: it would compact the buckets that it writes to alone."""
    made, ids = shared.oracle.schema, chance.sample(range(40), chance.choice((1, 4, 12)))
    compacts = chance.random() < 0.4
    done = chance.choice(("upsert", "remove", "compact", "insert", "update", "delete"))
    if compacts and shared.waiting:
        shared.compact()
    match done:
        case "upsert":
            shared.ours(_upserts(ids, chance.randrange(10**6), made))
        case "remove":
            shared.ours([("-D", row) for row in _rows(ids, 1, made)])
        case "compact":
            shared.compact()
        case "insert":
            shared.insert(_rows(ids, chance.randrange(10**6), made), compacts=compacts)
        case "update":
            shared.update(ids, {"c_text": f"by Flink {chance.randrange(1000)}"}, compacts=compacts)
        case _:
            shared.delete(ids, compacts=compacts)
    return f"{done}, compacts: {compacts}"


def test_tables_without_key_in_turns(flink_tables: FlinkTables, tmp_path: Path) -> None:
    """Flink's inserts are seen at once; our deletes and compactions between them."""
    made = schema({"id": "BIGINT", "c_text": "STRING", **ALL_TYPES})
    us, location = Ours(), tmp_path / "shared.db" / "t"
    us.create(location, made)
    us.create(location.with_name("fresh"), made)
    kept: list[dict[str, Any]] = []
    for turn in range(3):
        mine, theirs = (_rows(range(10 * turn, 10 * turn + 6), 2 * turn + by, made) for by in (0, 1))
        us.write(location, arrow_rows(made, mine))
        us.write(location.with_name("fresh"), arrow_rows(made, theirs), overwrite={})
        flink_tables.sql(location, "INSERT INTO {table} SELECT * FROM p.`shared`.`fresh`")
        kept += [*mine, *theirs]
        if turn == 1:
            us.compact(location)
        expected = [tuple(row) for row in _plain(made, kept)]
        assert_same(expected, us.read(location), f"ours, turn {turn}")
        assert_same(expected, flink_tables.read(location), f"flink, turn {turn}")
        assert us.store(location).verify() == ()
    us.write(location, arrow_rows(made, kept[:5]), overwrite={})
    assert_same(_plain(made, kept[:5]), flink_tables.read(location), "flink, after our overwrite")


def _plain(made: Schema, rows: list[dict[str, Any]]) -> list[Any]:
    """The rows in the plain form."""
    oracle = Oracle(made)
    oracle.apply([("+I", row) for row in rows])
    return oracle.rows()
