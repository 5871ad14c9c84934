"""Tables with a key and `bucket` = -1: a hash index says in which bucket a key lies."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.bucket import hash_rows
from tablestore_engine.format.hash_index import decode_hashes, encode_hashes
from tablestore_engine.format.index_manifest import HASH, IndexEntry, replace_entries
from tablestore_engine.store.rows import bucket_assigner
from tablestore_engine.store.rows.bucket_assigner import BucketAssigner, plan_rooms
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.dynamic_buckets import find_assigner
from tablestore_engine.store.write.write_request import WriteMode
from tests.unit.store.table_world import (
    acting,
    as_table,
    changes,
    changes_of,
    delete,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)

DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}


def index_of(store: TableStore) -> dict[tuple[bytes, int], list[int]]:
    """The hashes of each bucket."""
    newest = store.latest()
    assert newest is not None
    manifests = store.context.manifests
    return {
        (one.partition, one.bucket): sorted(manifests.read_hashes(one).tolist())
        for one in manifests.read_index(newest.index_manifest)
        if one.index_type == HASH
    }


def sizes_of(store: TableStore) -> list[int]:
    """How many hashes each bucket has, in the order of partitions and buckets."""
    return [len(held) for _, held in sorted(index_of(store).items())]


def hashes_of(store: TableStore, numbers: Sequence[int]) -> list[int]:
    """Of keys `id`."""
    field = store.schema.field("id")
    return sorted(hash_rows([pa.array(numbers, pa.int64())], [field.type]).tolist())


def ids_of(store: TableStore) -> list[int]:
    """The keys that are visible."""
    return sorted(store.read(columns=["id"]).column("id").to_pylist())


def test_the_file_is_as_java_writes_it() -> None:
    """Signed numbers of four bytes, the highest first, and nothing else; another length is damage."""
    hashes = np.array([1465514398, -300363099, -1], np.int32)
    data = bytes.fromhex("5759f99eee18d2a5ffffffff")
    assert encode_hashes(hashes) == data
    entry = IndexEntry(b"", 0, HASH, "index-1", len(data), 3)
    assert decode_hashes(data, entry).tolist() == hashes.tolist()
    with pytest.raises(FixData, match="TS1195"):
        decode_hashes(data[:-1], entry)


def test_new_keys_fill_buckets_one_after_the_other(tmp_path: Path) -> None:
    """Up to the target; known keys stay where they are; a key that is only deleted takes no room and no snapshot."""
    store = make_table(tmp_path, options=DYNAMIC)
    put(store, *(row(n) for n in range(10)))
    assert sizes_of(store) == [4, 4, 2]
    before = index_of(store)
    put(store, *(row(n, "b") for n in range(10)))
    assert delete(store, row(77)).is_empty
    assert index_of(store) == before
    put(store, *(row(n) for n in range(10, 13)))
    assert sizes_of(store) == [4, 4, 4, 1]
    delete(store, row(3))
    assert ids_of(store) == [0, 1, 2, *range(4, 13)]
    assert store.verify() == ()


def test_buckets_that_may_not_grow_in_number_take_more_keys(tmp_path: Path) -> None:
    """`dynamic-bucket.max-buckets`: evenly."""
    store = make_table(tmp_path, options={**DYNAMIC, "dynamic-bucket.max-buckets": "2"})
    put(store, *(row(n) for n in range(10)))
    assert sizes_of(store) == [5, 5]
    put(store, *(row(n) for n in range(10, 14)))
    assert sizes_of(store) == [7, 7]
    assert store.verify() == ()


@pytest.mark.parametrize("target", [1, 3, 100])
@pytest.mark.parametrize("buckets_max", [1, 4, 1_000])
def test_rooms_hold_what_is_wanted(target: int, buckets_max: int) -> None:
    """Exactly as many keys as come; never more buckets than allowed, never over the target before that."""
    rng = random.Random(target * buckets_max)
    for _ in range(200):
        held = {number: rng.randrange(2 * target) for number in rng.sample(range(6), rng.randrange(5))}
        wanted = rng.randrange(1, 20)
        rooms = plan_rooms(held, wanted, target=target, buckets_max=buckets_max)
        assert sum(room for _, room in rooms) == wanted
        assert all(room > 0 for _, room in rooms)
        assert len({*held, *dict(rooms)}) <= max(buckets_max, len(held))
        is_full = len({*held, *dict(rooms)}) >= buckets_max
        assert is_full or all(held.get(bucket, 0) + room <= target for bucket, room in rooms)


def test_each_partition_has_buckets_of_its_own(tmp_path: Path) -> None:
    """Equal keys of two partitions, one of which is NULL, are two rows."""
    store = make_table(tmp_path, keys=("name", "id"), partitions=("name",), options=DYNAMIC)
    put(store, *(row(n, name) for n in range(6) for name in ("x", "y")))
    put(store, *(row(n, "x", 1) for n in range(3, 9)))
    assert sorted(sizes_of(store)) == [1, 2, 4, 4, 4]
    assert len(rows_of(store)) == 15
    assert store.verify() == ()


def test_an_overwrite_forgets_the_keys_that_are_gone(tmp_path: Path) -> None:
    """Else a table that is built again each day with other keys would fill its buckets with dead ones."""
    store = make_table(tmp_path, options=DYNAMIC)
    for day in range(4):
        overwrite(store, *(row(n) for n in range(day * 6, day * 6 + 7)))
        held = [one for hashes in index_of(store).values() for one in hashes]
        assert sorted(held) == hashes_of(store, range(day * 6, day * 6 + 7))
        assert max(sizes_of(store)) <= 4
    assert len(index_of(store)) <= 4
    assert store.verify() == ()


def test_rows_are_found_and_replaced_in_whichever_bucket(tmp_path: Path) -> None:
    """Look-ups by key, and replacing by another column."""
    store = make_table(tmp_path, options=DYNAMIC)
    put(store, *(row(n, f"n{n % 2}") for n in range(10)))
    newest = store.latest()
    assert newest is not None
    found = store.find_rows(newest, pa.table({"id": pa.array([9, 1, 50, 4])}), ["id"])
    assert sorted(found.column("id").to_pylist()) == [1, 4, 9]
    put(store, row(20, "n1"), mode=WriteMode.REPLACE, replaces=SameKeys(("name",)))
    assert ids_of(store) == [0, 2, 4, 6, 8, 20]
    assert store.verify() == ()


def test_a_restore_tells_each_key_in_its_bucket(tmp_path: Path) -> None:
    """An update is told as one. Where a key that an overwrite has forgotten came back into another bucket it is
    refused: nothing would order its deletion there and its insertion here.
    """
    store = make_table(tmp_path, options=DYNAMIC)
    put(store, *(row(n) for n in range(8)))
    put(store, row(7, "b"), row(20))
    delete(store, row(3))
    done = store.restore(store.snapshots.get(1))
    assert (done.inserted, done.updated, done.deleted) == (1, 1, 1)
    assert done.snapshot_id is not None
    told = [("+I", row(3)), ("-U", row(7, "b")), ("+U", row(7)), ("-D", row(20))]
    assert changes_of(store, done.snapshot_id) == changes(*told)
    overwrite(store, row(100))
    put(store, *(row(n) for n in (7, 6, 5, 200)))
    before = store.latest()
    with pytest.raises(FixRequest, match=r"(?s)TS1343.*other buckets"):
        store.restore(store.snapshots.get(1))
    assert store.latest() == before
    assert store.verify() == ()


def test_a_key_keeps_its_bucket_within_a_stage(tmp_path: Path) -> None:
    """An overwrite takes it away and the next write of the stage brings it back: both are one snapshot."""
    store = make_table(tmp_path, options=DYNAMIC)
    put(store, *(row(n) for n in range(8)))
    before = index_of(store)
    overwrite(store, row(100), stage="s", builds_on_stage=True)
    put(store, *(row(n, "b") for n in range(8)), stage="s", builds_on_stage=True)
    store.staging.publish("s")
    after = index_of(store)
    assert all(set(held) <= set(after[place]) for place, held in before.items())
    assert store.verify() == ()


def test_a_staged_write_brings_its_keys_into_the_index(tmp_path: Path) -> None:
    """Published beside a compaction of main, and with several writes in one stage."""
    store = make_table(tmp_path, options=DYNAMIC)
    put(store, *(row(n) for n in range(6)))
    put(store, row(1, "b"))
    put(store, *(row(n) for n in range(5, 12)), stage="s", builds_on_stage=True)
    put(store, *(row(n) for n in range(12, 15)), stage="s", builds_on_stage=True)
    store.compact(full=True)
    store.staging.publish("s")
    put(store, *(row(n, "c") for n in range(16)))
    assert ids_of(store) == list(range(16))
    assert store.verify() == ()


def test_two_writers_that_give_a_key_different_buckets_leave_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one puts the same key into a bucket that this plan does not touch, before this one is claimed."""
    make_table(tmp_path, options=DYNAMIC)
    put(open_table(tmp_path), row(1))

    def other() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(bucket_assigner, "plan_rooms", lambda held, wanted, **_: [(7, wanted)])
            put(open_table(tmp_path), row(2, "theirs"))

    store = open_table(tmp_path, runtime=acting("commit.manifests", other))
    put(store, row(2, "ours"))
    assert [(one["id"], one["name"]) for one in rows_of(store)] == [(1, "a"), (2, "ours")]
    assert store.verify() == ()


