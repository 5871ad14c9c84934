"""Slices of an Arrow read: every row group of every file once, small files together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_file import EMPTY_STATS, DataFileMeta
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import new_schema
from tablestore_engine.spark import arrow_relation
from tablestore_engine.spark.arrow_relation import ArrowRead, FilePart, cut_slices
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.predicate import ANYTHING, Compare, OneOf

SCHEMA = new_schema(
    (DataField(0, "id", DataType("BIGINT")), DataField(1, "n", DataType("INT"))), options={"bucket": "-1"}
)


def stored(name: str, size: int, rows: int = 1, path: str = "") -> StoredFile:
    """A file by its size."""
    meta = DataFileMeta(name, size, rows, b"", b"", EMPTY_STATS, EMPTY_STATS, 0, 0, SCHEMA.id, 1, None)
    return StoredFile((), b"", "", 0, 1, meta, path or name, SCHEMA)


def test_small_files_share_a_slice_and_large_ones_are_cut() -> None:
    """Neighbours up to the size of a slice are read by one task, a large file by several."""
    mebi = 1 << 20
    sizes = [mebi, mebi, mebi, 40 * mebi, mebi]
    files = [stored(f"f{at}", size) for at, size in enumerate(sizes)]
    slices = cut_slices(files, lambda file: int(file.meta.file_name[1:]), cores=1)
    assert [[(part.file.meta.file_name, part.number, part.count) for part in one] for one in slices] == [
        [("f0", 0, 1), ("f1", 0, 1), ("f2", 0, 1)],
        [("f3", 0, 3)],
        [("f3", 1, 3)],
        [("f3", 2, 3)],
        [("f4", 0, 1)],
    ]
    assert slices[-1][0].constant == 4


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_parts_of_a_file_give_each_visible_row_once(tmp_path: Path, parts: int) -> None:
    """More parts than row groups, deleted rows, a condition and a constant: together they are the rows of the file."""
    path = tmp_path / "f.parquet"
    pq.write_table(
        pa.table({"id": range(100), "n": pa.array(range(100), pa.int32())}), path, row_group_size=30
    )
    file = replace(stored("f.parquet", 1000, 100, str(path)), deleted=BitMap([0, 31, 99]))
    target = pa.schema([("id", pa.int64()), ("s", pa.int64())])
    slices = tuple((FilePart(file, number, parts, 5),) for number in range(parts))
    for wanted in (ANYTHING, Compare("id", ">", 29)):
        names = target if wanted == ANYTHING else target.append(pa.field("n", pa.int32()))
        read = ArrowRead(LocalFileIO(str(tmp_path)), SCHEMA, slices, names, wanted, "s")
        rows = [row for number in range(parts) for batch in read.rows(number) for row in batch.to_pylist()]
        expected = [k for k in range(100) if k not in (0, 31, 99) and (wanted == ANYTHING or k > 29)]
        assert Counter(row["id"] for row in rows) == Counter(expected)
        assert {row["s"] for row in rows} == {5}


def test_row_groups_that_cannot_match_are_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their statistics decide, in each part of a file."""
    path, groups, read = tmp_path / "f.parquet", list[int](), ParquetInput.read
    rows = pa.table({"id": range(100), "n": pa.array(range(100), pa.int32())})
    pq.write_table(rows, path, row_group_size=10)

    def recorded(self: ParquetInput, columns: list[str], some: list[int], **more: bool) -> pa.Table:
        groups.extend(some)
        return read(self, columns, some, **more)

    monkeypatch.setattr(ParquetInput, "read", recorded)
    file, target = stored("f", 1, 100, str(path)), pa.schema([("id", pa.int64())])
    slices = tuple((FilePart(file, number, 3),) for number in range(3))
    reads = ArrowRead(LocalFileIO(str(tmp_path)), SCHEMA, slices, target, OneOf("id", frozenset([5, 71])))
    found = [row["id"] for number in range(3) for batch in reads.rows(number) for row in batch.to_pylist()]
    assert (found, groups) == ([5, 71], [0, 7])


def test_batches_are_small_enough_for_the_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch has more rows than one message may have, and all have the asked schema."""
    monkeypatch.setattr(arrow_relation, "BATCH_ROWS", 7)
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": range(50), "n": pa.array(range(50), pa.int32())}), path)
    target = pa.schema([("n", pa.int32())])
    read = ArrowRead(
        LocalFileIO(str(tmp_path)), SCHEMA, ((FilePart(stored("f", 1, 50, str(path))),),), target
    )
    batches = list(read.rows(0))
    assert max(batch.num_rows for batch in batches) == 7
    assert {batch.schema for batch in batches} == {target}
