"""`$files`, `$file_key_ranges`, `$manifests`: the files of one snapshot, from its manifests.

CHANGE     the columns of $files, $file_key_ranges and $manifests
INVARIANT  the files are those that a reader of the table opens: level 0 is left out where readers leave it out.
PAIMON     texts are those of Java: keys `[1, a]`, partitions `{a, b}`, statistics `{column=value}` by name. A binary
           value is shown as hexadecimal digits; Java shows an address in its memory.
CHANGE     the columns of $partitions and $buckets
INVARIANT  rows are counted as files hold them: rows that a deletion vector hides are in `record_count`, and in
           `deleted_record_count`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tablestore_engine.catalog.system_tables.system_table import Row, SystemState, SystemTable, moment
from tablestore_engine.format.binary_row import decode_field, decode_row, row_arity
from tablestore_engine.format.data_file import SOURCE_APPEND, SOURCE_COMPACT, DataFileMeta
from tablestore_engine.format.data_type import BINARY_ROOTS, DataField, DataType
from tablestore_engine.format.index_manifest import DELETION_VECTORS
from tablestore_engine.format.layout import file_format
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
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


_SOURCES = {SOURCE_APPEND: "APPEND", SOURCE_COMPACT: "COMPACT"}
_NULL = "null"
Statistics = Mapping[str, tuple[int | None, str, str]]


def visible_entries(state: SystemState) -> Sequence[ManifestEntry]:
    """The files that a reader of the state opens."""
    if state.snapshot is None:
        return ()
    return state.context.scanner.visible_entries(state.snapshot, schema=state.schema)


def partition_text(values: Sequence[object], spec: PartitionSpec) -> str:
    """`{2026-01-31, eu}`; `{}` without partitions."""
    texts = [_cast(value, kind) for value, kind in zip(values, spec.types, strict=True)]
    return f"{{{', '.join(texts)}}}"


def _cast(value: object, kind: DataType) -> str:
    if value is None:
        return _NULL
    return legacy_text(value, kind) if kind.root == "TIMESTAMP_LTZ" else cast_text(value, kind)


def _file_rows(state: SystemState, *, shows_statistics: bool) -> Iterator[Row]:
    spec, layout = PartitionSpec.of(state.schema), state.context.layout
    partitions: dict[bytes, tuple[str, str]] = {}
    for entry in visible_entries(state):
        if entry.partition not in partitions:
            values = spec.decode(entry.partition)
            partitions[entry.partition] = (partition_text(values, spec), spec.path(values))
        text, path = partitions[entry.partition]
        file = entry.file
        written = state.context.schemas.get(file.schema_id)
        place = file.external_path or layout.data_file(path, entry.bucket, file.file_name)
        common = (
            text,
            entry.bucket,
            place,
            file_format(file.file_name),
            file.schema_id,
            file.level,
            file.row_count,
            file.file_size,
            _key_text(file.min_key, written),
            _key_text(file.max_key, written),
        )
        yield (
            (*common, *_rest(file, written, state.schema))
            if shows_statistics
            else (*common, file.first_row_id)
        )


def _rest(file: DataFileMeta, written: TableSchema, now: TableSchema) -> Row:
    found = sorted(_statistics(file, written, now).items())
    counts = [(name, _NULL if nulls is None else str(nulls)) for name, (nulls, _, _) in found]
    return (
        _map_text(counts),
        _map_text([(name, low) for name, (_, low, _) in found]),
        _map_text([(name, high) for name, (_, _, high) in found]),
        file.min_sequence_number,
        file.max_sequence_number,
        moment(file.creation_time),
        file.delete_row_count,
        None if file.file_source is None else _SOURCES.get(file.file_source),
        file.first_row_id,
        None if file.write_cols is None else list(file.write_cols),
    )


def _map_text(pairs: Sequence[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{name}={text}' for name, text in pairs)}}}"


def _key_text(data: bytes, written: TableSchema) -> str | None:
    """`[1, a]`; None for a table without a key."""
    arity = row_arity(data)
    if arity == 0:
        return None
    kinds = [field.type for field in written.fields_of(written.trimmed_primary_keys)]
    return f"[{', '.join(map(_value_text, decode_row(data, kinds), kinds))}]"


def _value_text(value: object, kind: DataType) -> str:
    if value is None or not kind.is_atomic:
        return _NULL
    return bytes(value).hex() if kind.root in BINARY_ROOTS else legacy_text(value, kind)  # type: ignore[call-overload]


def _statistics(file: DataFileMeta, written: TableSchema, now: TableSchema) -> Statistics:
    """Column of today → (NULLs, minimum, maximum); a column that the file lacks is NULL in each of its rows."""
    stats, stored = file.value_stats, {field.id for field in written.fields}
    names = file.value_stats_cols
    listed = written.fields if names is None else written.fields_of(names)
    at = {field.id: number for number, field in enumerate(listed)}
    is_whole = {row_arity(stats.min_values), row_arity(stats.max_values)} == {len(listed)}
    found: dict[str, tuple[int | None, str, str]] = {}
    for field in now.fields:
        if field.id not in stored:
            found[field.name] = (file.row_count, _NULL, _NULL)
            continue
        number = at.get(field.id)
        known = number is not None and number < len(stats.null_counts)
        nulls = stats.null_counts[number] if known and number is not None else None
        bounds = (_NULL, _NULL)
        if number is not None and is_whole:
            low, high = (_bound(row, listed, number) for row in (stats.min_values, stats.max_values))
            bounds = (low, high)
        found[field.name] = (nulls, *bounds)
    return found


def _bound(row: bytes, listed: Sequence[DataField], number: int) -> str:
    kind = listed[number].type.with_nullable(True)
    return _value_text(decode_field(row, len(listed), number, kind), kind) if kind.is_atomic else _NULL


def _manifests(state: SystemState) -> Iterator[Row]:
    """Of the data, then of the changelog."""
    if state.snapshot is None:
        return
    spec = PartitionSpec.of(state.schema)
    one = state.snapshot
    for name in (one.base_manifest_list, one.delta_manifest_list, one.changelog_manifest_list):
        for meta in () if name is None else state.context.manifests.read_list(name):
            ends = (meta.partition_stats.min_values, meta.partition_stats.max_values)
            texts = (partition_text(spec.decode(end), spec) for end in ends)
            counts = (meta.num_added_files, meta.num_deleted_files)
            yield (meta.file_name, meta.file_size, *counts, meta.schema_id, *texts, None, None)


_PLACE = (
    ("partition", "STRING?"),
    ("bucket", "INT"),
    ("file_path", "STRING"),
    ("file_format", "STRING"),
    ("schema_id", "BIGINT"),
    ("level", "INT"),
    ("record_count", "BIGINT"),
    ("file_size_in_bytes", "BIGINT"),
    ("min_key", "STRING?"),
    ("max_key", "STRING?"),
)
FILE_TABLES = (
    SystemTable(
        "files",
        (
            *_PLACE,
            ("null_value_counts", "STRING"),
            ("min_value_stats", "STRING"),
            ("max_value_stats", "STRING"),
            ("min_sequence_number", "BIGINT?"),
            ("max_sequence_number", "BIGINT?"),
            ("creation_time", "TIMESTAMP(3)?"),
            ("deleteRowCount", "BIGINT?"),
            ("file_source", "STRING?"),
            ("first_row_id", "BIGINT?"),
            ("write_cols", "ARRAY?"),
        ),
        partial(_file_rows, shows_statistics=True),
    ),
    SystemTable(
        "file_key_ranges",
        (*_PLACE, ("first_row_id", "BIGINT?")),
        partial(_file_rows, shows_statistics=False),
    ),
    SystemTable(
        "manifests",
        (
            ("file_name", "STRING"),
            ("file_size", "BIGINT"),
            ("num_added_files", "BIGINT"),
            ("num_deleted_files", "BIGINT"),
            ("schema_id", "BIGINT"),
            ("min_partition_stats", "STRING?"),
            ("max_partition_stats", "STRING?"),
            ("min_row_id", "BIGINT?"),
            ("max_row_id", "BIGINT?"),
        ),
        _manifests,
    ),
)
