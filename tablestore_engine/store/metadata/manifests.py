"""Manifests, manifest lists and index files of one table: read through a bounded memory, write under new names.

CHANGE     how manifests are read and written
INVARIANT  these files never change once written, so that a name is enough to remember them.
INVARIANT  their names end in the checksum of their bytes, which each read compares; other engines' names do not.
INVARIANT  every size that a writer records is the length of the bytes it wrote (format.md#snapshots).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from pyroaring import BitMap

from tablestore_engine.fileio.base import FileIO, NewFile, write_many
from tablestore_engine.format.checksum import name_with_checksum, verify_name_checksum
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.deletion_vector import decode_deletion_vector, encode_deletion_vectors
from tablestore_engine.format.hash_index import Hashes, encode_hashes
from tablestore_engine.format.index_manifest import (
    DELETION_VECTORS,
    HASH,
    IndexEntry,
    decode_index_manifest,
    encode_index_manifest,
)
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.manifest import ManifestEntry, decode_manifest, encode_rolled
from tablestore_engine.format.manifest_list import (
    ManifestFileMeta,
    decode_manifest_list,
    describe_manifest,
    encode_manifest_list,
)
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.hash_files import HashFiles

MEMORY_ITEMS = 200_000  # manifest entries, list records and vectors: some 300 MB at worst
T = TypeVar("T")


@dataclass
class FileMemory:
    """Decoded files by name, weighed by their number of records. Shared by threads."""

    capacity_items: int = MEMORY_ITEMS
    _files: OrderedDict[str, tuple[Any, int]] = field(default_factory=OrderedDict)
    _held: int = 0
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("remembered manifests", Rank.PROCESS))

    def get_or_read(self, name: str, read: Callable[[], Sequence[T] | Mapping[str, T]]) -> Any:  # noqa: ANN401
        """What is remembered under the name, else what `read` gives."""
        with self._lock:
            if name in self._files:
                self._files.move_to_end(name)
                return self._files[name][0]
        value = read()
        self.put(name, value, len(value) + 1)
        return value

    def put(self, name: str, value: object, items: int) -> None:
        """Remember a file just read or written."""
        with self._lock:
            if name in self._files or items > self.capacity_items // 2:
                return
            self._files[name] = (value, items)
            self._held += items
            while self._held > self.capacity_items:
                self._held -= self._files.popitem(last=False)[1][1]


@dataclass(frozen=True)
class ManifestStore:
    """Metadata files of one table; all branches share them."""

    fileio: FileIO
    layout: TableLayout
    runtime: Runtime
    memory: FileMemory = field(default_factory=FileMemory, compare=False, repr=False)
    waiting: list[tuple[str, bytes]] | None = field(default=None, compare=False, repr=False)

    # ---- reading -------------------------------------------------------------------------------------------

    def read_list(self, name: str) -> tuple[ManifestFileMeta, ...]:
        """The manifests that a list names, in order. Raises NotFound TS1201, FixData TS1121."""
        return self.memory.get_or_read(  # type: ignore[no-any-return]
            name, lambda: tuple(decode_manifest_list(self._read_named("manifest list", name), name))
        )

    def read_manifest(self, name: str) -> tuple[ManifestEntry, ...]:
        """The entries of one manifest, in order."""
        return self.memory.get_or_read(  # type: ignore[no-any-return]
            name, lambda: tuple(decode_manifest(self._read_named("manifest", name), name))
        )

    def read_entries(self, list_name: str) -> list[ManifestEntry]:
        """The entries of all manifests of a list, in order."""
        return self.read_all_entries([list_name])

    def read_all_entries(self, list_names: Sequence[str]) -> list[ManifestEntry]:
        """The entries of all manifests of these lists, in order, in two round trips."""
        lists = self.fileio.run_together([partial(self.read_list, name) for name in list_names])
        metas = [meta for listed in lists for meta in listed]
        found = self.fileio.run_together([partial(self.read_manifest, meta.file_name) for meta in metas])
        return [entry for entries in found for entry in entries]

    def read_changelog_entries(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """The changelog files of a snapshot, in order; none when it has no changelog."""
        name = snapshot.changelog_manifest_list
        return [] if name is None else self.read_entries(name)

    def read_index(self, name: str | None) -> tuple[IndexEntry, ...]:
        """All index files of a snapshot; () without index manifest."""
        if name is None:
            return ()
        return self.memory.get_or_read(  # type: ignore[no-any-return]
            name,
            lambda: tuple(decode_index_manifest(self._read_named("index manifest", name), name)),
        )

    def read_vectors(self, entry: IndexEntry) -> Mapping[str, BitMap]:
        """Data file name → deleted positions, of one DELETION_VECTORS entry. Raises FixData TS1133."""
        return self.memory.get_or_read(entry.file_name, lambda: self._decode_vectors(entry))  # type: ignore[no-any-return]

    def read_hashes(self, entry: IndexEntry) -> Hashes:
        """The hashes of one HASH entry. Raises as HashFiles.read."""
        return HashFiles(self.fileio, self.layout).read(entry)

    def _read_named(self, what: str, name: str) -> bytes:
        """The bytes of a file of the manifest folder. Raises FixData TS1160."""
        data = self.fileio.read(self.layout.manifest_path(name))
        verify_name_checksum(data, what, name)
        return data

    def _decode_vectors(self, entry: IndexEntry) -> dict[str, BitMap]:
        data = self.fileio.read(self.layout.index_path(entry.file_name))
        verify_name_checksum(data, "index file", entry.file_name)
        return {
            where.data_file: decode_deletion_vector(data, where, entry.file_name) for where in entry.dv_ranges
        }

    # ---- writing -------------------------------------------------------------------------------------------

    def _write(self, path: str, data: bytes) -> None:
        if self.waiting is None:
            self.fileio.write(path, data)
        else:
            self.waiting.append((path, data))

    @contextmanager
    def written_together(self) -> Iterator[ManifestStore]:
        """The same store, whose files are written when the block ends well, together: their names and sizes are known
        before. When the disk refuses one of them (StorageError), all are deleted. A block inside another one writes
        nothing itself.
        """
        if self.waiting is not None:
            yield self
            return
        waiting: list[tuple[str, bytes]] = []
        yield replace(self, waiting=waiting)
        write_many(self.fileio, [NewFile(path, data) for path, data in waiting])

    def write_manifests(
        self,
        entries: Iterable[ManifestEntry],
        partition_types: Sequence[DataType],
        *,
        compression: str,
        target_bytes: int,
    ) -> list[ManifestFileMeta]:
        """New manifests with these entries in order, each but the last of the target size; no entries, no manifest."""
        metas = []
        for data, held in encode_rolled(entries, target_bytes=target_bytes, compression=compression):
            name = name_with_checksum(f"manifest-{self.runtime.new_uuid()}", data)
            self._write(self.layout.manifest_path(name), data)
            self.memory.put(name, held, len(held) + 1)
            metas.append(describe_manifest(name, len(data), held, partition_types))
        return metas

    def write_list(self, metas: Iterable[ManifestFileMeta], compression: str) -> tuple[str, int]:
        """(name, exact bytes) of a new manifest list."""
        listed = tuple(metas)
        data = encode_manifest_list(listed, compression)
        name = name_with_checksum(f"manifest-list-{self.runtime.new_uuid()}", data)
        self._write(self.layout.manifest_path(name), data)
        self.memory.put(name, listed, len(listed) + 1)
        return name, len(data)

    def write_index(self, entries: Iterable[IndexEntry], compression: str) -> str:
        """The name of a new index manifest."""
        listed = tuple(entries)
        data = encode_index_manifest(listed, compression)
        name = name_with_checksum(f"index-manifest-{self.runtime.new_uuid()}", data)
        self._write(self.layout.manifest_path(name), data)
        self.memory.put(name, listed, len(listed) + 1)
        return name

    def write_vectors(
        self, partition: bytes, bucket: int, vectors: Mapping[str, BitMap], *, is_64_bit: bool
    ) -> IndexEntry:
        """A new index file with all vectors of one bucket; without vectors it holds the version byte only."""
        data, ranges = encode_deletion_vectors(vectors, is_64_bit=is_64_bit)
        name = name_with_checksum(f"index-{self.runtime.new_uuid()}", data)
        self._write(self.layout.index_path(name), data)
        self.memory.put(name, dict(vectors), len(vectors) + 1)
        return IndexEntry(
            partition=partition,
            bucket=bucket,
            index_type=DELETION_VECTORS,
            file_name=name,
            file_size=len(data),
            row_count=len(ranges),
            dv_ranges=ranges,
        )

    def write_hashes(self, partition: bytes, bucket: int, hashes: Hashes) -> IndexEntry:
        data = encode_hashes(hashes)
        name = name_with_checksum(f"index-{self.runtime.new_uuid()}", data)
        self._write(self.layout.index_path(name), data)
        return IndexEntry(partition, bucket, HASH, name, file_size=len(data), row_count=len(hashes))
