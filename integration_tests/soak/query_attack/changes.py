"""Random changes of the inputs between two runs: rows, columns, views, histories. Each can be replayed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from integration_tests.soak.query_attack.queries import View
from integration_tests.soak.query_attack.tables import (
    Column,
    Row,
    TableDef,
    random_row,
    random_rows,
    random_value,
)

Key = tuple[Any, ...]
_WIDER = {"int": "bigint"}


@dataclass(frozen=True)
class Put:
    """Rows by their key, or appended where there is none."""

    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Remove:
    """Rows of these keys; all columns of a row are given, for the ones that must not be NULL."""

    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Sql:
    """A statement; `<<name>>` is the table."""

    table: str
    text: str


@dataclass(frozen=True)
class Alter:
    """Statements one after another, and what the table is afterwards."""

    table: str
    what: str
    texts: tuple[str, ...]
    column: Column | None = None


@dataclass(frozen=True)
class Past:
    """`how`: rollback or restore, to `back` snapshots before the newest."""

    table: str
    how: str
    back: int


@dataclass(frozen=True)
class Recreate:
    """Dropped and made again with other rows."""

    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Compact:
    """No row changes."""

    table: str


@dataclass(frozen=True)
class SwitchView:
    """Another filter."""

    view: str
    text: str


@dataclass(frozen=True)
class Overwrite:
    """All rows of a table by others."""

    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Skip:
    """These models are not run in this round."""

    models: tuple[str, ...]


@dataclass(frozen=True)
class Redefine:
    """The function of the session, which hooks create before each run, adds another number."""

    number: int


@dataclass(frozen=True)
class Later:
    """The clock of the next runs goes on, or back, by so many days."""

    days: int


Step = (
    Later | Redefine | Put | Overwrite | Skip | Remove | Sql | Alter | Past | Recreate | Compact | SwitchView
)


@dataclass
class Changes:
    """Makes steps; keeps what rows there are, roughly: histories that go back are not followed."""

    rng: random.Random
    tables: dict[str, TableDef]
    views: Sequence[View]
    models: Sequence[str]
    rows: dict[str, dict[Key, Row]]
    gone: dict[str, list[Row]] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=dict)  # view → its text now, if it is not the first
    commits: tuple[int, ...] = (1, 1, 2, 2, 3)  # of a round, at random

    def round(self) -> tuple[Step, ...]:
        """Some commits; at times not all models are run afterwards."""
        steps = [step for _ in range(self.rng.choice(self.commits)) for step in self._steps()]
        if self.views and self.rng.random() < 0.2:  # among the other changes it hardly ever came
            steps += self._view()
        if self.rng.random() < 0.05:
            steps.append(Redefine(self.rng.randint(1, 9)))
        if self.rng.random() < 0.4:
            steps.append(Later(self.rng.choice((1, 1, 1, 2, 3, -1))))
        if self.rng.random() < 0.3:
            steps.append(Skip(tuple(one for one in self.models if self.rng.random() < 0.4)))
        if self.rng.random() < 0.1:
            steps += [Past(one, "rollback", 1) for one in self.models if self.rng.random() < 0.2]
        return tuple(steps)

    def _steps(self) -> tuple[Step, ...]:
        rng, table = self.rng, self.tables[self.rng.choice(sorted(self.tables))]
        if rng.random() < 0.8:
            return (self._keyed(table) if table.key else self._appended(table),)
        maker: Callable[[TableDef], tuple[Step, ...]] = rng.choice(
            (self._swap_columns, self._read_column, self._widen, self._add_column,
             self._past, self._past, self._recreate, self._overwrite, self._compact,
             self._rewrite, self._empty, self._and_back, self._related, self._related, self._related, self._related)
        )  # fmt: skip
        return maker(table)

    # --- rows ---

    def _keyed(self, table: TableDef) -> Step:
        rng, known = self.rng, self.rows[table.name]
        roll = rng.random()
        if roll < 0.22 and known:
            return self._remove(
                table, rng.sample(sorted(known, key=str), min(len(known), rng.choice((1, 1, 2, 4))))
            )
        if roll < 0.3 and self.gone.get(table.name):
            return self._put(table, [rng.choice(self.gone[table.name])])
        if roll < 0.55 and known:
            return self._put(table, [self._touched(table, one) for one in self._some(known)])
        if roll < 0.62 and len(known) > 1:
            return self._put(table, self._swapped(table))
        return self._put(table, random_rows(rng, table, rng.choice((1, 1, 2, 3, 6))))

    def _some(self, known: dict[Key, Row]) -> list[Row]:
        count = min(len(known), self.rng.choice((1, 1, 2, 3)))
        return [known[key] for key in self.rng.sample(sorted(known, key=str), count)]

    def _touched(self, table: TableDef, row: Row) -> Row:
        """One or two columns have other values: foreign keys above all."""
        rng = self.rng
        others = [one for one in table.columns if one.name not in table.key]
        foreign = [one for one in others if one.refers is not None]
        pool = foreign if foreign and rng.random() < 0.5 else others
        fresh = dict(row)
        for column in rng.sample(pool, min(len(pool), rng.choice((1, 1, 2)))):
            fresh[column.name] = None if column.null and rng.random() < 0.25 else random_value(rng, column)
        return fresh

    def _swapped(self, table: TableDef) -> list[Row]:
        """Two rows exchange a value."""
        known = self.rows[table.name]
        one, two = (dict(known[key]) for key in self.rng.sample(sorted(known, key=str), 2))
        others = [column.name for column in table.columns if column.name not in table.key]
        if others:
            name = self.rng.choice(others)
            one[name], two[name] = two.get(name), one.get(name)
        return [one, two]

    def _put(self, table: TableDef, rows: list[Row]) -> Step:
        for row in rows:
            self.rows[table.name][tuple(row[one] for one in table.key)] = row
        return Put(table.name, tuple(rows))

    def _remove(self, table: TableDef, keys: list[Key]) -> Step:
        known = self.rows[table.name]  # a row that refers to itself may be gone already
        rows = [known.pop(key) for key in dict.fromkeys(keys) if key in known]
        self.gone.setdefault(table.name, []).extend(rows)
        return Remove(table.name, tuple(rows))

    def _appended(self, table: TableDef) -> Step:
        rng = self.rng
        if rng.random() < 0.55:
            return Put(table.name, tuple(random_rows(rng, table, rng.choice((1, 2, 4)))))
        column = rng.choice(
            [one for one in table.columns if one.type in ("int", "bigint", "string", "boolean")]
            or [table.columns[0]]
        )
        value = random_value(rng, replace(column, null=False))
        if column.type not in ("int", "bigint", "string", "boolean"):
            return Sql(table.name, f"delete from <<{table.name}>> where {column.name} is null")
        text = f"'{value}'" if column.type == "string" else str(value).lower()
        if rng.random() < 0.3:
            return Sql(
                table.name, f"update <<{table.name}>> set {column.name} = null where {column.name} = {text}"
            )
        return Sql(table.name, f"delete from <<{table.name}>> where {column.name} = {text}")

    # --- rarer things ---

    def _rewrite(self, table: TableDef) -> tuple[Step, ...]:
        """Every row changes."""
        known = self.rows[table.name]
        if not table.key or not known:
            return (self._appended(table) if not table.key else self._keyed(table),)
        return (self._put(table, [random_row(self.rng, table, key) for key in list(known)]),)

    def _and_back(self, table: TableDef) -> tuple[Step, ...]:
        """Changed and changed back, or deleted and put again: nothing is other than before."""
        known = self.rows[table.name]
        if not table.key or not known:
            return (self._appended(table) if not table.key else self._keyed(table),)
        before = [dict(one) for one in self._some(known)]
        if self.rng.random() < 0.5:
            first = self._remove(table, [tuple(row[one] for one in table.key) for row in before])
        else:
            first = self._put(table, [self._touched(table, one) for one in before])
        return (first, self._put(table, before))

    def _related(self, table: TableDef) -> tuple[Step, ...]:
        """A row and rows that refer to it, in one round: each table's changes have to be seen with the other's past."""
        rng = self.rng
        pairs = [
            (other, column, target)
            for other in self.tables.values()
            for column in other.columns
            for target in self.tables.values()
            if other.key
            and column.name not in other.key
            and column.refers == target.name
            and target.key == ("id",)
        ]
        if not pairs:
            return self._and_back(table)
        other, column, target = rng.choice(pairs)
        known = self.rows[target.name]
        used = {row.get(column.name) for row in self.rows[other.name].values()}
        keys = [key for key in sorted(known, key=str) if key[0] in used]
        if not keys:
            return self._and_back(table)
        key = rng.choice(keys)
        referring = [row for row in self.rows[other.name].values() if row.get(column.name) == key[0]]
        first = (
            self._remove(target, [key])
            if rng.random() < 0.6
            else self._put(target, [self._touched(target, known[key])])
        )
        if rng.random() < 0.4:
            second = self._remove(other, [tuple(row[one] for one in other.key) for row in referring if row])
        else:
            moved = [{**row, column.name: random_value(rng, column)} for row in referring]
            second = self._put(other, moved)
        third = self._below(other, referring)
        found = [first, second, *third]
        rng.shuffle(found)
        return tuple(found)

    def _below(self, table: TableDef, rows: list[Row]) -> list[Step]:
        """Rows that refer to those rows, at times."""
        if table.key != ("id",) or self.rng.random() < 0.4:
            return []
        ids = {row["id"] for row in rows}
        found: list[Step] = []
        for other in self.tables.values():
            for column in other.columns:
                if column.refers == table.name and other.key and other.name != table.name:
                    keys = [key for key, row in self.rows[other.name].items() if row.get(column.name) in ids]
                    found += [self._remove(other, keys)] if keys else []
        return found

    def _empty(self, table: TableDef) -> tuple[Step, ...]:
        self.gone.setdefault(table.name, []).extend(self.rows[table.name].values())
        self.rows[table.name].clear()
        return (Sql(table.name, f"{self.rng.choice(('delete from', 'truncate table'))} <<{table.name}>>"),)

    def _swap_columns(self, table: TableDef) -> tuple[Step, ...]:
        """Three renames: the names are the same, the values are others."""
        free = [one for one in table.columns if one.name not in table.key and one.null]
        pairs = [(one, two) for one in free for two in free if one.name < two.name and one.type == two.type]
        if not pairs:
            return self._read_column(table)
        one, two = self.rng.choice(pairs)
        for row in self.rows[table.name].values():
            row[one.name], row[two.name] = row.get(two.name), row.get(one.name)
        head = f"alter table <<{table.name}>> rename column"
        texts = (
            f"{head} {one.name} to swapped_",
            f"{head} {two.name} to {one.name}",
            f"{head} swapped_ to {two.name}",
        )
        return (Alter(table.name, "swap columns", texts),)

    def _read_column(self, table: TableDef) -> tuple[Step, ...]:
        """Dropped and added under the same name: all NULL."""
        free = [one for one in table.columns if one.name not in table.key and one.null]
        if not free:
            return (self._keyed(table) if table.key else self._appended(table),)
        one = self.rng.choice(free)
        for row in self.rows[table.name].values():
            row[one.name] = None
        head = f"alter table <<{table.name}>>"
        kind = {"decimal": "decimal(8,2)", "timestamp": "timestamp_ntz", "real": "double"}.get(
            one.type, one.type
        )
        texts = (f"{head} drop column {one.name}", f"{head} add column {one.name} {kind}")
        return (Alter(table.name, "drop and add column", texts),)

    def _widen(self, table: TableDef) -> tuple[Step, ...]:
        free = [one for one in table.columns if one.name not in table.key and one.type in _WIDER]
        if not free:
            return self._swap_columns(table)
        one = self.rng.choice(free)
        wider = replace(one, type=_WIDER[one.type])
        columns = tuple(wider if each == one else each for each in table.columns)
        self.tables[table.name] = replace(table, columns=columns)
        text = f"alter table <<{table.name}>> alter column {one.name} type {wider.type}"
        return (Alter(table.name, "widen column", (text,), wider),)

    def _add_column(self, table: TableDef) -> tuple[Step, ...]:
        name = f"added{len(table.columns)}"
        column = Column(name, "int")
        self.tables[table.name] = replace(table, columns=(*table.columns, column))
        return (
            Alter(table.name, "add column", (f"alter table <<{table.name}>> add column {name} int",), column),
        )

    def _view(self) -> tuple[Step, ...]:
        view = self.rng.choice(self.views)
        now = self.filters.get(view.name, view.texts[0])
        text = self.rng.choice([one for one in view.texts if one != now])
        self.filters[view.name] = text
        return (SwitchView(view.name, text),)

    def _past(self, table: TableDef) -> tuple[Step, ...]:
        """Back, and at times other rows under the same snapshot ids."""
        step = Past(table.name, self.rng.choice(("rollback", "restore")), self.rng.choice((1, 1, 2, 3)))
        if self.rng.random() < 0.6:
            return (
                step,
                *(self._keyed(table) if table.key else self._appended(table) for _ in range(step.back)),
            )
        return (step,)

    def _recreate(self, table: TableDef) -> tuple[Step, ...]:
        rows = random_rows(self.rng, table, self.rng.choice((0, 3, 10)))
        self._know(table, rows)
        return (Recreate(table.name, tuple(rows)),)

    def _overwrite(self, table: TableDef) -> tuple[Step, ...]:
        """Some rows stay as they are."""
        rows = random_rows(self.rng, table, self.rng.choice((0, 4, 10)))
        if table.key and self.rows[table.name]:
            kept = self._some(self.rows[table.name])
            keys = {tuple(row[one] for one in table.key) for row in kept}
            rows = kept + [row for row in rows if tuple(row[one] for one in table.key) not in keys]
        self._know(table, rows)
        return (Overwrite(table.name, tuple(rows)),)

    def _know(self, table: TableDef, rows: list[Row]) -> None:
        if table.key:
            self.rows[table.name] = {tuple(row[one] for one in table.key): row for row in rows}

    def _compact(self, table: TableDef) -> tuple[Step, ...]:
        return (Compact(table.name), self._keyed(table) if table.key else self._appended(table))
