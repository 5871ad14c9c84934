"""System tables show what the files of a table say, read here without the engine: JSON and Avro."""

from __future__ import annotations

import datetime as dt
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table
from tablestore_engine.catalog.system_tables.history_tables import duration_text
from tablestore_engine.catalog.system_tables.system_table import BATCH_ROWS, SystemState, SystemTable
from tablestore_engine.errors import NotFound, TablestoreError

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - columns without a zone


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Table]:
    """Three snapshots in two partitions: rows, an update, a deletion; a tag, a consumer, a column that came later."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        columns = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("v", pa.string())])
        made = engine.create_table("d.orders", columns, primary_key=["id", "day"], partition_by=["day"])
        made.upsert(_rows([1, 2, 3], "first"))
        made.upsert(_rows([2], "second"))
        made.delete("id = 1")
        made.tag("old", 1)
        made.reset_consumer("me", 2)
        made.add_column("more", "INT")
        yield made


def _rows(ids: list[int], text: str) -> pa.Table:
    days = pa.array([dt.date(2026, 1, 1 + one % 2) for one in ids])
    return pa.table({"id": ids, "day": days, "v": [f"{text} {one}" for one in ids]})


def _place(table: Table) -> Path:
    return Path(table.store.location)


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _avro(table: Table, name: str) -> list[dict[str, Any]]:
    data = (_place(table) / "manifest" / name).read_bytes()
    return list(fastavro.reader(io.BytesIO(data)))  # type: ignore[arg-type]


def _live(table: Table, snapshot: int) -> dict[str, dict[str, Any]]:
    """Name → manifest entry, by adding and removing in the order of the lists."""
    said, found = _json(_place(table) / "snapshot" / f"snapshot-{snapshot}"), {}
    for one in (said["baseManifestList"], said["deltaManifestList"]):
        for manifest in _avro(table, one):
            for entry in _avro(table, manifest["_FILE_NAME"]):
                key = f"{entry['_FILE']['_FILE_NAME']}@{entry['_FILE']['_LEVEL']}"
                if entry["_KIND"] == 0:
                    found[key] = entry
                else:
                    del found[key]
    return found


def test_snapshots_tags_and_consumers_are_the_files_of_these_names(orders: Table) -> None:
    """Each row is one JSON file; times are the clock of UTC."""
    for row in orders.system_table("snapshots").to_pylist():
        said = _json(_place(orders) / "snapshot" / f"snapshot-{row['snapshot_id']}")
        assert (row["commit_user"], row["commit_kind"]) == (said["commitUser"], said["commitKind"])
        assert row["commit_time"] == EPOCH + dt.timedelta(milliseconds=said["timeMillis"])
        assert row["changelog_manifest_list"] == said.get("changelogManifestList")
        assert row["total_record_count"] == said["totalRecordCount"]
    assert [one["tag_name"] for one in orders.system_table("tags").to_pylist()] == ["old"]
    assert orders.system_table("consumers").to_pylist() == [{"consumer_id": "me", "next_snapshot_id": 2}]
    assert orders.system_table("branches").num_rows == 0


def test_schemas_and_options_are_those_of_the_schema_files(orders: Table) -> None:
    """All schemas with the text of their columns; options of the newest one."""
    rows = orders.system_table("schemas").to_pylist()
    assert [one["schema_id"] for one in rows] == [0, 1]
    for row in rows:
        said = _json(_place(orders) / "schema" / f"schema-{row['schema_id']}")
        assert json.loads(row["fields"]) == said["fields"]
        assert json.loads(row["primary_keys"]) == said["primaryKeys"]
        assert json.loads(row["options"]) == said["options"]
    found = {one["key"]: one["value"] for one in orders.system_table("options").to_pylist()}
    assert found == _json(_place(orders) / "schema" / "schema-1")["options"]


def test_files_are_the_live_entries_of_the_manifests(orders: Table) -> None:
    """Of the newest and of the first snapshot, with paths that exist, statistics and key ranges."""
    for snapshot in (1, 3):
        rows = orders.system_table("files", snapshot=snapshot).to_pylist()
        live = _live(orders, snapshot)
        assert len(rows) == len(live) > 0
        for row in rows:
            entry = live[f"{row['file_path'].rpartition('/')[2]}@{row['level']}"]
            file = entry["_FILE"]
            assert Path(row["file_path"]).stat().st_size == row["file_size_in_bytes"] == file["_FILE_SIZE"]
            assert (row["bucket"], row["record_count"]) == (entry["_BUCKET"], file["_ROW_COUNT"])
            assert row["min_sequence_number"] == file["_MIN_SEQUENCE_NUMBER"]
        ranges = orders.system_table("file_key_ranges", snapshot=snapshot)
        assert ranges.column("min_key").to_pylist() == [one["min_key"] for one in rows]
    first = orders.system_table("files", snapshot=1, filter="partition = '{2026-01-02}'").to_pylist()
    assert [(one["min_key"], one["max_key"]) for one in first] == [("[1]", "[3]")]
    assert first[0]["min_value_stats"] == "{day=20455, id=1, v=first 1}"
    newest = orders.system_table("files", limit=1).to_pylist()[0]
    assert "more=" in newest["null_value_counts"]


def test_partitions_buckets_and_manifests_count_the_same_files(orders: Table) -> None:
    """Rows and bytes by partition and bucket, and rows that a deletion vector hides."""
    live = _live(orders, orders.latest_snapshot_id() or 0).values()
    partitions = orders.system_table("partitions").to_pylist()
    assert [one["partition"] for one in partitions] == ["day=2026-01-01", "day=2026-01-02"]
    buckets = orders.system_table("buckets").to_pylist()
    for rows in (partitions, buckets):
        assert sum(one["record_count"] for one in rows) == sum(one["_FILE"]["_ROW_COUNT"] for one in live)
        assert sum(one["file_size_in_bytes"] for one in rows) == sum(
            one["_FILE"]["_FILE_SIZE"] for one in live
        )
    hidden = sum(one["deleted_record_count"] for one in partitions)
    assert sum(one["record_count"] for one in partitions) - hidden == len(orders) == 2
    said = _json(_place(orders) / "snapshot" / "snapshot-1")
    listed = [one["_FILE_NAME"] for one in _avro(orders, said["deltaManifestList"])]
    listed += [one["_FILE_NAME"] for one in _avro(orders, said["changelogManifestList"])]
    assert orders.system_table("manifests", snapshot=1).column("file_name").to_pylist() == listed


def test_metadata_tables_need_no_data_file(orders: Table) -> None:
    """All data files are gone: the tables of metadata say the same, those of rows cannot."""
    names = [one for one in orders.system_tables if one not in ("audit_log", "binlog", "ro")]
    before = {name: orders.system_table(name) for name in names}
    for folder in _place(orders).glob("day=*"):
        shutil.rmtree(folder)
    with Engine(str(_place(orders).parent.parent)) as engine:
        again = engine.table("d.orders")
        assert all(again.system_table(name).equals(before[name]) for name in names)
        with pytest.raises((TablestoreError, OSError)):
            again.system_table("ro")


def test_statistics_are_those_of_the_snapshot(orders: Table) -> None:
    """None without ANALYZE; with a file of another engine its numbers and its columns."""
    assert orders.system_table("statistics").num_rows == 0
    path = _place(orders) / "snapshot" / "snapshot-1"
    said = _json(path)
    columns = {"id": {"colId": 0, "distinctCount": 3, "min": "1", "max": "3"}}
    stored = {
        "snapshotId": 1,
        "schemaId": 0,
        "mergedRecordCount": 3,
        "mergedRecordSize": 90,
        "colStats": columns,
    }
    (_place(orders) / "statistics").mkdir()
    (_place(orders) / "statistics" / "stat-x-0").write_text(json.dumps(stored))
    said.pop("tablestore.crc32", None)
    said = {key: value for key, value in said.items() if "checksum" not in key and "crc" not in key}
    path.write_text(json.dumps({**said, "statistics": "stat-x-0"}))
    with Engine(str(_place(orders).parent.parent)) as engine:
        row = engine.table("d.orders").system_table("statistics", snapshot=1).to_pylist()[0]
        assert (row["snapshot_id"], row["mergedRecordCount"], json.loads(row["colstat"])) == (1, 3, columns)
        (_place(orders) / "statistics" / "stat-x-0").write_text("{}")
        with pytest.raises(TablestoreError, match="TS1347"):
            engine.table("d.orders").system_table("statistics", snapshot=1)


def test_rows_with_kinds(orders: Table) -> None:
    """A state has +I only; changes have all kinds, and the binlog has an update in one row."""
    state = orders.system_table("audit_log", columns=["rowkind", "id"]).to_pylist()
    assert sorted((one["rowkind"], one["id"]) for one in state) == [("+I", 2), ("+I", 3)]
    changes = orders.system_table("audit_log", since=1, until=3, columns=["rowkind", "v"]).to_pylist()
    assert [tuple(one.values()) for one in changes] == [
        ("-U", "first 2"),
        ("+U", "second 2"),
        ("-D", "first 1"),
    ]
    packed = orders.system_table("binlog", since=1, until=3, columns=["rowkind", "v"]).to_pylist()
    assert [tuple(one.values()) for one in packed] == [("+U", ["first 2", "second 2"]), ("-D", ["first 1"])]
    assert orders.system_table("binlog", since=1, until=3, filter="rowkind = '-D'").num_rows == 1
    assert orders.system_table("binlog", snapshot=1, limit=1).column("id").to_pylist() == [[2]]


def test_read_optimized_rows_are_those_of_the_top_level(tmp_path: Path) -> None:
    """None before a full compaction, and nothing that came after it."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        made = engine.create_table("d.t", pa.schema([("id", pa.int64())]), primary_key="id")
        for number in range(3):
            made.upsert(pa.table({"id": [number]}))
        made.compact(full=True)
        made.upsert(pa.table({"id": [7]}))
        assert sorted(made.system_table("ro").column("id").to_pylist()) == [0, 1, 2]
        assert made.system_table("ro", filter="id > 1", columns=["id"], limit=3).to_pylist() == [{"id": 2}]
        assert len(made) == 4


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("nothing", {}, "TS1490"),
        ("files", {"since": 1}, "TS1569"),
        ("files", {"columns": ["nothing"]}, "TS1110"),
        ("files", {"filter": "nothing > 1"}, "TS1565"),
        ("audit_log", {"since": 1, "snapshot": 1}, "TS1569"),
    ],
)
def test_what_there_is_not_is_refused(orders: Table, name: str, words: dict[str, Any], code: str) -> None:
    """Another name, a range of metadata, columns that it lacks."""
    with pytest.raises(TablestoreError) as refused:
        orders.system_table(name, **words)
    assert refused.value.code == code
    if code == "TS1490":
        assert isinstance(refused.value, NotFound)
        assert all(one in refused.value.why for one in orders.system_tables)


def test_a_column_named_as_that_of_the_kind_is_refused(tmp_path: Path) -> None:
    """rowkind cannot be there twice."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        made = engine.create_table("d.t", pa.schema([("RowKind", pa.int64())]))
        with pytest.raises(TablestoreError, match="TS1349"):
            made.system_table("audit_log")


def test_rows_are_made_when_they_are_asked_for() -> None:
    """A limit stops the work: the second batch is not made before somebody wants it."""
    made: list[int] = []

    def rows(_: SystemState) -> Iterator[tuple[object, ...]]:
        for number in range(10 * BATCH_ROWS):
            made.append(number)
            yield (number,)

    batches = SystemTable("x", (("n", "BIGINT"),), rows).batches(None)  # type: ignore[arg-type]
    assert next(batches).num_rows == len(made) == BATCH_ROWS


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (dt.timedelta(0), "PT0S"),
        (dt.timedelta(days=1, hours=12), "PT36H"),
        (dt.timedelta(minutes=90, seconds=1, milliseconds=500), "PT1H30M1.5S"),
    ],
)
def test_a_duration_is_written_as_java_writes_it(span: dt.timedelta, text: str) -> None:
    """`$tags.time_retained`."""
    assert duration_text(span) == text
