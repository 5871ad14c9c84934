"""Tables that Spark follows into copies, by chance, and what the copies must be: for soak/killed_streams.py.

Shapes     with a key: upserts, deletes, compactions, overwrites, followed with their kinds · without one: appends and
           compactions, every row another one · partitions, buckets, limits of a batch, consumers, inputs that expire
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablestore_engine.api import Engine, Table, TableSpec, WriteMode, WriteSpec

_EXPIRES = {
    "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "tablestore.expire-grace": "0 s",
}  # fmt: skip


@dataclass
class History:
    """`written`: rows of a table without a key so far, which number them."""

    number: int
    chance: random.Random
    checkpoint: Path
    keys: tuple[str, ...]
    parts: tuple[str, ...]
    buckets: tuple[str, str]
    expires: bool
    options: dict[str, str]
    written: int = 0

    @classmethod
    def of(cls, seed: int, number: int, checkpoints: Path) -> History:
        """What the seed decides."""
        chance = random.Random(f"{seed}/{number}")
        is_keyed, is_parted = chance.random() < 0.6, chance.random() < 0.3
        keys = (("part", "id") if is_parted else ("id",)) if is_keyed else ()
        parts = ("part",) if is_parted else ()
        options = {"scan.mode": chance.choice(("earliest", "latest-full"))}
        if is_keyed or chance.random() < 0.5:
            options["read.changelog"] = "true"
        options |= chance.choice(
            ({}, *({"maxSnapshotsPerTrigger": str(one)} for one in (1, 1, 2)), {"maxRowsPerTrigger": "6"})
        )
        expires = False
        if chance.random() < 0.5:
            options["consumer-id"] = "copy"
            expires = options["scan.mode"] == "latest-full" and chance.random() < 0.6
        buckets = (str(chance.randint(1, 3)), str(chance.randint(1, 3)))
        return cls(number, chance, checkpoints / str(number), keys, parts, buckets, expires, options)

    @property
    def input(self) -> str:
        """The table that is followed."""
        return f"demo.i{self.number}"

    @property
    def copy(self) -> str:
        """The sink."""
        return f"demo.c{self.number}"

    def spec(self, place: int) -> TableSpec:
        """Of the input (0), of the copy (1)."""
        options = {"bucket": self.buckets[place]} if self.keys else {}
        more = _EXPIRES if self.expires and not place else {}
        return TableSpec(primary_key=self.keys, partition_by=self.parts, options={**options, **more})

    def make(self, engine: Engine) -> None:
        """Both tables; the copy is empty."""
        self.change(engine)
        schema = engine.table(self.input).schema.arrow_schema()
        spec = self.spec(1)
        engine.create_table(
            self.copy,
            schema,
            primary_key=spec.primary_key,
            partition_by=spec.partition_by,
            options=spec.options,
        )

    def change(self, engine: Engine) -> None:
        """One to three commits of the input."""
        for _ in range(self.chance.randint(1, 3)):
            what = self.chance.random()
            if what < 0.12 and self.written:
                engine.table(self.input).compact(full=self.chance.random() < 0.5)
                continue
            is_whole = what > 0.93 and self.keys
            mode = WriteMode.OVERWRITE_TABLE if is_whole else WriteMode.UPSERT
            engine.write(self.input, self._rows(with_kinds=not is_whole), WriteSpec(self.spec(0), mode=mode))

    def _rows(self, *, with_kinds: bool) -> pa.Table:
        count = self.chance.randint(1, 6)
        new = range(self.written, self.written + count)
        ids = self.chance.sample(range(14), count) if self.keys else list(new)
        self.written += count
        values = [self.chance.choice((None, "a", f"{self.written}", "x" * 50)) for _ in ids]
        rows = {"part": [one % 2 for one in ids], "id": ids, "v": pa.array(values, pa.string())}
        if self.keys and with_kinds:
            rows["_ROW_KIND"] = pa.array([self.chance.choice((0, 0, 3)) for _ in ids], pa.int8())
        return pa.table(rows)

    def query(self) -> dict[str, Any]:
        """For the child's plan."""
        return {
            "name": str(self.number), "input": self.input, "copy": self.copy, "options": self.options,
            "checkpoint": str(self.checkpoint),
            "sink": {"duplicates": "last"} if self.keys else {},  # a batch may have two changes of a key
        }  # fmt: skip

    def pick_file(self, chance: random.Random, warehouse: Path) -> Path:
        """One that the next batches will make: of the checkpoint, or a snapshot of the copy."""
        kind = chance.choice(("offsets", "commits", "snapshot"))
        is_snapshot = kind == "snapshot"
        parent = warehouse / f"demo.db/c{self.number}/snapshot" if is_snapshot else self.checkpoint / kind
        names = [path.name.removeprefix("snapshot-") for path in parent.glob("*")] if parent.is_dir() else []
        newest = max((int(name) for name in names if name.isdigit()), default=0 if is_snapshot else -1)
        return parent / f"{'snapshot-' if is_snapshot else ''}{newest + chance.choice((1, 1, 1, 2))}"


