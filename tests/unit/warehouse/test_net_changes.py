"""Net changes as sample rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from tablestore_engine.warehouse import net_changes, net_ends
from tablestore_engine.warehouse.net_changes import ChangeCounts, NetChange, count_net_changes
from tablestore_engine.warehouse.net_ends import NetEnds


def changes(*rows: tuple[str, int, str]) -> pa.Table:
    """Changelog rows: kind, key, value."""
    kinds, keys, values = zip(*rows, strict=True)
    return pa.table(
        {"k": list(keys), "v": list(values), "_row_kind": list(kinds), "_snapshot_id": [1] * len(rows)}
    )


def ends_of(changes: pa.Table, keys: list[str]) -> NetEnds:
    """Changes that are read in batches of two rows."""

    def read(columns: Sequence[str] | None) -> list[pa.RecordBatch]:
        some = changes if columns is None else changes.select([*columns, "_row_kind", "_snapshot_id"])
        return some.to_batches(max_chunksize=2)

    return NetEnds(read, ["k", "v"], keys)


def pick_samples(changes: pa.Table, keys: list[str], limit: int) -> tuple[NetChange, ...]:
    """Of the changes in batches of two rows."""
    return net_changes.pick_samples(ends_of(changes, keys), limit)


def row(key: int, value: str) -> dict[str, object]:
    """A row as a sample shows it."""
    return {"k": key, "v": value}


@pytest.mark.parametrize("turn_rows", [1_000, 1])
def test_first_and_last_row_of_a_key_decide(turn_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happened in between, a key is inserted, updated or deleted once; one that came and went is nothing.

    In one turn, or in one for almost each key.
    """
    monkeypatch.setattr(net_ends, "PASS_ROWS", turn_rows)
    found = pick_samples(
        changes(
            ("-U", 1, "a"), ("+U", 1, "b"), ("-U", 1, "b"), ("+U", 1, "c"),
            ("+I", 2, "x"), ("-D", 2, "x"),
            ("-D", 3, "q"), ("+I", 3, "r"),
            ("+I", 4, "n"),
            ("-U", 5, "o"), ("+U", 5, "p"), ("-D", 5, "p"),
            ("-U", 6, "s"), ("+U", 6, "t"), ("-U", 6, "t"), ("+U", 6, "s"),
        ),
        ["k"],
        5,
    )  # fmt: skip
    assert found == (
        NetChange(None, row(4, "n")),
        NetChange(row(1, "a"), row(1, "c")),
        NetChange(row(3, "q"), row(3, "r")),
        NetChange(row(5, "o"), None),
    )
    assert [one.kind for one in found] == ["inserted", "updated", "updated", "deleted"]


def test_rows_without_a_key() -> None:
    """Rows of append-only tables are inserted or deleted, each for itself; what came and went is no change."""
    some = changes(("+I", 1, "a"), ("+I", 1, "a"), ("-D", 1, "a"), ("-D", 2, "b"), ("+I", 2, "c"))
    found = pick_samples(some, [], 5)
    assert found == (
        NetChange(None, row(1, "a")),
        NetChange(None, row(2, "c")),
        NetChange(row(2, "b"), None),
    )
    assert count_net_changes(ends_of(some, [])) == ChangeCounts(2, 0, 1)
    only = changes(("+I", 1, "a"), ("+I", 1, "a"), ("+I", 2, "c"))
    assert pick_samples(only, [], 1) == (NetChange(None, row(1, "a")),)
    assert count_net_changes(ends_of(only, [])) == ChangeCounts(3, 0, 0)


def test_no_changes() -> None:
    """An empty changelog has no samples, and a limit of 0 shows none."""
    some = changes(("+I", 1, "a"))
    assert pick_samples(some.slice(0, 0), ["k"], 5) == ()
    assert pick_samples(some, ["k"], 0) == ()