def test_a_bucket_without_an_index_is_not_written_beside(tmp_path: Path) -> None:
    """Another writer has left it out: its keys would come a second time. `verify` finds it too."""
    store = make_table(tmp_path, options=DYNAMIC)
    put(store, *(row(n) for n in range(6)))
    newest = store.latest()
    assert newest is not None
    manifests = store.context.manifests
    entries = replace_entries(manifests.read_index(newest.index_manifest), {_place(store, 1): None}, HASH)
    name = manifests.write_index(entries, "zstd")
    assert store.snapshots.claim(replace(newest, id=2, uuid="other", index_manifest=name))
    store = open_table(tmp_path)
    with pytest.raises(FixData, match="TS1397"):
        put(store, row(50))
    assert any("bucket 1 has rows and no hash index" in text for text in store.verify())


@pytest.mark.parametrize(
    ("hashes", "problem"),
    [([5], "keys of bucket 1 are not in its hash index"), ([], "hashes of keys are in two buckets")],
    ids=["lacking", "twice"],
)
def test_verify_finds_a_wrong_index(tmp_path: Path, hashes: list[int], problem: str) -> None:
    """Keys that it lacks, and keys that another bucket has too."""
    store = make_table(tmp_path, options=DYNAMIC)
    put(store, *(row(n) for n in range(6)))
    newest = store.latest()
    assert newest is not None
    manifests, place = store.context.manifests, _place(store, 1)
    wrong = hashes or [*index_of(store)[place], *index_of(store)[_place(store, 0)][:1]]
    made = manifests.write_hashes(*place, np.array(wrong, np.int32))
    entries = replace_entries(manifests.read_index(newest.index_manifest), {place: made}, HASH)
    name = manifests.write_index(entries, "zstd")
    assert store.snapshots.claim(replace(newest, id=2, uuid="other", index_manifest=name))
    found = open_table(tmp_path).verify()
    assert any(problem in text for text in found), found


