"""`$partitions` and `$buckets`: the files of one snapshot, counted by partition and by bucket.

CHANGE     the columns of $partitions and $buckets
INVARIANT  rows are counted as files hold them: rows that a deletion vector hides are in `record_count`, and in
           `deleted_record_count`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tablestore_engine.catalog.system_tables.file_tables import partition_text
from tablestore_engine.catalog.system_tables.system_table import Row, SystemState, SystemTable, moment
from tablestore_engine.format.index_manifest import DELETION_VECTORS
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.value_text import cast_text, legacy_text
from tablestore_engine.store.table_traits import TableTraits

K = TypeVar("K")


@dataclass
class _Sum:
    rows: int = 0
    size: int = 0
    files: int = 0
    newest: int | None = None
    total_buckets: int = 0

    def add(self, entry: ManifestEntry) -> None:
        file, sign = entry.file, 1 if entry.kind is FileKind.ADD else -1
        self.rows += sign * file.row_count
        self.size += sign * file.file_size
        self.files += sign
        self.total_buckets = entry.total_buckets
        self.newest = max((one for one in (self.newest, file.creation_time) if one is not None), default=None)


def _partitions(state: SystemState) -> Iterator[Row]:
    spec, dead = PartitionSpec.of(state.schema), _dead_rows(state)
    sums = _sums(state, lambda entry: entry.partition)
    found = [(_path_text(spec.decode(partition), spec), partition, one) for partition, one in sums.items()]
    for text, partition, one in sorted(found, key=lambda row: row[0]):
        named = (None, None, None, None)  # a folder knows no creator and no options of a partition
        times = (moment(one.newest), *named)
        yield (text, one.rows, one.size, one.files, *times, one.total_buckets, False, dead.get(partition, 0))


def _buckets(state: SystemState) -> Iterator[Row]:
    spec = PartitionSpec.of(state.schema)
    rows = [
        (
            partition_text(spec.decode(partition), spec),
            bucket,
            one.rows,
            one.size,
            one.files,
            moment(one.newest),
        )
        for (partition, bucket), one in _sums(state, lambda entry: (entry.partition, entry.bucket)).items()
    ]
    yield from sorted(rows, key=lambda row: row[:2])


def _sums(state: SystemState, group: Callable[[ManifestEntry], K]) -> dict[K, _Sum]:
    """Of all levels. A removed file counts for the time of the last update, as in Paimon."""
    found: dict[K, _Sum] = {}
    if state.snapshot is not None:
        lists = (state.snapshot.base_manifest_list, state.snapshot.delta_manifest_list)
        for entry in state.context.manifests.read_all_entries(lists):
            found.setdefault(group(entry), _Sum()).add(entry)
    return {key: one for key, one in found.items() if one.files}


def _dead_rows(state: SystemState) -> dict[bytes, int | None]:
    """Partition → rows that deletion vectors hide; None where a writer left the count out."""
    if state.snapshot is None or not TableTraits(state.schema).has_vectors:
        return {}
    found: dict[bytes, int | None] = {}
    for index in state.context.manifests.read_index(state.snapshot.index_manifest):
        if index.index_type != DELETION_VECTORS:
            continue
        for one in index.dv_ranges:
            before = found.get(index.partition, 0)
            unknown = before is None or one.cardinality is None
            found[index.partition] = None if unknown else (before or 0) + (one.cardinality or 0)
    return found


def _path_text(values: tuple[object, ...], spec: PartitionSpec) -> str:
    """`dt=2026-01-31/region=eu`, not escaped."""
    texts = []
    for key, kind, value in zip(spec.keys, spec.types, values, strict=True):
        cast = legacy_text if kind.root == "TIMESTAMP_LTZ" else cast_text
        texts.append(f"{key}={spec.default_name if value is None else cast(value, kind)}")
    return "/".join(texts)


PARTITION_TABLES = (
    SystemTable(
        "partitions",
        (
            ("partition", "STRING?"),
            ("record_count", "BIGINT"),
            ("file_size_in_bytes", "BIGINT"),
            ("file_count", "BIGINT"),
            ("last_update_time", "TIMESTAMP(3)?"),
            ("created_at", "TIMESTAMP(3)?"),
            ("created_by", "STRING?"),
            ("updated_by", "STRING?"),
            ("options", "STRING?"),
            ("total_buckets", "INT"),
            ("done", "BOOLEAN"),
            ("deleted_record_count", "BIGINT?"),
        ),
        _partitions,
    ),
    SystemTable(
        "buckets",
        (
            ("partition", "STRING?"),
            ("bucket", "INT"),
            ("record_count", "BIGINT"),
            ("file_size_in_bytes", "BIGINT"),
            ("file_count", "BIGINT"),
            ("last_update_time", "TIMESTAMP(3)?"),
        ),
        _buckets,
    ),
)
