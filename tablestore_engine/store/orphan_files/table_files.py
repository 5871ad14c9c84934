"""Files in a table's folders: their kinds, which their names show, and their ages.

CHANGE     the names and kinds of a table's files
Steps      bucket folders, by the partition columns of the schema → manifest, index, statistics, Iceberg metadata →
           temporary files of all folders, branches too → branches as wholes
INVARIANT  only a plain file (no link, no device) of a trusted owner counts, and only when its whole name is one that an
           engine gives: prefix, uuid, known endings. Whatever else somebody put there is passed by.
INVARIANT  no link is followed, and no folder is looked into that is not part of a table's layout.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tablestore_engine.fileio.base import FileIO, FileStatus, list_hidden
from tablestore_engine.format.layout import DROPPED_PREFIX, TableLayout
from tablestore_engine.format.partition import escape_path_name
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.iceberg_metadata.iceberg_cleanup import METADATA_NAME
from tablestore_engine.store.iceberg_metadata.iceberg_place import all_places
from tablestore_engine.store.stage.staging import turn_folder

DATA, CHANGELOG, INDEX, STATISTICS, MANIFEST = "data", "changelog", "index", "statistics", "manifest"
TEMPORARY, STAGE, DROPPED, FOLDER, ICEBERG = "temporary", "stage", "dropped", "folder", "iceberg"
KINDS = (TEMPORARY, STAGE, DATA, CHANGELOG, INDEX, STATISTICS, MANIFEST, ICEBERG, DROPPED, FOLDER)
IS_LINK, IS_STRANGERS, IS_UNKNOWN = "a link or device", "another user's", "not named like a table's file"

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ENDINGS = r"(?:-crc32-[0-9a-f]{8})?(?:\.(?:zstd|zlib|snappy|gzip|lz4|lzo|brotli|none|uncompressed))?"
_FORMATS = r"(?:\.(?:parquet|orc|avro|json|csv|text|lance|vortex|blob))?(?:\.index)?"
_PREFIXES = "data|changelog|index-manifest|manifest-list|manifest|index|stats|stat|statistics"
_NAME = re.compile(rf"({_PREFIXES})-{_UUID}(?:-\d+)?{_ENDINGS}{_FORMATS}")
_TEMPORARY = re.compile(rf"\..+\.{_UUID}\.tmp")
_BUCKET = re.compile(r"bucket-(\d+|postpone)")
_KIND_OF = {"index-manifest": MANIFEST, "manifest-list": MANIFEST, "stat": STATISTICS, "stats": STATISTICS}
_BRANCH = "branch-"
_CLAIMED_IN = ("snapshot", "turn", "metadata")

IsStranger = Callable[[FileStatus], bool]


@dataclass(frozen=True)
class TableFile:
    """`modified_ms` of a stage or dropped folder: of the newest thing in it."""

    path: str
    kind: str
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """Without its folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Listing:
    """`files` by path; `inside`: data folder → paths in it, inner folders first; `passed_by`: reason → how many."""

    files: dict[str, TableFile] = field(default_factory=dict)
    inside: dict[str, tuple[str, ...]] = field(default_factory=dict)
    passed_by: Counter[str] = field(default_factory=Counter)

    def put(self, status: FileStatus, kind: str | None, is_stranger: IsStranger) -> None:
        """A file, when it is a table's and may be touched."""
        if not status.is_plain:
            self.passed_by[IS_LINK] += 1
        elif kind is None:
            self.passed_by[IS_UNKNOWN] += 1
        elif is_stranger(status):
            self.passed_by[IS_STRANGERS] += 1
        else:
            self.files[status.path] = TableFile(status.path, kind, status.size_bytes, status.modified_ms)


def kind_of(name: str) -> str | None:
    """`data` of `data-<uuid>-0.zstd.parquet`; None for a name that no engine gives."""
    if _TEMPORARY.fullmatch(name):
        return TEMPORARY
    found = _NAME.fullmatch(name)
    return None if found is None else _KIND_OF.get(found[1], found[1])


