"""What a table must contain, as plain Python: the oracle of model, crash and concurrency tests.

INVARIANT  no code of the engine is used here: a fault there cannot hide itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Key = tuple[object, ...]
Row = Mapping[str, object]
Frozen = tuple[tuple[str, object], ...]


@dataclass
class ModelTable:
    """A keyed table: `keys` name the primary key columns."""

    keys: tuple[str, ...]
    rows: dict[Key, Row] = field(default_factory=dict)
    versions: dict[int, dict[Key, Row]] = field(default_factory=dict)

    def key_of(self, row: Row) -> Key:
        """The key of a row."""
        return tuple(row[name] for name in self.keys)

    def upserted(self, rows: Iterable[Row]) -> dict[Key, Row]:
        """The content after putting the rows."""
        return {**self.rows, **{self.key_of(row): row for row in rows}}

    def deleted(self, keys: Iterable[Key]) -> dict[Key, Row]:
        """The content without the keys."""
        gone = set(keys)
        return {key: row for key, row in self.rows.items() if key not in gone}

    def commit(self, content: dict[Key, Row], snapshot_id: int) -> None:
        """The content is what snapshot N shows."""
        self.rows = dict(content)
        self.versions[snapshot_id] = dict(content)

    def roll_back(self, snapshot_id: int) -> None:
        """Snapshot N is the newest again."""
        self.versions = {number: rows for number, rows in self.versions.items() if number <= snapshot_id}
        self.rows = dict(self.versions[snapshot_id])

    def changes(self, before: int | None, after: int) -> Counter[tuple[int, Frozen]]:
        """(row kind, row) of the exact changelog between two versions; rows put again unchanged are not in it."""
        old = {} if before is None else self.versions[before]
        new = self.versions[after]
        found: Counter[tuple[int, Frozen]] = Counter()
        for key in old.keys() | new.keys():
            if key not in new:
                found[3, freeze(old[key])] += 1
            elif key not in old:
                found[0, freeze(new[key])] += 1
            elif old[key] != new[key]:
                found[1, freeze(old[key])] += 1
                found[2, freeze(new[key])] += 1
        return found


def freeze(row: Row) -> Frozen:
    """A row as something that can be counted, columns by name."""
    return tuple(sorted(row.items()))


def content_of(rows: Iterable[Row], keys: tuple[str, ...]) -> dict[Key, Row]:
    """Rows by key. Raises ValueError when a key occurs twice."""
    found: dict[Key, Row] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        if key in found:
            raise ValueError(f"key {key} is visible twice")
        found[key] = row
    return found
