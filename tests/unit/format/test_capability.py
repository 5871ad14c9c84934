"""Capabilities: what is refused, for which action, and that the message names it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.capability import (
    CAPABILITIES,
    check_data_file,
    check_readable,
    check_writable,
    list_refusals,
)
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type

ARROW = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.string())])
OURS = {
    "bucket": "2",
    "deletion-vectors.enabled": "true",
    "changelog-producer": "lookup",
    "write-only": "true",
    "merge-engine": "deduplicate",
    "num-levels": "20",
    "file.format": "parquet",
    "file.compression": "zstd",
}


def _keyed(**options: str) -> TableSchema:
    merged = OURS | {key.replace("__", "."): value for key, value in options.items()}
    return new_schema(ARROW, primary_keys=["id"], options=merged)


def _with(options: dict[str, str]) -> TableSchema:
    return new_schema(ARROW, primary_keys=["id"], options=OURS | options)


@pytest.mark.parametrize(
    "schema",
    [
        _keyed(),
        new_schema(ARROW),
        new_schema(ARROW, options={"bucket": "3", "bucket-key": "v"}),
        new_schema(ARROW, partition_keys=["dt"], primary_keys=["dt", "id"], options={"bucket": "1"}),
        new_schema(ARROW, partition_keys=["dt"], primary_keys=["id"], options=OURS),
        _with(
            {"changelog-producer": "none", "sequence.field": "v", "type": "table", "ignore-delete": "false"}
        ),
    ],
)
def test_tables_of_ours_are_read_and_written(schema: TableSchema) -> None:
    """Keyed tables with fixed buckets and append tables of both kinds are fully supported."""
    check_readable(schema)
    check_writable(schema)


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({"row-tracking.enabled": "true"}, False),
        ({"data-evolution.enabled": "TRUE"}, False),
        ({"pk-clustering-override": "true"}, False),
        ({"sequence.snapshot-ordering": "true"}, False),
        ({"write.sequence-number-init-mode": "snapshot"}, False),
        ({"chain-table.enabled": "true"}, False),
        ({"data-file.external-paths": "s3://x"}, True),
        ({"data-file.path-directory": "data"}, False),
        ({"type": "format-table"}, False),
        ({"map.storage-layout": "x"}, False),
        ({"pk-vector.index.columns": "v"}, False),
        ({"merge-engine": "magic"}, False),
        ({"fields.v.aggregate-function": "theta_sketch", "merge-engine": "aggregation"}, False),
        ({"scan.fallback-branch": "b"}, False),
        ({"deletion-vectors.merge-on-read": "true"}, True),
        ({"primary-key.nullable": "true"}, False),
        ({"bucket": "0"}, False),
        ({"bucket": "-2"}, True),
        ({"changelog-producer": "full-compaction"}, True),
        ({"file.format": "orc"}, True),
        ({"file.format.per.level": "0:avro"}, True),
        ({"rowkind.field": "id"}, True),
        ({"tag.automatic-creation": "watermark"}, True),
        ({"tag.period-formatter": "without_dashes", "tag.automatic-creation": "process-time"}, True),
        ({"bucket-function.type": "other"}, True),
    ],
)
def test_refused_options(options: dict[str, str], *, read: bool) -> None:
    """Each option that we do not implement stops writing, and reading unless reads stay right; it is named."""
    schema = _with(options)
    name = next(iter(options))
    with pytest.raises(Unsupported) as raised:
        check_writable(schema, table="d.t")
    assert raised.value.code == "TS1127"
    assert f"{name}={options[name]}" in str(raised.value)
    assert "d.t" in str(raised.value)
    if read:
        check_readable(schema)
    else:
        with pytest.raises(Unsupported, match="TS1126"):
            check_readable(schema)


def test_unreadable_column_types_are_found_at_any_depth() -> None:
    """A BLOB inside an array stops reading and writing, with the column's name."""
    nested = DataType("ARRAY", element=parse_type("BLOB"))
    schema = TableSchema(0, (DataField(0, "deep", nested),), 0)
    for check in (check_readable, check_writable):
        with pytest.raises(Unsupported, match="deep has BLOB"):
            check(schema)
    vector = TableSchema(
        0, (DataField(0, "vec", DataType("VECTOR", element=parse_type("FLOAT"), length=2)),), 0
    )
    with pytest.raises(Unsupported, match="VECTOR"):
        check_readable(vector)


