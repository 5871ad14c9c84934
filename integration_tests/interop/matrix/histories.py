"""The history of a random table: commits, overwrites, changes of columns and upkeep, the same for every writer.

INVARIANT  a commit names each key once: which of two versions within a commit wins depends on the writer's buffer.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from integration_tests.interop.matrix.draft import Draft
from integration_tests.interop.oracle import DYNAMIC
from integration_tests.interop.sample_data import make_rows
from integration_tests.interop.scenarios import Step
from integration_tests.interop.schemas import Column, Schema, Type

_KEYS = 24
Plain = dict[str, Any]


def plan_steps(draft: Draft, *, only_upserts: bool = False) -> list[Step]:
    """The commits of a table, and what the draft's history says between them.

    `only_upserts`: nothing but inserts and upserts, for writers that have no more.
    """
    planner = _Planner(draft)
    count = 4 if only_upserts else draft.chance.choice((4, 5, 6))
    steps = [Step(planner.upserts(14))]
    extra = [] if only_upserts else [one for one in draft.history if one not in ("expire", "branch")]
    places = {one: draft.chance.randrange(1, count) for one in extra}
    for number in range(1, count):
        kinds = planner.upserts(draft.chance.randrange(3, 8))
        steps.append(Step(kinds if only_upserts else (*kinds, *planner.deletes(2))))
        for one, place in places.items():
            if place == number:
                steps += planner.extra(one)
    if only_upserts:
        return steps
    if "expire" in draft.history:
        steps.append(Step(upkeep="expire"))
    if "branch" in draft.history:
        steps.append(Step(planner.upserts(4), upkeep="branch"))
    if steps[-1].upkeep:
        steps.append(Step(planner.upserts(4)))
    if draft.options.get("changelog-producer") == "full-compaction":
        steps.append(Step(compact=True))  # changes are told then
    return steps


class _Planner:
    """Keeps which keys are there."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._chance, self._schema = draft, draft.chance, draft.schema
        self._alive: list[int] = []
        self._gone: set[int] = set()
        self._seed = draft.chance.randrange(1 << 30)

    def upserts(self, count: int) -> tuple[tuple[str, Plain], ...]:
        """Rows of new and of known keys."""
        known = [number for number in range(_KEYS) if number not in self._gone]
        keys = self._chance.sample(known, min(count, len(known)))
        rows = self.rows(keys)
        has_updates = bool(self._draft.keys) and self._chance.random() < 0.4
        kinds = ["+U" if has_updates and key in self._alive else "+I" for key in keys]
        self._alive += [key for key in keys if key not in self._alive]
        self._last = set(keys)
        return tuple(self._told(zip(kinds, rows, strict=True)))

    def deletes(self, count: int) -> tuple[tuple[str, Plain], ...]:
        """Deletes of keys that are there and have no other row in this commit."""
        if self._draft.deletes == "none" or not self._draft.is_keyed:
            return ()
        keys = [key for key in self._alive if key not in self._last][:count]
        if self._draft.deletes == "final":
            self._gone |= {*keys}
            self._alive = [key for key in self._alive if key not in keys]
        kept = self._draft.retracted
        kept = None if kept is None else kept.union(self._schema.keys, self._schema.partitions)
        return tuple(
            self._told(
                ("-D", {name: value if kept is None or name in kept else None for name, value in row.items()})
                for row in self.rows(keys)
            )
        )

    def _told(self, changes: Iterable[tuple[str, Plain]]) -> Iterator[tuple[str, Plain]]:
        """With the kind in its column, of tables that have one."""
        name = self._draft.kind_column
        return ((kind, {**row, name: kind} if name else row) for kind, row in changes)

    def rows(self, keys: Sequence[int]) -> list[Plain]:
        """Rows of these keys: key columns and partitions depend on the key alone, unless keys move."""
        self._seed += 1
        return make_table_rows(self._draft, self._schema, keys, self._seed)

    def extra(self, name: str) -> list[Step]:
        """The steps of one entry of Draft.history."""
        if name == "evolve":
            return self._evolve()
        if name == "compact":
            return [Step(compact=True)]
        if name == "tag":
            return [Step(upkeep="tag")]
        rows = [{**row, **self._plain_kind()} for _, row in self.upserts(8)]
        if name == "overwrite table":
            self._alive = [row["id"] for row in rows]
            return [Step(overwrite=tuple(rows))]
        if name == "overwrite dynamic":
            return [Step(overwrite=tuple(rows), partition=DYNAMIC)]
        where = {one: rows[0][one] for one in self._schema.partitions}
        inside = [row for row in rows if all(row[one] == value for one, value in where.items())]
        return [Step(overwrite=tuple(inside), partition=where)]

    def _plain_kind(self) -> Plain:
        """Of rows that an overwrite puts."""
        return {self._draft.kind_column: "+I"} if self._draft.kind_column else {}

    def _evolve(self) -> list[Step]:
        now = self._schema
        highest = max(column.id for column in now.columns)
        for column in now.columns:
            if isinstance(column.type, tuple):
                highest = max(highest, 1000 * (column.id + 1) + _fields(column.type) - 1)
        added = Column(
            highest + 1, "e_new", self._chance.choice(("DECIMAL(10, 2)", "STRING", "TIMESTAMP(6)"))
        )
        changes: dict[str, Mapping[str, Any]] = {
            "e_old": {"name": "e_label"},
            "e_wide": {"type": "BIGINT"},
            "e_ratio": {"type": "DOUBLE"},
        }
        kept = [replace(one, **changes.get(one.name, {})) for one in now.columns if one.name != "e_gone"]
        self._schema = replace(now, columns=(*kept, added))
        alter = (
            ("add", "e_new", added.type),
            ("rename", "e_old", "e_label"),
            ("drop", "e_gone"),
            ("type", "e_wide", "BIGINT"),
            ("type", "e_ratio", "DOUBLE"),
        )
        return [Step(schema=self._schema, alter=alter), Step(self.upserts(5))]


def _fields(type_: Type) -> int:
    """How many fields with ids it has, at any depth."""
    if not isinstance(type_, tuple):
        return 0
    if type_[0] == "ROW":
        return sum(1 + _fields(child) for _, child in type_[1])
    return sum(map(_fields, type_[1:]))


def make_table_rows(draft: Draft, now: Schema, keys: Sequence[int], seed: int) -> list[Plain]:
    """Rows by make_rows, with the draft's values and keys."""
    columns = {column.name: column.type for column in now.columns}
    required = {*now.keys, *draft.filled, *now.partitions}
    rows, chance = make_rows(columns, keys, seed=seed, required=required), random.Random(seed)
    for row in rows:
        if draft.kind_column:
            row[draft.kind_column] = "+I"
        for name, values in draft.values.items():
            is_null = name not in required and chance.random() < 0.2
            row[name] = None if is_null else chance.choice(list(values))
        fixed = random.Random(row["id"] * 7919)
        for name in now.keys:
            if name != "id" and name not in now.partitions:
                [own] = make_rows({name: columns[name]}, [row["id"]], seed=row["id"], required=(name,))
                row[name] = own[name]
        if not draft.moves:
            row.update({name: fixed.choice(list(draft.values[name])) for name in now.partitions})
    return rows
