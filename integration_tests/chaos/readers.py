"""Readers of ours over a log that was attacked: what they tell has to be a changelog, and end as the table.

Promise    an upsert log, and an eventual one with its doubled and taken-back rows, is normalized into -U +U +I -D
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from integration_tests.interop.rows import Change
from tablestore_engine.api import Engine

Rows = Counter[tuple[int, str]]


@dataclass(frozen=True)
class Told:
    """As a reader of the table has it."""

    snapshot: int | None
    kind: str
    key: int
    value: str

    @property
    def row(self) -> tuple[int, str]:
        """Without the rest."""
        return self.key, self.value


def follow(engine: Engine, name: str, mode: str, snapshot: int | None, batch_rows: int) -> Iterator[Told]:
    """To the newest snapshot, from the log."""
    stream = engine.table(name).stream(
        mode, snapshot_id=snapshot, until="now", read_mode="log", batch_rows=batch_rows
    )
    for batch in stream:
        columns = (batch[one].to_pylist() for one in ("_snapshot_id", "_row_kind", "id", "v"))
        yield from (Told(*row) for row in zip(*columns, strict=True))


def check_told(told: Iterable[Told], expected: Iterable[tuple[int, str]], where: str) -> int:
    """Folded from nothing; how many there were. Rows of a table without a key are a bag."""
    rows: Rows = Counter()
    count = 0
    for one in told:
        count += 1
        if one.kind in ("+I", "+U"):
            rows[one.row] += 1
        else:
            assert rows[one.row] > 0, f"{where}: {one} takes away what is not there"
            rows[one.row] -= 1
    wanted = Counter(expected)
    assert +rows == wanted, f"{where}: {dict(+rows - wanted)} too much, {dict(wanted - rows)} missing"
    return count


def check_keys(told: Iterable[Told], where: str) -> Iterator[Told]:
    """Of a table with a key: +I of a key that is not there, +U behind its -U, another value than before."""
    values: dict[int, str] = {}
    updated: dict[int, str] = {}
    for one in told:
        if one.kind == "+I":
            assert one.key not in values, f"{where}: {one}, it is {values[one.key]}"
        elif one.kind == "+U":
            before = updated.pop(one.key, None)
            assert before is not None, f"{where}: {one} without -U"
            assert before != one.value, f"{where}: {one} changes nothing"
        else:
            assert values.pop(one.key, None) == one.value, f"{where}: {one}"
        if one.kind == "-U":
            updated[one.key] = one.value
        if one.kind.startswith("+"):
            values[one.key] = one.value
        yield one
    assert not updated, f"{where}: -U without +U: {updated}"


def check_exact(told: Sequence[Told], expected: Mapping[int, Sequence[Change]], where: str) -> None:
    """Snapshot by snapshot, in order."""
    found: dict[int, list[Change]] = {}
    for one in told:
        assert one.snapshot is not None, f"{where}: {one}"
        assert one.snapshot >= max(found, default=0), f"{where}: {one} behind snapshot {max(found)}"
        found.setdefault(one.snapshot, []).append((one.kind, one.row))
    for snapshot in found.keys() | {one for one, changes in expected.items() if changes}:
        wanted, have = Counter(expected.get(snapshot, ())), Counter(found.get(snapshot, ()))
        assert wanted == have, (
            f"{where}, snapshot {snapshot}: {wanted - have} missing, {have - wanted} too much"
        )
