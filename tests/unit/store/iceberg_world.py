"""Iceberg metadata as a reader of Iceberg decodes it, with nothing of the engine: JSON, Avro, Puffin."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
from pyroaring import BitMap

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.store.iceberg_metadata.iceberg_sync import IcebergReport, sync_iceberg
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import tree_files
from tests.unit.store.table_world import make_table

ICEBERG = {"metadata.iceberg.storage": "table-location"}
Listed = dict[str, frozenset[int]]  # path of a data file → its deleted positions


def iceberg_table(root: Path | str, *, options: Mapping[str, str] | None = None, **more: Any) -> TableStore:
    """A new table with Iceberg metadata."""
    return make_table(root, options={**ICEBERG, **(options or {})}, **more)


def sync(store: TableStore) -> IcebergReport | None:
    """What a commit of a warehouse does."""
    return sync_iceberg(store.context)


def metadata_folder(store: TableStore) -> str:
    """Of table-location."""
    return f"{store.location}/metadata"


def metadata_files(store: TableStore) -> set[str]:
    """Names of everything there."""
    return {status.name for status in store.fileio.list(metadata_folder(store))}


def metadata(store: TableStore, folder: str | None = None) -> dict[str, Any]:
    """The newest version, as a reader finds it that looks for files."""
    place = folder or metadata_folder(store)
    names = [one.name for one in store.fileio.list(place) if one.name.endswith(".metadata.json")]
    newest = max(names, key=lambda name: int(name[1:].partition(".")[0]))
    return dict(json.loads(store.fileio.read(f"{place}/{newest}")))


def hinted(store: TableStore) -> dict[str, Any]:
    """The version that the hint names."""
    number = store.fileio.read(f"{metadata_folder(store)}/version-hint.text").decode()
    return dict(json.loads(store.fileio.read(f"{metadata_folder(store)}/v{number}.metadata.json")))


def snapshot_ids(value: Mapping[str, Any]) -> list[int]:
    """Listed snapshots, ascending."""
    return sorted(one["snapshot-id"] for one in value["snapshots"])


def avro(fileio: FileIO, path: str) -> list[dict[str, Any]]:
    """The records of a manifest or list."""
    return list(fastavro.reader(io.BytesIO(fileio.read(path))))  # type: ignore[arg-type]


def manifests(store: TableStore, snapshot: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the list of a snapshot says."""
    return avro(store.fileio, snapshot["manifest-list"])


def listed(store: TableStore, number: int, value: Mapping[str, Any] | None = None) -> Listed:
    """What a reader sees at a snapshot."""
    [snapshot] = [one for one in (value or metadata(store))["snapshots"] if one["snapshot-id"] == number]
    files: dict[str, int] = {}
    dead: dict[str, frozenset[int]] = {}
    for manifest in manifests(store, snapshot):
        for entry in avro(store.fileio, manifest["manifest_path"]):
            file = entry["data_file"]
            assert entry["status"] in (0, 1)
            if file["content"] == 0:
                assert file["file_path"] not in files
                files[file["file_path"]] = entry["sequence_number"]
            else:
                assert file["referenced_data_file"] not in dead
                dead[file["referenced_data_file"]] = _positions(store.fileio, file)
    assert dead.keys() <= files.keys()
    return {path: dead.get(path, frozenset()) for path in files}


def planned(store: TableStore, number: int) -> Listed:
    """The same of our own scan plan."""
    plan = store.plan_scan(store.snapshots.get(number))
    return {file.path: frozenset(file.deleted or ()) for file in plan.files}


def assert_complete(store: TableStore) -> None:
    """The newest version lists every snapshot of the table, each as our own plan has it, and nothing else is there."""
    value = metadata(store)
    assert hinted(store) == value
    assert snapshot_ids(value) == sorted({*store.snapshots.list_ids(), *store.tags.list_all().values()})
    assert value["current-snapshot-id"] == store.snapshots.find_latest_id()
    for number in store.snapshots.list_ids():
        assert listed(store, number, value) == planned(store, number)


def unnamed(store: TableStore) -> set[str]:
    """Names of metadata files that no listed snapshot needs, but for versions and the hint."""
    needed: set[str] = set()
    for snapshot in metadata(store)["snapshots"]:
        needed.add(snapshot["manifest-list"])
        for manifest in manifests(store, snapshot):
            needed.add(manifest["manifest_path"])
            if manifest["content"] == 1:
                entries = avro(store.fileio, manifest["manifest_path"])
                needed |= {entry["data_file"]["file_path"] for entry in entries}
    names = {path.rpartition("/")[2] for path in needed}
    return {
        name for name in metadata_files(store) - names if not name.endswith((".metadata.json", "hint.text"))
    }


def data_files(store: TableStore) -> set[str]:
    """Paths of all data files that are there."""
    return {path for path in tree_files(store.fileio, store.location) if path.endswith(".parquet")}


def _positions(fileio: FileIO, file: Mapping[str, Any]) -> frozenset[int]:
    data = fileio.read(file["file_path"])
    assert len(data) == file["file_size_in_bytes"]
    if file["file_format"] == "PARQUET":
        rows = pq.read_table(io.BytesIO(data)).to_pylist()
        assert {row["file_path"] for row in rows} == {file["referenced_data_file"]}
        found = frozenset(row["pos"] for row in rows)
    else:
        found = _vector(data, file["content_offset"], file["content_size_in_bytes"])
    assert len(found) == file["record_count"] > 0
    return found


def _vector(data: bytes, offset: int, length: int) -> frozenset[int]:
    assert data[:4] == data[-4:] == b"PFA1"
    blob = data[offset : offset + length]
    (size,) = struct.unpack_from(">i", blob)
    body = blob[4 : 4 + size]
    assert zlib.crc32(body) == struct.unpack_from(">I", blob, 4 + size)[0]
    assert body[:4].hex() == "d1d33964"
    assert struct.unpack_from("<qi", body, 4) == (1, 0)
    return frozenset(BitMap.deserialize(body[16:]))
