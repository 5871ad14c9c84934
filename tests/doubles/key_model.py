"""A table whose keys may move between its partitions, as a dictionary: what Paimon's documentation says of it.

INVARIANT  written from the documentation, not from the engine: none of its modules but the numbers of row kinds is
           used.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.format.row_kind import RowKind

Row = dict[str, object]


class KeyModel:
    """Rows by `id`, with a partition `dt` and values `name`, `n` (aggregation: its sum)."""

    def __init__(self, engine: str) -> None:
        self.engine, self.rows = engine, {}  # type: ignore[var-annotated]

    def put(self, kind: int, row: Row) -> None:
        """One row that comes."""
        key, stored = row["id"], self.rows.get(row["id"])
        if kind in (RowKind.DELETE, RowKind.UPDATE_BEFORE):
            self.rows.pop(key, None)
        elif stored is None or self.engine == "deduplicate":
            self.rows[key] = dict(row)
        elif self.engine != "first-row":
            name = stored["name"] if row["name"] is None else row["name"]
            n = stored["n"] if row["n"] is None else row["n"]
            if self.engine == "aggregation":
                known = [x for x in (stored["n"], row["n"]) if x is not None]
                n = sum(known) if known else None
            self.rows[key] = {**stored, "name": name, "n": n}

    def overwrite(self, partitions: set[str] | None, rows: Sequence[Row]) -> None:
        """The rows take the place of these partitions (None: of all)."""
        self.rows = (
            {} if partitions is None else {k: r for k, r in self.rows.items() if r["dt"] not in partitions}
        )
        for row in rows:
            self.put(0, row)
