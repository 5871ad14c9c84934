"""Flink 2.0 with Paimon's connector 1.4.2 as a reader and writer of tables.

Columns    Flink shows past snapshots with the newest columns (docs/engines.md)
End        a stream ends by itself at a snapshot with a watermark: `follow` adds one to a copy of the table
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from integration_tests.interop.flink_sql import FlinkSql
from integration_tests.interop.rows import Change, Row

_BATCH = "SET 'execution.runtime-mode' = 'batch';\n"
FROM_START = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
_AT_ONCE = 12  # snapshots in a query


class FlinkTables:
    """One cluster; `location` is <warehouse>/<database>.db/<table>. Each call opens the catalog again."""

    name = "flink 2.0.0"

    def __init__(self, folder: Path) -> None:
        """Starts the cluster. Raises CannotMake."""
        self.cluster, self._folder = FlinkSql(folder), folder

    def close(self) -> None:
        """End the cluster."""
        self.cluster.close()

    def read(self, location: Path, snapshot: int | None = None, *, tag: str | None = None) -> list[Row]:
        """Rows of the newest state, of a snapshot or of a tag, in the newest columns."""
        hints = {"scan.snapshot-id": str(snapshot)} if snapshot is not None else {}
        hints |= {"scan.tag-name": tag} if tag is not None else {}
        return _rows(self.sql(location, f"SELECT * FROM {{table}} {_hint(hints)}"))

    def read_all(self, location: Path, snapshots: Sequence[int]) -> dict[int, list[Row]]:
        """The rows of these snapshots, some of them in one query."""
        found: dict[int, list[Row]] = {one: [] for one in snapshots}
        for first in range(0, len(snapshots), _AT_ONCE):
            parts = [
                f"SELECT {one} AS at_snapshot, * FROM {{table}} {_hint({'scan.snapshot-id': str(one)})}"
                for one in snapshots[first : first + _AT_ONCE]
            ]
            for snapshot, *row in _rows(self.sql(location, "\nUNION ALL\n".join(parts))):
                found[snapshot].append(tuple(row))
        return found

    def sql(self, location: Path, text: str, *, before: str = "") -> list[Change]:
        """The rows of a statement in batch mode after other statements; `{table}` stands for the table's name."""
        return self.cluster.changes(_BATCH + before + self._script(location, text))

    def follow(self, location: Path, hints: Mapping[str, str] = FROM_START) -> list[Change]:
        """All changes of a streaming read from snapshot 1, or as the hints say, until the newest."""
        copy = ending_copy(location, self._folder / "copies" / location.parent.name / location.name)
        ends = {"scan.bounded.watermark": "0", "continuous.discovery-interval": "10 ms"}
        query = f"SELECT * FROM {{table}} {_hint({**hints, **ends})}"
        in_order = "SET 'parallelism.default' = '1';\n"
        try:
            return self.cluster.changes(in_order + self._script(copy, query))
        finally:
            shutil.rmtree(copy)

    def _script(self, location: Path, text: str) -> str:
        warehouse = location.parent.parent
        catalog = f"CREATE CATALOG p WITH ('type' = 'paimon', 'warehouse' = 'file:{warehouse}');\n"
        name = f"p.`{location.parent.name.removesuffix('.db')}`.`{location.name}`"
        return catalog + text.replace("{table}", name) + ";\n"


def ending_copy(location: Path, copy: Path) -> Path:
    """The table and one more snapshot, which only says that the stream is at its end."""
    shutil.copytree(location, copy, copy_function=os.link)
    newest = max(int(path.name.removeprefix("snapshot-")) for path in copy.glob("snapshot/snapshot-*"))
    stored = json.loads((copy / "snapshot" / f"snapshot-{newest}").read_text())
    ending = {**stored, "id": newest + 1, "watermark": 1}
    (copy / "snapshot" / f"snapshot-{newest + 1}").write_text(json.dumps(ending))
    (copy / "snapshot" / "LATEST").unlink(missing_ok=True)
    return copy


def _hint(options: dict[str, str]) -> str:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"/*+ OPTIONS({listed}) */" if options else ""


def _rows(changes: Sequence[Change]) -> list[Row]:
    assert {kind for kind, _ in changes} <= {"+I"}
    return [row for _, row in changes]
