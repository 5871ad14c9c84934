"""What one bucket held from snapshot to snapshot: its files and their deletion vectors, as changes.

INVARIANT  a state is kept as its difference to the one before: as many values as commits changed the bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import plan_order
from tablestore_engine.store.verify.live_files import Identity


@dataclass
class HistoryChange:
    """What snapshot `at` changed; `vectors`: all of the bucket from then on, None: the same as before."""

    at: int
    gone: list[Identity] = field(default_factory=list)
    came: dict[Identity, StoredFile] = field(default_factory=dict)
    vectors: Mapping[str, BitMap] | None = None


@dataclass(frozen=True)
class BucketTurn:
    """One change as it looks on files: `shown` came, or have another vector; as they are from `at` on."""

    at: int
    gone: tuple[Identity, ...]
    shown: Mapping[Identity, StoredFile]


@dataclass
class BucketHistory:
    """Of the snapshots `start` … `end` - 1, whose tables have the same keys, as `schema` has."""

    id: BucketId
    schema: TableSchema
    end: int = 0
    changes: list[HistoryChange] = field(default_factory=list)
    places: dict[Identity, tuple[object, ...]] = field(default_factory=dict)

    def change_at(self, at: int) -> HistoryChange:
        """The change of that snapshot, to be added to."""
        if not self.changes or self.changes[-1].at != at:
            self.changes.append(HistoryChange(at))
        return self.changes[-1]

    def add(self, at: int, entry: ManifestEntry, file: StoredFile) -> None:
        """A file that came; its place among the others is that of its entry."""
        identity = entry.identity
        self.places[identity] = (*plan_order(entry), len(self.places))
        self.change_at(at).came[identity] = file

    def turns(self) -> Iterator[BucketTurn]:
        """The changes in order."""
        files: dict[Identity, StoredFile] = {}
        vectors: Mapping[str, BitMap] = {}
        for change in self.changes:
            for identity in change.gone:
                files.pop(identity, None)
            files.update(change.came)
            shown = dict(change.came)
            if change.vectors is not None:
                before, vectors = vectors, change.vectors
                names = {*before, *vectors}
                changed = {name for name in names if before.get(name) != vectors.get(name)}
                shown |= (
                    {identity: file for identity, file in files.items() if file.meta.file_name in changed}
                    if changed
                    else {}
                )
            gone = tuple(change.gone)
            yield BucketTurn(change.at, gone, {key: _with_vector(one, vectors) for key, one in shown.items()})

    def states(self) -> Iterator[tuple[int, int, tuple[StoredFile, ...]]]:
        """Each state as (its first snapshot, the snapshot after its last, its files in plan order)."""
        files: dict[Identity, StoredFile] = {}
        ends = [change.at for change in self.changes[1:]] + [self.end]
        for turn, end in zip(self.turns(), ends, strict=True):
            for identity in turn.gone:
                files.pop(identity, None)
            files.update(turn.shown)
            ordered = sorted(files, key=lambda identity: self.places[identity])
            yield turn.at, end, tuple(files[identity] for identity in ordered)

    def files(self) -> dict[str, StoredFile]:
        """Path → a file that was there at some time, first ones first."""
        found: dict[str, StoredFile] = {}
        for change in self.changes:
            for file in change.came.values():
                found.setdefault(file.path, file)
        return found


def _with_vector(file: StoredFile, vectors: Mapping[str, BitMap]) -> StoredFile:
    vector = vectors.get(file.meta.file_name)
    return file if vector is None else replace(file, deleted=vector)