def test_shapes_that_are_only_read() -> None:
    """Mixed units of time, buckets without a key, keys across partitions with a log: read, not written."""
    for schema in (
        new_schema(ARROW, partition_keys=["dt"], primary_keys=["id"], options=OURS | {"log.system": "kafka"}),
        new_schema(pa.schema([("s", pa.struct({"a": pa.timestamp("ns"), "b": pa.timestamp("us")}))])),
        new_schema(pa.schema([("f", pa.float32()), ("v", pa.int8())]), partition_keys=["f"]),
        new_schema(ARROW, options={"bucket": "4"}),
    ):
        check_readable(schema)
        with pytest.raises(Unsupported):
            check_writable(schema)


def test_scan_options_stop_reading_not_writing() -> None:
    """A stored time-travel option would make every read partial."""
    schema = _with({"scan.snapshot-id": "3", "incremental-between": "1,2"})
    assert {c.feature for c, _ in list_refusals(schema, write=False)} == {
        "fixed scan position",
        "incremental scan",
    }
    with pytest.raises(Unsupported, match="TS1126"):
        check_writable(schema)


def test_all_reasons_are_named_at_once() -> None:
    """Two features against a table are both in the message, so that nobody fixes them one by one."""
    with pytest.raises(
        Unsupported, match=r"row tracking.*(?s:.)*merge engine|merge engine.*(?s:.)*row tracking"
    ):
        check_readable(_with({"row-tracking.enabled": "true", "merge-engine": "magic"}))


def test_binary_partitions_are_refused() -> None:
    """A binary partition column has no portable directory name."""
    with pytest.raises(Unsupported, match="partition column b"):
        check_readable(new_schema(pa.schema([("b", pa.binary()), ("v", pa.int8())]), partition_keys=["b"]))


@pytest.mark.parametrize("name", ["data-1.csv", "data-1.lance", "data-1"])
def test_the_extension_of_a_file_decides(name: str) -> None:
    """A data file of an unknown format is refused by its name, whatever the table option says."""
    with pytest.raises(Unsupported, match="TS1128"):
        check_data_file(name)
    for name in ("data-1.zstd.parquet", "data-1.orc", "data-1.avro"):
        check_data_file(name)


def test_the_table_is_complete() -> None:
    """Each capability is refused for something, named once, and says why."""
    assert len({c.feature for c in CAPABILITIES}) == len(CAPABILITIES)
    assert all(c.why and not (c.read and c.write) for c in CAPABILITIES)


@pytest.mark.parametrize(
    "options",
    [
        {"metadata.iceberg.storage": "hive-catalog"},
        {"tag.automatic-creation": "batch"},
        {"commit.callbacks": "com.example.Told"},
        {"metastore.partitioned-table": "true"},
        {"changelog.time-retained": "7 d"},
    ],
)
def test_table_whose_promise_a_write_would_break_is_read_only(options: dict[str, str]) -> None:
    """Another engine's table with such an option is read; a write is refused and names the option."""
    check_readable(_with(options))
    with pytest.raises(Unsupported, match="TS1127") as caught:
        check_writable(_with(options))
    assert next(iter(options)) in caught.value.what


@pytest.mark.parametrize(
    "options",
    [
        {"file-index.bloom-filter.columns": "v"},
        {"tag.num-retained-max": "3"},
        {"metadata.iceberg.storage": "disabled"},
    ],
)
def test_table_with_an_option_that_a_write_does_not_break_is_written(options: dict[str, str]) -> None:
    """What only makes reads faster, or concerns nothing that a commit does, keeps nobody from writing."""
    check_writable(_with(options))


@pytest.mark.parametrize("options", [{"manifest.format": "orc"}, {"index-file-in-data-file-dir": "true"}])
def test_table_whose_metadata_we_cannot_find_is_not_read(options: dict[str, str]) -> None:
    """Other metadata than ours is refused before a read misses files or deletions."""
    with pytest.raises(Unsupported, match="TS1126"):
        check_readable(_with(options))
