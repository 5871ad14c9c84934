"""`$files`, `$file_key_ranges`, `$manifests`: the files of one snapshot, from its manifests.

CHANGE     the columns of $files, $file_key_ranges and $manifests
INVARIANT  the files are those that a reader of the table opens: level 0 is left out where readers leave it out.
PAIMON     texts are those of Java: keys `[1, a]`, partitions `{a, b}`, statistics `{column=value}` by name. A binary
           value is shown as hexadecimal digits; Java shows an address in its memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tablestore_engine.catalog.system_tables.system_table import Row, SystemState, SystemTable, moment
from tablestore_engine.format.binary_row import decode_field, decode_row, row_arity
from tablestore_engine.format.data_file import SOURCE_APPEND, SOURCE_COMPACT, DataFileMeta
from tablestore_engine.format.data_type import BINARY_ROOTS, DataField, DataType
from tablestore_engine.format.layout import file_format
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.value_text import cast_text, legacy_text

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