def test_a_large_write_assigns_batch_by_batch_as_a_whole(tmp_path: Path) -> None:
    """Each hash alone decides, in whatever order and batch it comes; known keys keep their buckets; room is kept to."""
    store = make_table(tmp_path, options={**DYNAMIC, "dynamic-bucket.target-row-num": "100"})
    put(store, *(row(n) for n in range(150)))
    whole = as_table([row(n) for n in range(1_000)], store.schema)
    assigner = _large(store, 1_000)
    everything = assigner.assign(whole)
    for start in range(0, 1_000, 170):
        part = assigner.assign(whole.slice(start, 170))
        assert part.buckets.tolist() == everything.buckets[start : start + 170].tolist()
    known = _large(store, None).assign(whole.slice(0, 150))
    assert known.buckets.tolist() == everything.buckets[:150].tolist()
    assert everything.is_new.tolist() == [n >= 150 for n in range(1_000)]
    assert np.bincount(everything.buckets).max() < 150
    assert len(np.bincount(everything.buckets)) in (10, 11, 12)


def _large(store: TableStore, rows: int | None) -> BucketAssigner:
    expected = None if rows is None else {b"\0" * 12: rows}
    made = find_assigner(store.context, store.latest(), store.schema, rows_expected=expected)
    assert made is not None
    return made


def _place(store: TableStore, bucket: int) -> tuple[bytes, int]:
    return next(key for key in index_of(store) if key[1] == bucket)
