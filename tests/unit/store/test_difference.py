"""The difference of stored rows in several passes: the same changes as in one, and an order that can be applied."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tablestore_engine.store import difference
from tests.doubles.reference_model import freeze
from tests.unit.store.table_world import Row, make_table, overwrite, put, row
from tests.unit.store.test_changelog import foreign_overwrite
from tests.unit.stream.stream_world import fold, reader, rows_of_batches, state_of

OLD = [row(number % 10, f"old {number}", number) for number in range(10)]
NEW = [row(number % 10, f"new {number}", number) for number in range(2, 10)] + [OLD[0]]


def _changes(root: Path, keys: tuple[str, ...]) -> tuple[list[Row], object, object]:
    """Rows of the second snapshot, an overwrite without changelog; the state before and after it."""
    store = make_table(root, keys=keys)
    put(store, *OLD)
    if keys:
        foreign_overwrite(store, NEW)
    else:
        overwrite(store, *NEW)
    rows = rows_of_batches(reader(store, "from-snapshot", snapshot_id=2))
    return rows, state_of(store, 1), state_of(store, 2)


@pytest.mark.parametrize("keys", [("id",), ()])
def test_passes_give_the_same_changes(
    keys: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass, or twenty: equal as multisets; applied in their order they lead to the new rows."""
    whole, _, _ = _changes(tmp_path / "one", keys)
    monkeypatch.setattr(difference, "PASS_ROWS", 1)
    parts, before, after = _changes(tmp_path / "many", keys)
    assert Counter(map(freeze, whole)) == Counter(map(freeze, parts))
    assert [one["id"] for one in whole] != [one["id"] for one in parts]
    assert fold(before, parts, keys) == after  # type: ignore[arg-type]
    assert len(whole) == len(OLD) + len(NEW) - 2


def test_the_order_is_kept_for_ever() -> None:
    """Positions of readers count on it: a change of this number needs a new version of theirs."""
    assert difference.PASS_ROWS == 1_000_000
