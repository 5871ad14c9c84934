"""The files that snapshots reference: what expiry may delete, and what is still needed.

INVARIANT  file names are unique in a table (uuid): a name that is needed anywhere is needed everywhere.
INVARIANT  a manifest that cannot be read is an error and never an empty one: what cannot be known is kept.
           The exception are snapshots that an expiry had begun to take away (`floor`): their data files went before
           their metadata, so that what is missing has nothing more to say.
PAIMON     an upgrade is DELETE and ADD of one name: who looks at DELETE alone takes live files away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from tablestore_engine.errors import NotFound
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.files.stored_file import refuse_external
from tablestore_engine.store.table_context import TableContext

T = TypeVar("T")
_DELTAS_AT_ONCE = 16


@dataclass(frozen=True)
class NamedFile:
    """`size_bytes` 0 where no metadata says it."""

    path: str
    size_bytes: int = 0


Files = Mapping[str, NamedFile]


@dataclass(frozen=True)
class NamedFiles:
    """By name. Metadata comes last: as long as it is there, the others can be found again."""

    data: Files = field(default_factory=dict)
    changelog: Files = field(default_factory=dict)
    metadata: Files = field(default_factory=dict)

    def all_but(self, needed: Collection[str]) -> NamedFiles:
        """Those whose name nobody needs."""
        return NamedFiles(
            *({name: file for name, file in part.items() if name not in needed} for part in self.context)
        )

    @property
    def context(self) -> tuple[Files, ...]:
        """In the order of deletion."""
        return (self.data, self.changelog, self.metadata)

    @property
    def count(self) -> int:
        return sum(len(part) for part in self.context)

    @property
    def size_bytes(self) -> int:
        """Together, as far as metadata says it."""
        return sum(file.size_bytes for part in self.context for file in part.values())


def dropped_data(context: TableContext, snapshots: Iterable[Snapshot], *, floor: int) -> Files:
    """Data files that these snapshots, in ascending order, removed and none of them took in again."""
    found: dict[str, NamedFile] = {}
    for snapshot, entries in _with_entries(context, snapshots, floor):
        spec = _spec_of(context, snapshot)
        for entry in entries:
            if entry.kind is FileKind.DELETE:
                found.update(_files_of(context, entry, spec))
        for entry in entries:
            if entry.kind is FileKind.ADD:
                for name in names_of(entry):
                    found.pop(name, None)
    return found


def _with_entries(
    context: TableContext, snapshots: Iterable[Snapshot], floor: int
) -> Iterator[tuple[Snapshot, list[ManifestEntry]]]:
    """Each with the entries of its delta: a bounded number of them is read at once, and in memory."""
    rest = list(snapshots)
    for at in range(0, len(rest), _DELTAS_AT_ONCE):
        some = rest[at : at + _DELTAS_AT_ONCE]
        looks = [
            partial(_entries_of, context, one.delta_manifest_list, is_dead=one.id < floor) for one in some
        ]
        yield from zip(some, context.fileio.run_together(looks), strict=True)


def changelog_files(context: TableContext, snapshot: Snapshot, *, floor: int = 0) -> Files:
    """Of one snapshot; none when it has no changelog."""
    name = snapshot.changelog_manifest_list
    if name is None:
        return {}
    spec = _spec_of(context, snapshot)
    entries = _entries_of(context, name, is_dead=snapshot.id < floor)
    return dict(pair for entry in entries for pair in _files_of(context, entry, spec))


def metadata_files(context: TableContext, snapshot: Snapshot, *, floor: int = 0) -> Files:
    """Manifests, then the lists that name them; index files, then their manifest; statistics."""
    is_dead, layout, manifests = snapshot.id < floor, context.layout, context.manifests
    found: dict[str, NamedFile] = {}
    for name in _lists_of(snapshot):
        for meta in _or_gone(partial(manifests.read_list, name), is_dead=is_dead):
            found[meta.file_name] = NamedFile(layout.manifest_path(meta.file_name), meta.file_size)
    found.update((name, NamedFile(layout.manifest_path(name))) for name in _lists_of(snapshot))
    index = snapshot.index_manifest
    if index is not None:
        for one in _or_gone(partial(manifests.read_index, index), is_dead=is_dead):
            if one.external_path is None:
                found[one.file_name] = NamedFile(layout.index_path(one.file_name), one.file_size)
        found[index] = NamedFile(layout.manifest_path(index))
    if snapshot.statistics is not None:
        found[snapshot.statistics] = NamedFile(layout.statistics_path(snapshot.statistics))
    return found


def live_data(context: TableContext, snapshot: Snapshot) -> Files:
    spec = _spec_of(context, snapshot)
    return dict(
        pair for entry in context.scanner.live_entries(snapshot) for pair in _files_of(context, entry, spec)
    )


def needed_names(context: TableContext, snapshot: Snapshot) -> set[str]:
    """Of metadata, live data files and changelog files."""
    entries = (*context.scanner.live_entries(snapshot), *context.manifests.read_changelog_entries(snapshot))
    return {*metadata_files(context, snapshot), *(name for entry in entries for name in names_of(entry))}


def mentioned_names(context: TableContext, snapshot: Snapshot) -> set[str]:
    """Of a snapshot that is on its way out: whatever the metadata that is still there speaks of, removed files too."""
    data: set[str] = set()
    for name in _lists_of(snapshot):
        entries = _entries_of(context, name, is_dead=True)
        data |= {one for entry in entries for one in names_of(entry)}
    return data | {*metadata_files(context, snapshot, floor=snapshot.id + 1)}


def _lists_of(snapshot: Snapshot) -> tuple[str, ...]:
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
    return tuple(name for name in lists if name is not None)


def _spec_of(context: TableContext, snapshot: Snapshot) -> PartitionSpec:
    return PartitionSpec.of(context.schemas.get(snapshot.schema_id))


def names_of(entry: ManifestEntry) -> tuple[str, ...]:
    return entry.file.file_names


def _files_of(
    context: TableContext, entry: ManifestEntry, spec: PartitionSpec
) -> Iterator[tuple[str, NamedFile]]:
    """Name and file. Raises Unsupported TS1229 for one outside of the table: it would stay there for ever."""
    refuse_external(context.layout.location, [entry], "cleaned of snapshots or tags")
    partition = spec.path_of_bytes(entry.partition)
    for name in names_of(entry):
        size = entry.file.file_size if name == entry.file.file_name else 0
        yield name, NamedFile(context.layout.data_file(partition, entry.bucket, name), size)


def _entries_of(context: TableContext, list_name: str, *, is_dead: bool) -> list[ManifestEntry]:
    manifests = context.manifests
    return [
        entry
        for meta in _or_gone(partial(manifests.read_list, list_name), is_dead=is_dead)
        for entry in _or_gone(partial(manifests.read_manifest, meta.file_name), is_dead=is_dead)
    ]


def _or_gone(read: Callable[[], Sequence[T]], *, is_dead: bool) -> Sequence[T]:
    """A missing file of a snapshot that is on its way out has done its part; any other missing file is damage."""
    try:
        return read()
    except NotFound:
        if is_dead:
            return ()
        raise
