"""Random tables: types, keys, partitions, options and histories from a seed, compared with a dict and with peers.

Steps      1 a commit by our engine  2 its rows, its changelog and its files' invariants against the oracle
           3 at the end chosen old snapshots and the newest by every peer given
INVARIANT  a difference names the seed: `python -m integration_tests.soak.run tables --seed S --count 1` shows it again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from integration_tests.interop.oracle import DYNAMIC, History, Oracle
from integration_tests.interop.our_tables import KEY_TYPES, key_rows
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import Peer
from integration_tests.interop.rows import Row, arrow_rows, assert_same
from integration_tests.interop.sample_data import ALL_TYPES, NESTED_TYPES, make_rows
from integration_tests.interop.scenarios import Step
from integration_tests.interop.schemas import Column, Schema, Type

_KEYS = 48
_FIRST_ADDED = 100  # ids of added columns: this plus the step's number, so that none is given twice
_DAYS = ("2024-01-01", "a b=c/é%", "x")
_WIDER: Mapping[str, str] = {"TINYINT": "INT", "SMALLINT": "INT", "INT": "BIGINT", "FLOAT": "DOUBLE"}
_MANIFEST_LIMITS = {
    "manifest.target-file-size": "6 kb",
    "manifest.full-compaction-threshold-size": "48 kb",
    "manifest.merge-min-count": "3",
}


@dataclass(frozen=True)
class RandomTable:
    """One table and its history; `seed` made it."""

    seed: int
    schema: Schema
    steps: tuple[Step, ...]


def random_table(seed: int) -> RandomTable:
    """The same seed gives the same table."""
    chance = random.Random(seed)
    schema = random_schema(chance)
    steps: list[Step] = []
    current = schema
    for number in range(chance.randint(5, 14)):
        step = random_step(current, chance, number)
        current = step.schema or current
        steps.append(step)
    return RandomTable(seed, schema, tuple(steps))


def attack_table(table: RandomTable, location: Path, peers: Sequence[Peer]) -> int:
    """Raises AssertionError at the first difference; how many (snapshot, reader) pairs were compared."""
    ours, oracle, history = Ours(), Oracle(table.schema), History()
    ours.create(location, table.schema)
    for number, step in enumerate(table.steps):
        where = f"seed {table.seed}, step {number} ({_what(step)})"
        before, first = {one for one, _ in ours.snapshots(location)}, oracle.rows()
        changes = _run(step, ours, oracle, location)
        fresh = [one for one, _ in ours.snapshots(location) if one not in before]
        history.record(fresh, first, oracle.rows(), changes)
        assert_same(oracle.rows(), ours.read(location), f"ours, {where}")
        if table.schema.keys and fresh:
            told = ours.changelog(location, max(before, default=0), fresh[-1])
            assert_same(changes, told, f"our changelog, {where}")
        assert ours.store(location).verify() == (), where
    return _compare(table, history, oracle.rows(), location, [ours, *peers])


def _compare(
    table: RandomTable, history: History, newest: list[Row], location: Path, readers: Sequence[Peer]
) -> int:
    """The table as it is now, and two of its snapshots of the seed's choice, by every reader."""
    chance = random.Random(table.seed + 1)
    known = sorted(history.rows)
    states = [(one, history.rows[one]) for one in chance.sample(known, min(2, len(known)))]
    for reader in readers:
        for snapshot, rows in [*states, (None, newest)]:
            where = f"{reader.name}, seed {table.seed}, snapshot {snapshot or 'newest'}"
            assert_same(rows, reader.read(location, snapshot), where)
    return len(readers) * (len(states) + 1)


def _run(step: Step, ours: Ours, oracle: Oracle, location: Path) -> list[Any]:
    """The step on both sides; the changes that the oracle expects."""
    if step.schema is not None:
        ours.alter(location, *step.alter)
        oracle.evolve(step.schema)
        return []
    if step.compact:
        ours.compact(location)
        return []
    if step.overwrite is not None:
        rows = arrow_rows(oracle.schema, step.overwrite)
        ours.write(location, rows, overwrite=step.partition or {})
        return oracle.overwrite(step.overwrite, step.partition)
    rows = arrow_rows(oracle.schema, [row for _, row in step.changes])
    ours.write(location, rows, [kind for kind, _ in step.changes])
    return oracle.apply(step.changes)


def _what(step: Step) -> str:
    if step.schema is not None:
        return f"alter {step.alter}"
    if step.overwrite is not None:
        return f"overwrite {step.partition or 'all'} with {len(step.overwrite)}"
    return "compact" if step.compact else f"{len(step.changes)} changes"


# ---- schemas -----------------------------------------------------------------------------------------------


