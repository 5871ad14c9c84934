"""Readers of a table's log, as the tests of kafka/test_followed*.py use them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tablestore_engine.api import Engine, Table, TableSpec, TableStream, WriteMode, WriteSpec
from tablestore_engine.store.expiry.expiry_rules import Hold
from tablestore_engine.store.retention import Retention

OPTIONS = {
    "transactional": {"log.consistency": "transactional"},
    "eventual": {"log.consistency": "eventual"},
}
BOTH = tuple(OPTIONS)
Change = tuple[str, int, str | None]
STORED = 9


def rows(**values: str) -> pa.Table:
    """`_1="a"`: row 1 has value a."""
    return pa.table({"id": [int(name[1:]) for name in values], "v": list(values.values())})


def deletes(*ids: int) -> pa.Table:
    """Rows that go."""
    kinds = pa.array([3] * len(ids), pa.int8())
    return pa.table({"id": list(ids), "v": [""] * len(ids), "_ROW_KIND": kinds})


def made(
    engine: Engine, consistency: str, *, buckets: int = 2, keyed: bool = True, name: str = "d.t", **more: str
) -> Table:
    """`more` with `__` for `.` and `_` for `-`."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in more.items()}
    topic = f"follow-{uuid.uuid4().hex}"
    options = {
        "log.system": "kafka",
        "kafka.topic": topic,
        "bucket": str(buckets),
        **OPTIONS[consistency],
        **named,
    }
    if not keyed:
        options.pop("bucket")
    spec = WriteSpec(table=TableSpec(primary_key=("id",) if keyed else (), options=options))
    engine.write(name, rows(**{f"_{n}": "a" for n in range(1, STORED + 1)}), spec)
    return engine.table(name)


def grow(table: Table) -> None:
    """Snapshots 2 to 6: updates and a new row, deletes, a compaction, a row that came before, an overwrite."""
    table.write(rows(_1="b", _2="b", _20="b"))
    table.write(deletes(3, 20))
    table.compact(full=True)
    table.write(rows(_3="c", _21="c"))
    table.write(rows(_1="o", _4="a", _22="o"), WriteSpec(mode=WriteMode.OVERWRITE_TABLE))


def ended(table: Table, mode: str | None = "earliest", **words: Any) -> TableStream:
    """Over the log, with a position instead of a mode where one is given."""
    if "position" in words or "consumer_id" in words:
        mode = None
    return table.stream(mode, **{"read_mode": "log", "wait": lambda _: True, **words})


def told(stream: TableStream) -> list[tuple[int | None, Change]]:
    """All that comes, with its snapshot."""
    found: list[tuple[int | None, Change]] = []
    for batch in stream:
        found += [
            (row["_snapshot_id"], (row["_row_kind"], row["id"], row.get("v"))) for row in batch.to_pylist()
        ]
    return found


def changes(stream: TableStream) -> list[Change]:
    """All that comes."""
    return [change for _, change in told(stream)]


def folded(listed: Iterable[Change], into: Mapping[int, str | None] | None = None) -> dict[int, str | None]:
    """Raises AssertionError where the changes do not fit what they change."""
    found = dict(into or {})
    for kind, key, value in listed:
        if kind in ("+I", "+U"):
            assert key not in found, (kind, key)
            found[key] = value
        else:
            assert found.pop(key, "gone") == value, (kind, key, value)
    return found


def expire(table: Table) -> None:
    """All snapshots but the newest that nobody holds."""
    rules = Retention(1, None, retained_ms=-1, grace_ms=-1, limit=None)
    published = Hold(table.latest_snapshot_id() or 0, "the log has all of it")
    table.store.expire(rules, log=published)


def stored(table: Table, snapshot: int | None = None) -> dict[int, str | None]:
    """The table itself."""
    scan = table.scan() if snapshot is None else table.scan(snapshot=snapshot)
    return {row["id"]: row.get("v") for row in scan.to_arrow().to_pylist()}
