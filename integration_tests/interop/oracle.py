"""What a table must hold after each commit: a dictionary, and the changes that lead from one state to the next.

Steps      a value is kept by column id, so renamed and dropped columns need no rewriting
INVARIANT  the oracle knows nothing of files, levels or vectors, and shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from integration_tests.interop.matrix import rules
from integration_tests.interop.rows import Change, Row, arrow_rows, plain_rows
from integration_tests.interop.schemas import Schema

Stored = dict[int, Any]
DYNAMIC = "dynamic"
Kinded = tuple[str, Mapping[str, Any]]


class Oracle:
    """One table. Without keys it is a bag of rows."""

    def __init__(self, schema: Schema, rule: rules.Rule = rules.latest) -> None:
        """Empty; `rule` merges the versions of a key."""
        self.schema, self._rule = schema, rule
        self._kept: dict[Any, Stored] = {}
        self._number = 0

    def rows(self) -> list[Row]:
        """All rows in the order of the schema's columns."""
        return [self._shown(stored) for stored in self._kept.values()]

    def apply(self, changes: Iterable[Kinded]) -> list[Change]:
        """Take upserts ('+I', '+U') and deletes ('-D', '-U') by the rule; the net change of every key."""
        listed = list(changes)
        before: dict[Any, Stored | None] = {}
        ids = {column.name: column.id for column in self.schema.columns}
        for (kind, _), stored in zip(listed, self._stored([row for _, row in listed]), strict=True):
            key = self._key(stored)
            before.setdefault(key, self._kept.get(key))
            merged = self._rule(ids, self._kept.pop(key, None), kind, stored)
            if merged is not None:  # a retraction may be the first version of its key
                self._kept[key] = {
                    **merged,
                    **{self._id(one): stored[self._id(one)] for one in self.schema.keys},
                }
        return [change for key, old in before.items() for change in self._net(old, self._kept.get(key))]

    def overwrite(
        self, rows: Sequence[Mapping[str, Any]], partition: Mapping[str, Any] | str | None = None
    ) -> list[Change]:
        """Replace the whole table, the partition with these values, or (DYNAMIC) the partitions of the rows."""
        old, fresh = dict(self._kept), self._stored(rows)
        self._kept = {key: row for key, row in old.items() if not self._covers(row, partition, fresh)}
        for stored in fresh:
            self._kept[self._key(stored)] = stored
        keys = {**old, **self._kept}
        return [
            change for key in keys for change in self._net(old.get(key), self._kept.get(key), skip_equal=True)
        ]

    def _covers(
        self, row: Stored, partition: Mapping[str, Any] | str | None, fresh: Sequence[Stored]
    ) -> bool:
        if isinstance(partition, str):
            ids = [self._id(name) for name in self.schema.partitions]
            return any(all(row.get(one) == new.get(one) for one in ids) for new in fresh)
        return all(row.get(self._id(name)) == value for name, value in (partition or {}).items())

    def evolve(self, schema: Schema) -> None:
        """From now on show the rows by this schema."""
        self.schema = schema

    def state(self) -> dict[Any, Stored]:
        """All rows by key, values by column id."""
        return dict(self._kept)

    def put_back(self, state: Mapping[Any, Stored]) -> None:
        """The rows of a state again, in today's columns."""
        self._kept = dict(state)

    def row(self, key: Any) -> Row:
        """The row of one key."""
        return self._shown(self._kept[key if isinstance(key, tuple) else (key,)])

    def keys(self) -> list[Any]:
        """All keys."""
        return list(self._kept)

    def _net(self, old: Stored | None, new: Stored | None, *, skip_equal: bool = False) -> list[Change]:
        if old is not None and new is not None:
            if skip_equal and self._shown(old) == self._shown(new):
                return []
            return [("-U", self._shown(old)), ("+U", self._shown(new))]
        if old is not None:
            return [("-D", self._shown(old))]
        return [("+I", self._shown(new))] if new is not None else []

    def _stored(self, rows: Sequence[Mapping[str, Any]]) -> list[Stored]:
        columns = self.schema.columns
        return [
            {
                column.id: column.default[1] if value is None and column.default is not None else value
                for column, value in zip(columns, row, strict=True)
            }
            for row in plain_rows(arrow_rows(self.schema, rows))
        ]

    def _shown(self, stored: Stored) -> Row:
        return tuple(stored.get(column.id) for column in self.schema.columns)

    def _key(self, stored: Stored) -> Any:
        if not self.schema.keys:
            self._number += 1
            return self._number
        return tuple(stored[self._id(name)] for name in self.schema.keys)

    def _id(self, name: str) -> int:
        return next(column.id for column in self.schema.columns if column.name == name)


@dataclass
class History:
    """Snapshot id -> what it must show; snapshot id -> the changes it brought."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    changes: dict[int, list[Change]] = field(default_factory=dict)

    def record(self, ids: Sequence[int], first: list[Row], last: list[Row], changes: list[Change]) -> None:
        """A step made the snapshots `ids`: the newest shows `last`, those before it `first`."""
        for number in ids:
            self.rows[number] = last if number == ids[-1] else first
        if ids:
            self.changes[ids[-1]] = changes
