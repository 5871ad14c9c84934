"""A flipped bit anywhere in a table's files: an own error, or the rows that were written. Never other rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.data_type import INT, DataType
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.table_store import TableStore
from tests.doses import examples
from tests.unit.store.table_world import Row, delete, make_table, open_table, put, rows_of

COLUMNS: dict[str, str | DataType] = {
    "id": "BIGINT",
    "name": "STRING",
    "kind": "VARCHAR(10)",
    "flag": "BOOLEAN",
    "amount": "DECIMAL(12,2)",
    "ratio": "DOUBLE",
    "tags": DataType("ARRAY", element=INT),
    "note": "STRING",
}
KINDS = {
    "data": "bucket-*/data-*",
    "changelog": "bucket-*/changelog-*",
    "manifest": "manifest/manifest-[!l]*",
    "manifest list": "manifest/manifest-list-*",
    "index manifest": "manifest/index-manifest-*",
    "deletion vectors": "index/index-*",
    "snapshot": "snapshot/snapshot-*",
    "schema": "schema/schema-*",
    "hint": "snapshot/*EST",
}


def one(number: int, note: str) -> Row:
    """A row with NULLs here and there: value counts in page headers matter only where values are missing."""
    return {
        "id": number,
        "name": f"name {number % 7}",
        "kind": None if number % 3 == 0 else f"kind {number}",
        "flag": None if number % 5 == 0 else number % 2 == 0,
        "amount": None,
        "ratio": None if number % 4 == 0 else number / 3,
        "tags": [None, *range(number % 4)],
        "note": note,
    }


def make(root: Path) -> None:
    """Several row groups, vectors, three snapshots, compressed and not."""
    options = {"parquet.row-group-rows": "20", "file.compression": "none"}
    store = make_table(root, columns=COLUMNS, options=options)
    put(store, *(one(n, "first") for n in range(60)))
    put(store, *(one(n, "second") for n in range(10, 90, 7)))
    delete(store, *({"id": n} for n in range(0, 60, 9)))


def seen(root: Path) -> tuple[object, ...]:
    """Everything that a fresh process reads: each snapshot's rows and changes."""
    store: TableStore = open_table(root)
    ids = store.snapshots.list_ids()
    latest = store.snapshots.find_latest_id()
    return (ids, latest, *(rows_of(store, n) for n in ids), *(_changes(store, n) for n in ids))


def _changes(store: TableStore, snapshot_id: int) -> list[str]:
    batches = ChangelogReader(store.context).read(store.snapshots.get(snapshot_id))
    return sorted(repr(row) for batch in batches for row in batch.rows.to_pylist())


def outcomes(root: Path, pattern: str, flips: int, seed: int) -> Counter[str]:
    """What `flips` random single bits of the files of a kind lead to."""
    make(root)
    truth = seen(root)
    paths = sorted((root / "demo.db/t").glob(pattern))
    assert paths
    rng, found = random.Random(seed), Counter[str]()
    for _ in range(flips):
        path = rng.choice(paths)
        before = path.read_bytes()
        at, bit = rng.randrange(len(before)), rng.randrange(8)
        path.write_bytes(before[:at] + bytes([before[at] ^ 1 << bit]) + before[at + 1 :])
        try:
            found["same" if seen(root) == truth else f"WRONG {path.name} {at} {bit}"] += 1
        except TablestoreError:
            found["error"] += 1
        path.write_bytes(before)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_an_error_or_nothing(tmp_path: Path, kind: str) -> None:
    """Random bits of each kind of file."""
    found = outcomes(tmp_path, KINDS[kind], flips=examples(12, 25), seed=1)
    assert set(found) <= {"same", "error"}, found


@pytest.mark.nightly  # by day the test above, in short
@pytest.mark.parametrize("kind", KINDS)
def test_many_flipped_bits(tmp_path: Path, kind: str) -> None:
    """The same at length."""
    found = outcomes(tmp_path, KINDS[kind], flips=examples(30, 600), seed=2)
    assert set(found) <= {"same", "error"}, found


def test_value_counts_in_page_headers_are_covered(tmp_path: Path) -> None:
    """A page header outside of Parquet's own checksum says one value more: pyarrow alone gives shifted rows."""
    make(tmp_path)
    truth = seen(tmp_path)
    path = max((tmp_path / "demo.db/t").glob("bucket-0/data-*"), key=lambda file: file.stat().st_size)
    before = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(4)  # `name`, behind key, number and kind
    counts = before.index(b"\x15\x28", chunk.data_page_offset)  # twenty values, as a zigzag number
    path.write_bytes(before[: counts + 1] + b"\x2a" + before[counts + 2 :])
    with pytest.raises(TablestoreError) as refused:
        assert seen(tmp_path) == truth
    assert refused.value.code == "TS1160"
    assert str(path) in refused.value.what


def test_pages_have_parquets_own_checksum(tmp_path: Path) -> None:
    """A reader that knows nothing of our checksums finds a flipped bit of a page that is not compressed."""
    make(tmp_path)
    path = max((tmp_path / "demo.db/t").glob("bucket-0/data-*"), key=lambda file: file.stat().st_size)
    before = path.read_bytes()
    assert pq.ParquetFile(path, page_checksum_verification=True).read().num_rows == 60
    at = before.index(b"kind 11") + 6
    path.write_bytes(before[:at] + b"0" + before[at + 1 :])
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        pq.ParquetFile(path, page_checksum_verification=True).read()
