"""A bucket beyond what 32-bit offsets reach, in small: the limit of one array is set to a few rows.

`make soak ARGS='large'` does the same with 2.4 GB of text; here every place that gathers rows of a bucket is seen to go
by parts.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tablestore_engine.lsm import arrow_take as taking
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.store.table_store import TableStore
from tests.unit.store.table_world import changes_of, delete, make_table, put, row, rows_of


def _work(root: Path, parts: Counter[str]) -> tuple[TableStore, dict[str, int]]:
    """Loads, an update, a fold and deletes; how often each of them gathered by parts."""
    store, seen = make_table(root, options={"parquet.row-group-rows": "50"}), {}

    def count(name: str, before: int) -> None:
        seen[name] = parts["gather"] - before

    for at in range(3):
        put(store, *(row(n, f"{n} of {at}" * 20) for n in range(at * 200, at * 200 + 200)))
    start = parts["gather"]
    put(store, *(row(n, f"{n} again" * 20) for n in range(0, 600, 7)))
    count("update", start)
    start = parts["gather"]
    store.compact(full=True)
    count("fold", start)
    start = parts["gather"]
    delete(store, *(row(n) for n in range(1, 600, 7)))
    count("delete", start)
    return store, seen


def test_a_bucket_beyond_one_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Update, changelog, fold and delete give the rows and changes that they give below the limit, and each of them
    takes its rows by parts.
    """
    plain, none = _work(tmp_path / "plain", Counter())
    parts: Counter[str] = Counter()
    gather = taking._gather

    def counted(*arguments: object) -> object:
        parts["gather"] += 1
        return gather(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(taking, "_gather", counted)
    assert take_rows.__kwdefaults__ is not None
    monkeypatch.setitem(take_rows.__kwdefaults__, "array_bytes", 2_000)
    large, seen = _work(tmp_path / "large", parts)
    assert set(none.values()) == {0}
    assert all(count > 5 for count in seen.values()), seen
    assert rows_of(large) == rows_of(plain)
    assert large.snapshots.list_ids() == plain.snapshots.list_ids()
    for number in plain.snapshots.list_ids():
        assert changes_of(large, number) == changes_of(plain, number)
    assert large.verify() == ()
