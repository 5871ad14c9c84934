"""Buckets whose rows are in no file: what merging makes of them lies in the scratch of this process, as files.

CHANGE     where merged rows of a table without deletion vectors lie while they are read
Steps      files whose key ranges meet are a section → a section of one file without retractions is read as it is →
           of the others the merged rows become files of a folder of this process (merge.version_merge)
INVARIANT  equal plans have equal rows in equal order: sections ascend by key. Only the names of the copies differ.
INVARIANT  a copy is removed once no plan has it (StoredFile.fileio), and no later than the process ends.
WHY        files: filters, key look-ups, Spark and DuckDB read them like any others, with statistics of their own, and
           memory stays bounded. A bitmap, as deduplicate has it, cannot show values that no file has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tablestore_engine.format.layout import TableLayout
from tablestore_engine.lsm.merge_on_read import sections_of
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.files.bucket_state import BucketId, BucketState
from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.scratch_folder import open_scratch_folder
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import key_range
from tablestore_engine.store.merge.version_merge import read_merged
from tablestore_engine.store.table_traits import TableTraits

_FAST = {"file.compression": "lz4"}  # written once, read a few times, on a disk of this machine


@dataclass(frozen=True)
class MergedCopies:
    """Of one table. The copies of a bucket stay until another state of it is read."""

    runtime: Runtime
    _held: dict[BucketId, tuple[object, tuple[StoredFile, ...]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of_bucket(self, reader: FileReader, files: Sequence[StoredFile]) -> tuple[StoredFile, ...]:
        """Files whose rows are those of the bucket, in key order; `files` are all of it, at least one.

        Raises FixData TS1659, TS1660, TS1668, TS1697 for versions that cannot be merged; as FileReader.
        """
        place = (files[0].partition_bytes, files[0].bucket)
        state = (reader.schema, tuple((one.path, one.deleted) for one in files))
        held = self._held.get(place)
        if held is not None and held[0] == state:
            return held[1]
        made = self._made(reader, files)
        self._held[place] = (state, made)
        return made

    def _made(self, reader: FileReader, files: Sequence[StoredFile]) -> tuple[StoredFile, ...]:
        there = [file for file in files if file.meta.row_count]
        sections = sections_of([key_range(reader.schema, file) for file in there])
        found: list[StoredFile] = []
        copied: list[StoredFile] = []
        for section in [*([there[number] for number in one] for one in sections), []]:
            if copied and (not section or _is_plain(section)):
                found += self._copies(reader, copied)
                copied = []
            if _is_plain(section):
                shown = section[0].deleted if TableTraits(reader.schema).has_vectors else None
                found += [replace(section[0], deleted=shown)]
            else:
                copied += section
        return tuple(found)

    def _copies(self, reader: FileReader, files: Sequence[StoredFile]) -> list[StoredFile]:
        folder = open_scratch_folder("merged-")
        traits = TableTraits(reader.schema, _FAST)
        output = DataFiles(folder.fileio, TableLayout(folder.path), traits, self.runtime)
        first = files[0]
        state = BucketState(first.partition, first.partition_bytes, first.partition_path, first.bucket, ())
        with output.open_run(state, level=max(1, traits.level_count - 1)) as run:
            for rows in read_merged(reader, files, traits, visible=traits.has_vectors):
                run.add(rows)
        return [
            replace(output.stored(state, meta), total_buckets=first.total_buckets, fileio=folder.fileio)
            for meta in run.metas
        ]


def _is_plain(section: Sequence[StoredFile]) -> bool:
    return len(section) == 1 and section[0].meta.delete_row_count == 0
