"""lookup: stored rows are found wherever they lie, skipping never hides one, memory stays bounded."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.errors import EngineBug
from tablestore_engine.format.data_file import SEQUENCE_NUMBER
from tablestore_engine.lsm.key_order import key_at, order_columns
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.merge import lookup
from tablestore_engine.store.merge.bucket_keys import sorted_keys
from tablestore_engine.store.merge.lookup import KeyCache, fetch, find_hits, key_range
from tests.unit.store.bucket_world import World, make_schema

SMALL_GROUPS = {"parquet.row-group-rows": "10"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Even keys 0 … 998 in one file of 50 row groups."""
    made = World(tmp_path, make_schema({"id": "BIGINT", "v": "STRING"}, options=SMALL_GROUPS))
    made.upsert([{"id": 2 * key, "v": str(key)} for key in range(500)])
    return made


def _find(world: World, keys: list[int], cache: KeyCache | None):
    frame = order_columns(pa.table({"id": pa.array(keys, pa.int64())}), ("id",))
    return find_hits(world.files.reader, world.state.files, frame, cache)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(
    "keys", [[0], [998], [500, 502, 503], [-5, 0, 998, 2000], [999], [-1], list(range(1000))]
)
def test_hits_and_rows(world: World, keys: list[int], cached: bool) -> None:
    """Exactly the stored keys are hit, at positions from which their own rows are fetched; with and without memory."""
    cache = KeyCache() if cached else None
    for _ in range(2):
        hits = _find(world, keys, cache)
        assert [keys[at] for at in hits.incoming] == [key for key in keys if key in range(0, 1000, 2)]
        rows = fetch(world.files.reader, hits.by_file, None)
        found = [] if rows is None else rows.to_pylist()
        frame = order_columns(pa.table({"id": pa.array(keys, pa.int64())}), ("id",))
        assert rows == fetch(world.files.reader, hits.by_file, None, keys=frame)
        assert found == [{"id": keys[at], "v": str(keys[at] // 2)} for at in hits.incoming]


def test_deleted_positions_are_no_hits(world: World) -> None:
    """A row that a vector hides is not found."""
    world.upsert([{"id": 4, "v": None}], [3])
    hits = _find(world, [2, 4, 6], None)
    assert hits.incoming.tolist() == [0, 2]


def test_rows_of_files_with_other_nullability_are_fetched_together(world: World) -> None:
    """Another writer may leave NOT NULL out of its file, of system columns too."""
    world.upsert([{"id": 4, "v": "x"}])
    path = world.state.files[0].path
    rows = pq.ParquetFile(path).read()
    nullable = pa.schema([field.with_nullable(True) for field in rows.schema])
    pq.write_table(pa.Table.from_arrays(rows.columns, schema=nullable), path)
    hits = _find(world, [2, 4, 6], None)
    assert len(hits.by_file) == 2
    found = fetch(world.files.reader, hits.by_file, None, keep=(SEQUENCE_NUMBER,))
    assert found is not None
    assert sorted(found["id"].to_pylist()) == [2, 4, 6]


def test_only_the_newest_of_several_runs(world: World) -> None:
    """After updates a key is found once, in the run that has its visible row."""
    world.upsert([{"id": 4, "v": "x"}])
    world.upsert([{"id": 4, "v": "y"}, {"id": 6, "v": "z"}])
    hits = _find(world, [2, 4, 6], None)
    rows = fetch(world.files.reader, hits.by_file, ("v",))
    assert rows is not None
    assert rows.take(pa.array(hits.order)).column("v").to_pylist() == ["1", "y", "z"]


def test_two_visible_rows_stop_the_commit(world: World) -> None:
    """A key that is visible twice is corruption and is refused, never resolved by chance."""
    twice = type(world.state)((), world.state.partition_bytes, "", 0, world.state.files * 2)
    world.state = twice
    with pytest.raises(EngineBug, match="TS1652"):
        _find(world, [2], None)


def test_string_keys_of_other_files_are_skipped(tmp_path: Path) -> None:
    """Text keys outside of every file's range open no file."""
    world = World(tmp_path, make_schema({"id": "STRING", "v": "INT"}))
    world.upsert([{"id": "b", "v": 1}, {"id": "d", "v": 2}])
    Path(world.state.files[0].path).unlink()
    frame = pl.DataFrame({"0": ["e", "f"]})
    assert find_hits(world.files.reader, world.state.files, frame, None).incoming.tolist() == []


def test_cache_is_bounded_and_forgets_the_oldest() -> None:
    """What does not fit pushes out what was used longest ago; a frame of half the capacity is not kept."""
    cache, frame = KeyCache(capacity_bytes=2000), pl.DataFrame({"0": [0] * 100})
    for name in ("a", "b"):
        cache.put(name, ("id",), frame)
    assert cache.find("a", ("id",)) is not None
    cache.put("c", ("id",), frame)
    assert [cache.find(name, ("id",)) is not None for name in "abc"] == [True, False, True]
    cache.put("large", ("id",), pl.DataFrame({"0": [0] * 200}))
    assert cache.find("large", ("id",)) is None


def test_key_column_is_remembered_after_half_of_its_row_groups(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer of some keys at a time reads less than half of the column, then all of it once, then nothing."""
    monkeypatch.setattr(lookup, "FEW_ROWS", 0)
    cache, read, groups = KeyCache(), ParquetInput.read, list[int]()

    def recorded(self: ParquetInput, columns: list[str], some: list[int], **more: bool) -> pa.Table:
        groups.append(len(some))
        return read(self, columns, some, **more)

    monkeypatch.setattr(ParquetInput, "read", recorded)
    for turn in range(30):
        key = turn * 20
        assert _find(world, [key], cache).incoming.tolist() == [0]
    assert groups == [1] * 24 + [50]


@pytest.mark.parametrize("low", [(-(2**63), ""), (5, "a\x00é"), (7, "￿😀")])
def test_key_range_of_integers_and_texts_is_that_of_keys(tmp_path: Path, low: tuple[int, str]) -> None:
    """Bounds from the metadata compare and equal as the same keys in a frame."""
    world = World(tmp_path, make_schema({"id": "BIGINT NOT NULL", "k": "STRING NOT NULL"}, keys=("id", "k")))
    high = (2**63 - 1, "z")
    world.upsert([dict(zip(("id", "k"), one, strict=True)) for one in (low, high)])
    rows = world.table([dict(zip(("id", "k"), one, strict=True)) for one in (low, high)])
    frame = order_columns(rows, ("id", "k"))
    assert key_range(world.schema, world.state.files[0]) == (key_at(frame, 0), key_at(frame, 1))


@pytest.mark.parametrize(
    ("types", "values"),
    [
        ({"id": "INT", "k": "STRING"}, [(-1, ""), (0, "é"), (0, "ﬀ"), (2**31 - 1, "a" * 300)]),
        ({"id": "TINYINT"}, [(-128,), (0,), (127,)]),
        ({"id": "BIGINT", "k": "SMALLINT"}, [(-(2**63), -1), (5, 0), (5, 1), (2**63 - 1, 2**15 - 1)]),
        ({"id": "DECIMAL(5, 2)", "k": "INT"}, [(Decimal("-1.50"), 1), (Decimal("2.00"), 2)]),
        ({"id": "DOUBLE"}, [(-0.0,), (0.0,), (1.5,)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [None, ("v",), ("v", "id"), ("id",)])
def test_rows_with_the_values_of_their_keys_equal_rows_that_are_decoded(
    tmp_path: Path,
    types: dict[str, str],
    values: list[tuple[object, ...]],
    columns: tuple[str, ...] | None,
) -> None:
    """Key columns taken from the keys have the values, types and places of those in the file."""
    world = World(tmp_path, make_schema({**types, "v": "INT"}, keys=tuple(types)))
    rows = [dict(zip(types, one, strict=True)) for one in values]
    world.upsert([{**one, "v": number} for number, one in enumerate(rows)])
    frame = sorted_keys(world.table([{**one, "v": None} for one in rows]), world.schema)
    hits = find_hits(world.files.reader, world.state.files, frame, None)
    for keep in ((), (SEQUENCE_NUMBER,)):
        whole = fetch(world.files.reader, hits.by_file, columns, keep=keep)
        assert whole is not None
        assert whole.num_rows == len(values)
        quick = fetch(world.files.reader, hits.by_file, columns, keep=keep, keys=frame)
        assert quick == whole
        assert quick.schema.equals(whole.schema, check_metadata=True)
