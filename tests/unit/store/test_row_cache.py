"""Rows that a reader keeps decoded are those that a look-up without them finds, and they stay within their bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.read import key_lookup
from tablestore_engine.store.read.row_cache import RowCache
from tablestore_engine.store.table_store import TableStore
from tests.doses import examples
from tests.unit.store.table_world import delete, make_table, put

KEYS, GROUP_ROWS = 400, 20


def _found(store: TableStore, keys: Sequence[int], kept: RowCache | None) -> list[dict[str, object]]:
    asked = pa.table({"id": pa.array(keys, pa.int64())})
    rows = key_lookup.find_rows(store.fileio, store.plan_scan(), asked, kept=kept)
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


def _table(folder: Path) -> TableStore:
    store = make_table(folder, options={"bucket": "2", "parquet.row-group-rows": str(GROUP_ROWS)})
    put(store, *[{"id": one, "name": f"n{one}", "n": one % 7} for one in range(KEYS)])
    return store


@pytest.mark.parametrize("seed", range(examples(5, 60)))
def test_look_ups_with_kept_rows_find_what_others_find(seed: int, tmp_path: Path) -> None:
    """One cache over snapshots that put, replace and delete rows, roomy or for one file only."""
    rng = random.Random(seed)
    store = _table(tmp_path)
    kept = RowCache(capacity_bytes=rng.choice([1 << 20, 6_000, 100]))
    for _ in range(6):
        change = rng.choice(["put", "delete", "none"])
        some = rng.sample(range(KEYS + 50), 60)
        if change == "put":
            put(store, *[{"id": one, "name": rng.choice([None, "x"]), "n": rng.randrange(9)} for one in some])
        elif change == "delete":
            delete(store, *[{"id": one} for one in some])
        for _ in range(3):
            asked = rng.sample(range(-20, KEYS + 80), rng.choice([3, 150, 300]))
            assert _found(store, asked, kept) == _found(store, asked, None)
            assert kept.held_bytes <= kept.capacity_bytes


def test_keys_of_all_row_groups_decode_a_file_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for the keys that are asked first, once as a whole; from then on nothing is decoded."""
    store, kept, asked = _table(tmp_path), RowCache(), range(0, KEYS, 3)
    _found(store, asked, kept)
    _found(store, asked, kept)
    reads: list[tuple[str, ...]] = []
    read = ParquetInput.read

    def recorded(self: ParquetInput, columns: Sequence[str], *more: Any, **named: Any) -> pa.Table:
        reads.append(tuple(columns))
        return read(self, columns, *more, **named)

    monkeypatch.setattr(ParquetInput, "read", recorded)
    assert len(_found(store, range(1, KEYS, 3), kept)) == KEYS // 3
    assert reads == []
    assert kept.held_bytes > 0


def test_few_keys_keep_nothing(tmp_path: Path) -> None:
    """A reader of a log with rare changes decodes their row groups alone, and holds no rows."""
    store, kept = _table(tmp_path), RowCache()
    for one in range(5):
        _found(store, [one], kept)
    assert kept.held_bytes == 0
