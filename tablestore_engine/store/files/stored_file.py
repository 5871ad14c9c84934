"""One Parquet file of a table, as every reader and writer sees it.

INVARIANT  a value that can be sent anywhere: reading the file takes nothing else but a file system.
INVARIANT  a file outside of the table is read by everyone, and taken out of the table, copied or deleted by no one: the
           engine that put it there owns it. Who would do that refuses before anything changes (refuse_external).
WHY        one value for all: what plans of a read, states of a bucket and changelogs know of a file is the same.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.capability import check_data_file
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema

if TYPE_CHECKING:
    from tablestore_engine.fileio.external_folders import ExternalFolders

Vectors = Mapping[tuple[bytes, int], Mapping[str, BitMap]]


@dataclass(frozen=True)
class StoredFile:
    """A data or changelog file of one snapshot; `deleted` are the positions that readers leave out.

    partition      python objects in the order of the partition keys
    total_buckets  of its partition when it was written
    schema         the one it was written with: its columns have the names and types of that one
    fileio         of a copy of merged rows, in the scratch of this process, or of an external file; None: the table's
    is_external    it lies outside of the warehouse, and is no copy
    """

    partition: tuple[object, ...]
    partition_bytes: bytes
    partition_path: str
    bucket: int
    total_buckets: int
    meta: DataFileMeta
    path: str
    schema: TableSchema
    deleted: BitMap | None = None
    fileio: FileIO | None = None
    is_external: bool = False

    def __str__(self) -> str:
        return self.path

    @property
    def dead_count(self) -> int:
        """Rows of the file that its deletion vector hides."""
        return 0 if self.deleted is None else len(self.deleted)

    @property
    def visible_rows(self) -> int:
        return self.meta.row_count - self.dead_count


def visible_mask(file: StoredFile, rows: int | None = None) -> npt.NDArray[np.bool_]:
    """For each physical row whether it is visible; `rows`: as many as the file really has, its metadata's by default.

    Raises FixData TS1390 when a position is behind the last row.
    """
    count = file.meta.row_count if rows is None else rows
    visible = np.ones(count, dtype=np.bool_)
    if file.deleted:
        if file.deleted.max() >= count:
            raise FixData(
                "TS1390",
                f"the deletion vector of {file.path} does not fit it",
                why=f"it marks row {file.deleted.max()}, the file has {count} rows",
                fix="run tablestore verify; roll back to an earlier snapshot",
            )
        visible[np.asarray(file.deleted.to_array())] = False
    return visible


def place_files(
    entries: Iterable[ManifestEntry],
    spec: PartitionSpec,
    vectors: Vectors,
    layout: TableLayout,
    schema_of: Callable[[int], TableSchema],
    external: ExternalFolders | None,
) -> list[StoredFile]:
    """The files of entries in their order. Raises FixData TS1190, Unsupported TS1128, TS1191."""
    places: dict[bytes, tuple[tuple[object, ...], str]] = {}
    files = []
    for entry in entries:
        check_data_file(entry.file.file_name)
        if entry.partition not in places:
            values = spec.decode(entry.partition)
            places[entry.partition] = (values, spec.path(values))
        values, folder = places[entry.partition]
        path = layout.data_file(folder, entry.bucket, entry.file.file_name)
        fileio: FileIO | None = None
        if entry.file.external_path is not None:
            path, fileio = _open_external(external, entry.file)
        files.append(
            StoredFile(
                partition=values,
                partition_bytes=entry.partition,
                partition_path=folder,
                bucket=entry.bucket,
                total_buckets=entry.total_buckets,
                meta=entry.file,
                path=path,
                schema=schema_of(entry.file.schema_id),
                deleted=vectors.get((entry.partition, entry.bucket), {}).get(entry.file.file_name),
                fileio=fileio,
                is_external=fileio is not None,
            )
        )
    return files


def _open_external(external: ExternalFolders | None, file: DataFileMeta) -> tuple[str, FileIO]:
    from tablestore_engine.fileio.external_folders import NO_FOLDERS

    return (NO_FOLDERS if external is None else external).open(file.external_path or "", file.file_name)


def refuse_external(location: str, entries: Iterable[ManifestEntry], work: str) -> None:
    """Raises Unsupported TS1229 for the first of these files that lies outside; `work` as in `cannot be changed`."""
    for entry in entries:
        if entry.file.external_path is not None:
            raise Unsupported(
                "TS1229",
                f"{location} cannot be {work}",
                why=f"its file {entry.file.file_name} lies outside of the table, at {entry.file.external_path[:200]}: "
                "such files are read, and another engine's to change",
                fix="do it with the engine that writes the table, or copy the rows by CREATE TABLE AS SELECT",
            )