def random_schema(chance: random.Random, *, always_keyed: bool = False) -> Schema:
    """Any types; three of four have a key."""
    keyed, partitioned = chance.random() < 0.75 or always_keyed, chance.random() < 0.4
    key_names = chance.sample(sorted(KEY_TYPES), chance.choice((0, 0, 1, 2))) if keyed else []
    pool: dict[str, Type] = {**ALL_TYPES, **NESTED_TYPES}
    chosen = chance.sample(sorted(pool), chance.randint(1, 9))
    columns: dict[str, Type] = {"id": "BIGINT", **{name: KEY_TYPES[name] for name in key_names}}
    columns |= {name: pool[name] for name in chosen}
    if partitioned:
        columns["dt"] = "STRING"
    listed = [Column(number, name, wanted) for number, (name, wanted) in enumerate(columns.items())]
    keys = (*(("dt",) if partitioned else ()), "id", *key_names) if keyed else ()
    return Schema(tuple(listed), keys, ("dt",) if partitioned else (), _random_options(chance, keyed=keyed))


def _random_options(chance: random.Random, *, keyed: bool) -> dict[str, str]:
    options: dict[str, str] = {}
    if keyed:
        options["bucket"] = str(chance.choice((1, 1, 2, 3, 5)))
        options["num-levels"] = str(chance.choice((4, 5, 8, 20)))
    if chance.random() < 0.4:
        options |= _MANIFEST_LIMITS
    if chance.random() < 0.3:
        options["parquet.row-group-rows"] = str(chance.choice((1, 3, 7)))
    if chance.random() < 0.3:
        options["file.compression"] = chance.choice(("none", "snappy", "lz4", "zstd"))
    return options


# ---- histories ---------------------------------------------------------------------------------------------


def random_step(schema: Schema, chance: random.Random, number: int) -> Step:
    """The first one puts rows in; `number` tells columns that are added."""
    draw = chance.random() if number else 0.0
    if draw < 0.62:
        return Step(changes=tuple(_random_changes(schema, chance)))
    if draw < 0.76:
        return _random_overwrite(schema, chance)
    if draw < 0.88:
        return Step(compact=True)
    return _random_alter(schema, chance, _FIRST_ADDED + number)


def _random_changes(schema: Schema, chance: random.Random) -> Iterable[tuple[str, dict[str, Any]]]:
    ids = chance.sample(range(_KEYS), chance.choice((0, 1, 3, 12, 30)))
    for row in _rows(schema, ids, chance):
        if schema.keys and chance.random() < 0.25:
            yield "-D", row
        else:
            yield ("+U" if schema.keys else "+I"), row


def _random_overwrite(schema: Schema, chance: random.Random) -> Step:
    ids = chance.sample(range(_KEYS), chance.choice((0, 2, 15)))
    rows = _rows(schema, ids, chance)
    if not schema.partitions or chance.random() < 0.4:
        return Step(overwrite=tuple(rows))
    if chance.random() < 0.5:
        return Step(overwrite=tuple(rows), partition=DYNAMIC) if rows else Step(compact=True)
    day = chance.choice(_DAYS)
    return Step(overwrite=tuple({**row, "dt": day} for row in rows), partition={"dt": day})


def _random_alter(schema: Schema, chance: random.Random, new_id: int) -> Step:
    """Add (as `new_id`, never given before), rename, drop or widen one column that is neither key nor partition."""
    free = [one for one in schema.columns if one.name not in {*schema.keys, *schema.partitions, "id"}]
    widening = [one for one in free if one.type in _WIDER]
    draw = chance.random()
    if draw < 0.4 or not free:
        added = Column(new_id, f"added_{new_id}", chance.choice(sorted(ALL_TYPES.values(), key=str)))
        longer = replace(schema, columns=(*schema.columns, added))
        return Step(schema=longer, alter=(("add", added.name, added.type),))
    target = chance.choice(free)
    if draw < 0.6 and widening:
        target = chance.choice(widening)
        wider = _WIDER[str(target.type)]
        return Step(schema=_with(schema, target.id, type=wider), alter=(("type", target.name, wider),))
    if draw < 0.85:
        name = f"renamed_{target.id}_{chance.randrange(10**6)}"
        return Step(schema=_with(schema, target.id, name=name), alter=(("rename", target.name, name),))
    kept = tuple(one for one in schema.columns if one.id != target.id)
    return Step(schema=replace(schema, columns=kept), alter=(("drop", target.name),))


def _with(schema: Schema, column_id: int, **fields: Any) -> Schema:
    changed = tuple(replace(one, **fields) if one.id == column_id else one for one in schema.columns)
    return replace(schema, columns=changed)


def _rows(schema: Schema, ids: Sequence[int], chance: random.Random) -> list[dict[str, Any]]:
    """Key columns depend on the id alone, so that an id is one key; the others are the seed's."""
    columns = {column.name: column.type for column in schema.columns}
    made = make_rows(columns, ids, seed=chance.randrange(2**32), required=schema.keys)
    for row in made:
        fixed = key_rows(row["id"] % 8, "v", 1)[0]
        row.update({name: fixed[name] for name in KEY_TYPES if name in columns})
        if "dt" in columns:
            row["dt"] = _DAYS[row["id"] % len(_DAYS)]
    return made