# judging --------------------------------------------------------------------------------------------------------


def judge(engine: Engine, history: History, where: str) -> dict[str, int]:
    """The copy is the input; each batch is there once; what was committed, and compared."""
    copy, source = engine.table(history.copy), engine.table(history.input)
    rows, expected = _sorted_rows(copy), _sorted_rows(source)
    if not history.keys:
        assert len(set(rows)) == len(rows), f"{where}: {len(rows) - len(set(rows))} rows are there twice"
    assert rows == expected, f"{where}: missing {_less(expected, rows)}, not expected {_less(rows, expected)}"
    problems = copy.verify()
    assert problems == (), f"{where}: {problems}"
    commits = [one for one in copy.snapshots() if one.commit_kind == "APPEND"]
    query = json.loads((history.checkpoint / "metadata").read_text())["id"]
    users = {one.commit_user for one in commits}
    assert users <= {query}, f"{where}: commits of {users}, the query is {query}"
    _check_batches(history, source, [one.commit_identifier for one in commits], where)
    if history.keys:
        _check_fold(copy, history, where)
    return {"batches committed": len(commits), "rows compared": len(rows)}


def _sorted_rows(table: Table) -> list[str]:
    return sorted(str(sorted(row.items())) for row in table.scan().to_arrow().to_pylist())


def _less(some: list[str], others: list[str]) -> list[str]:
    return list((Counter(some) - Counter(others)).elements())[:3]


def _check_batches(history: History, source: Table, found: list[int], where: str) -> None:
    """Identifiers are 0 … n-1, each once and in order, without those of batches that have no rows."""
    assert found == sorted(set(found)), f"{where}: commits of batches {found}"
    offsets = history.checkpoint / "offsets"
    planned = {int(path.name): path for path in offsets.glob("*") if path.name.isdigit()}
    assert sorted(planned) == list(range(len(planned))), f"{where}: batches {sorted(planned)} were planned"
    assert set(found) <= set(planned), f"{where}: commits of batches {found}, of {len(planned)}"
    for number in sorted(set(planned) - set(found)):
        offset = json.loads(planned[number].read_text().splitlines()[2])
        begin, end = offset["begin"], offset["end"]
        if history.expires or begin["part"] != "changes":
            continue
        lost = source.changes(begin["snapshot"] - 1, end["snapshot"] - 1).to_pylist()
        assert not lost, f"{where}: batch {number} has no commit, and rows {lost[:3]}"


def _check_fold(copy: Table, history: History, where: str) -> None:
    """The copy's own changelog, strict: nothing comes that is there, nothing goes that is not."""
    there: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in copy.changes(0).to_pylist():
        kind, snapshot = row.pop("_row_kind"), row.pop("_snapshot_id")
        key, at = tuple(row[name] for name in history.keys), f"{where}: snapshot {snapshot} of the copy"
        if kind in ("+I", "+U"):
            assert key not in there, f"{at}: {kind} of {row}, there is {there[key]}"
            there[key] = row
        else:
            assert there.pop(key, None) == row, f"{at}: {kind} of {row}, which is not there so"
    folded = sorted(str(sorted(row.items())) for row in there.values())
    assert folded == _sorted_rows(copy), f"{where}: the copy's changes fold into another table"