def list_table_files(
    fileio: FileIO, layout: TableLayout, schema: TableSchema, is_stranger: IsStranger
) -> Listing:
    """Everything that could be an orphan file; the caller decides."""
    listing = Listing()
    for folder, is_bucket in _data_folders(fileio, layout, schema):
        entries = (*fileio.list(folder.path), *list_hidden(fileio, folder.path))
        for status in entries:
            if not status.is_dir:
                kind = kind_of(status.name)
                listing.put(status, kind if is_bucket or kind == TEMPORARY else None, is_stranger)
        if fileio.folders is not None and not is_stranger(folder):
            listing.files[folder.path] = TableFile(folder.path, FOLDER, 0, folder.modified_ms)
            listing.inside[folder.path] = tuple(status.path for status in entries)
    for path in (layout.manifest_dir, layout.index_dir, layout.statistics_dir):
        for status in fileio.list(path):
            listing.put(status, kind_of(status.name), is_stranger)
    for place in all_places(layout):
        for status in fileio.list(place.folder):
            listing.put(status, ICEBERG if METADATA_NAME.fullmatch(status.name) else None, is_stranger)
    for path in _metadata_folders(fileio, layout):
        for status in list_hidden(fileio, path):
            if not status.is_dir:
                listing.put(status, kind_of(status.name), is_stranger)
    _list_branches(fileio, layout, listing, is_stranger)
    return listing


def newest_in(fileio: FileIO, folder: FileStatus) -> tuple[int, int, tuple[tuple[str, int, int], ...]]:
    """Newest time in ms, bytes, and what lies in a folder (path in it, time, size): whether it was touched since."""
    rows = sorted(_rows(fileio, folder.path, ""))
    newest = max([folder.modified_ms, *(modified for _, modified, _ in rows)])
    return newest, sum(size for _, _, size in rows), tuple(rows)


def is_claim(file: TableFile) -> bool:
    """Whether a snapshot of some branch may come of this temporary file."""
    return file.kind == TEMPORARY and file.path.split("/")[-2] in _CLAIMED_IN


def _data_folders(
    fileio: FileIO, layout: TableLayout, schema: TableSchema
) -> Iterator[tuple[FileStatus, bool]]:
    """Partition folders and (True) bucket folders."""

    def below(path: str, keys: Sequence[str]) -> Iterator[tuple[FileStatus, bool]]:
        for status in fileio.list(path):
            if not keys and status.is_dir and _BUCKET.fullmatch(status.name):
                yield status, True
            elif keys and status.is_dir and status.name.startswith(f"{escape_path_name(keys[0])}="):
                yield from below(status.path, keys[1:])
                yield status, False

    yield from below(layout.location, schema.partition_keys)


def _metadata_folders(fileio: FileIO, layout: TableLayout) -> Iterator[str]:
    yield from (layout.location, layout.manifest_dir, layout.index_dir, layout.statistics_dir)
    yield from (place.folder for place in all_places(layout))
    branches = [
        status.name.removeprefix(_BRANCH)
        for status in fileio.list(layout.branches_dir)
        if status.is_dir and status.name.startswith(_BRANCH)
    ]
    for one in (layout, *map(layout.on_branch, branches)):
        yield from (one.schema_dir, one.snapshot_dir, one.tag_dir, one.changelog_dir, one.consumer_dir)
        yield from (one.expire_dir, turn_folder(one), f"{one.root}/audit")


def _list_branches(fileio: FileIO, layout: TableLayout, listing: Listing, is_stranger: IsStranger) -> None:
    entries = [(one, STAGE) for one in fileio.list(layout.branches_dir) if one.name.startswith(_BRANCH)]
    entries += [
        (one, DROPPED)
        for one in list_hidden(fileio, layout.branches_dir)
        if one.name.startswith(DROPPED_PREFIX)
    ]
    for status, kind in entries:
        if status.is_dir and not is_stranger(status):
            newest, size, _ = newest_in(fileio, status)
            listing.files[status.path] = TableFile(status.path, kind, size, newest)


def _rows(fileio: FileIO, path: str, inside: str) -> Iterator[tuple[str, int, int]]:
    for status in (*fileio.list(path), *list_hidden(fileio, path)):
        own = f"{inside}/{status.name}"
        yield own, status.modified_ms, 0 if status.is_dir else status.size_bytes
        if status.is_dir:
            yield from _rows(fileio, status.path, own)
