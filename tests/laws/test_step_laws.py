"""Laws of working in steps: whatever the step, bucket work gives the rows, files and changelog that one step gives."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.store.files import row_budget
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.files.data_files import RunRows
from tablestore_engine.store.merge.hidden_positions import merged_positions
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import read_batches
from tests.doubles.memory_store import MemoryFileIO
from tests.unit.store.bucket_world import Row, World, make_schema, write_run

_SHAPES = {
    "number": ({"id": "BIGINT", "v": "STRING", "at": "INT"}, ("id",)),
    "text": ({"id": "STRING", "v": "STRING", "at": "INT"}, ("id",)),
    "both": ({"id": "STRING", "k": "DOUBLE", "v": "STRING", "at": "INT"}, ("id", "k")),
}
_OPTIONS = {"parquet.row-group-rows": "4", "target-file-size": "1 kb", "num-levels": "20"}
_KEYS = st.integers(0, 30)
_BATCH = st.lists(
    st.tuples(_KEYS, st.integers(0, 2), st.sampled_from([0, 0, 0, 3])),
    unique_by=lambda one: one[0],
    max_size=25,
)
_WORK = st.lists(
    st.tuples(st.sampled_from(["upsert", "upsert", "replace", "inbox", "fold", "full"]), _BATCH),
    min_size=1,
    max_size=6,
)


@dataclass(frozen=True)
class _Seen:
    """What a piece of work left, without what differs each time: names and the clock."""

    added: list[DataFileMeta]
    changelog: list[DataFileMeta]
    log_rows: list[tuple[int, Row]]
    counts: tuple[int, int, int, int]
    vectors: list[list[int]] | None
    rows: list[Row]
    numbers: dict[str, int]


def _row(shape: str, key: int, value: int) -> Row:
    found: Row = {"id": key if shape == "number" else f"k{key % 7 if shape == 'both' else key}"}
    if shape == "both":
        found["k"] = float(key // 7) - 1
    return {**found, "v": f"v{value}", "at": value}


def _plain(metas: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    return [replace(meta, file_name="", creation_time=0, file_size=0) for meta in metas]


def _see(world: World, change: BucketChange) -> _Seen:
    vectors = change.deletion_vectors
    return _Seen(
        _plain(change.added),
        _plain(change.changelog),
        world.changelog(change),
        (change.inserted, change.updated, change.deleted, change.unchanged),
        None
        if vectors is None
        else [list(vectors.get(file.meta.file_name, ())) for file in world.state.files],
        world.rows(),
        world.numbers(),
    )


def _do(world: World, shape: str, kind: str, batch: list[tuple[int, int, int]]) -> BucketChange | None:
    rows, kinds = [_row(shape, key, value) for key, value, _ in batch], [one[2] for one in batch]
    if kind == "fold" or kind == "full":
        return world.fold(full=kind == "full")
    if kind == "replace":
        return world.upsert(rows, replace=True)
    if not rows:
        return None
    if kind == "upsert":
        return world.upsert(rows, kinds)
    first = world.state.next_sequence
    order = sorted(range(len(rows)), key=lambda at: (rows[at]["id"], rows[at].get("k", 0.0)))
    _leave(world, [(first + at, kinds[at], rows[at]) for at in order])
    return world.compact_level_zero()


def _leave(world: World, rows: Sequence[tuple[int, int, Row]]) -> None:
    """Level 0 as another engine leaves it: sorted rows in one or more files."""
    run = RunRows(
        world.table([row for _, _, row in rows]),
        np.array([number for number, _, _ in rows], np.int64),
        np.array([kind for _, kind, _ in rows], np.int8),
    )
    added = write_run(world.files, world.state, run, level=0)
    world.take(BucketChange(world.state.partition_bytes, world.state.bucket, added=added))


def _run(
    shape: str,
    options: dict[str, str],
    work: list[tuple[str, list[tuple[int, int, int]]]],
    *,
    has_folders: bool = True,
) -> list[_Seen]:
    columns, keys = _SHAPES[shape]
    schema = make_schema(columns, keys, {**_OPTIONS, **options})
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), schema)
        if not has_folders:
            objects = MemoryFileIO(folder, itertools.count(1).__next__)
            world = World(Path(folder), schema, open_fileio=lambda _: objects)
        changes = [change for kind, batch in work if (change := _do(world, shape, kind, batch)) is not None]
        return [_see(world, change) for change in changes]


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(_SHAPES)),
    st.sampled_from([{}, {"sequence.field": "at"}, {"changelog-producer.row-deduplicate": "true"}]),
    _WORK,
    st.integers(1, 12),
    st.booleans(),
)
@example("number", {}, [("upsert", [(0, 0, 0), (1, 0, 0), (2, 0, 0)])], 1, False)
def test_any_step_leaves_what_one_step_leaves(
    shape: str,
    options: dict[str, str],
    work: list[tuple[str, list[tuple[int, int, int]]]],
    step: int,
    has_folders: bool,
) -> None:
    """Upserts, deletes, overwrites, level 0 and folds: equal rows, numbers, statistics, vectors and changelogs.

    A store without folders gives what a disk gives.
    """
    whole = _run(shape, options, work)
    with patch.object(row_budget, "STEP_ROWS", step):
        assert _run(shape, options, work, has_folders=has_folders) == whole


@settings(max_examples=5, deadline=None)
@given(st.sampled_from(sorted(_SHAPES)), st.lists(_BATCH, min_size=1, max_size=4), st.integers(1, 12))
def test_any_step_hides_and_reads_the_same_rows(
    shape: str, batches: list[list[tuple[int, int, int]]], step: int
) -> None:
    """Merge-on-read of level 0 hides the same positions, and a scan in steps gives the rows of whole files."""
    columns, keys = _SHAPES[shape]
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), make_schema(columns, keys, _OPTIONS))
        for batch in batches:
            rows = sorted(
                ((key, value, kind) for key, value, kind in batch),
                key=lambda one: (_row(shape, one[0], 0)["id"], one[0] // 7),
            )
            first = world.state.next_sequence
            if rows:
                _leave(
                    world,
                    [
                        (first + at, kind, _row(shape, key, value))
                        for at, (key, value, kind) in enumerate(rows)
                    ],
                )
        files, reader = world.state.files, world.files.reader
        whole = merged_positions(reader, files)
        with patch.object(row_budget, "STEP_ROWS", step):
            assert merged_positions(reader, files) == whole
            hidden = [replace(file, deleted=whole.get(file.meta.file_name)) for file in files]
            plan = ScanPlan(None, world.schema, tuple(hidden))
            found = [row for part in read_batches(reader.fileio, plan) for row in part.to_pylist()]
        assert found == [row for file in hidden for row in reader.read_visible(file).to_pylist()]
