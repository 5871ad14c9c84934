"""A warehouse whose data and changelog files lie in a folder `lake` beside it, as data-file.external-paths places them.

WHY        our engine writes no such table: files are moved and manifests name their new place while it commits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.store.commit import snapshot_files
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.read import scan

KEYED, PARTS = "demo.keyed", "demo.parts"
Lake = Mapping[str, bytes]


def rows(first: int, last: int, text: str) -> pa.Table:
    """Of both tables: `id` from `first` on, `v` the text, `p` by parity."""
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "v": pa.array([text] * (last - first), pa.string()),
            "p": pa.array([f"p{number % 2}" for number in range(first, last)], pa.string()),
        }
    )


def _move(root: Path, lake: Path) -> None:
    """All data and changelog files of the warehouse."""
    for path in [*root.rglob("data-*"), *root.rglob("changelog-*")]:
        if path.is_file():
            place = lake / path.parent.name
            place.mkdir(parents=True, exist_ok=True)
            path.rename(place / path.name)


def files_of(folder: Path) -> Lake:
    """All files below a folder, by their path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def build(top: Path) -> None:
    """`warehouse` and `lake` in `top`: a keyed table with vectors and changelogs, one with partitions and indexes."""
    lake, plain = top / "lake", snapshot_files._entries

    def entries(
        changes: Sequence[BucketChange], kind: FileKind, total: int, part: str
    ) -> list[ManifestEntry]:
        found = plain(changes, kind, total, part)
        if kind is FileKind.DELETE:
            return found
        folder = [f"file:{lake}/bucket-{max(one.bucket, 0)}/{one.file.file_name}" for one in found]
        return [
            replace(one, file=replace(one.file, external_path=path))
            for one, path in zip(found, folder, strict=True)
        ]

    with (
        pytest.MonkeyPatch.context() as patch,
        Engine(top / "warehouse", external_paths=[str(lake)]) as engine,
    ):
        patch.setattr(snapshot_files, "_entries", entries)
        for module in (scan, snapshot_files):
            patch.setattr(module, "refuse_external", lambda *_: None)
        engine.create_database("demo")
        engine.create_table(KEYED, rows(0, 0, ""), primary_key="id", options={"bucket": "1"})
        engine.create_table(
            PARTS,
            rows(0, 0, ""),
            partition_by="p",
            options={"file-index.bloom-filter.columns": "id", "file-index.in-manifest-threshold": "1 b"},
        )
        for turn in range(3):
            engine.table(KEYED).upsert(rows(turn * 2, turn * 2 + 4, f"t{turn}"))
            engine.table(PARTS).append(rows(turn * 10, turn * 10 + 4, f"t{turn}"))
            _move(top / "warehouse", lake)
        engine.table(PARTS).delete("id = 1")  # by a vector
        _move(top / "warehouse", lake)
        engine.table(KEYED).create_tag("first", 1)
