"""Metadata from strangers: bombs, names that lead elsewhere and endless values are refused within bounded memory."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest

from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.fileio.external_folders import NO_FOLDERS
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.manifest import decode_manifest
from tablestore_engine.format.schema import decode_schema
from tablestore_engine.format.snapshot import decode_snapshot
from tests.unit.format.manifest_samples import encode_manifest, make_entry


def _container(schema: dict[str, object], records: list[object], codec: str = "zstandard") -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, codec=codec, sync_interval=1 << 31)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["zstandard", "deflate"])
def test_a_manifest_that_unpacks_to_far_more_than_it_is(codec: str) -> None:
    """A small file whose block unpacks to hundreds of megabytes is refused before it is unpacked."""
    bomb = _container(
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]},
        [{"a": bytes(160 << 20)}],
        codec,
    )
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(FixData, match=r"TS1131[\s\S]*unpacks to more than"):
            decode_manifest(bomb)
        assert tracemalloc.get_traced_memory()[1] < 150 << 20
    finally:
        tracemalloc.stop()


def test_schemas_that_a_decoder_would_not_end_at() -> None:
    """A writer's schema inside itself, and arrays of values without bytes, are refused."""
    itself = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]}
    nothing = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}],
    }
    for schema, record in ((itself, {"a": None}), (nothing, {"a": [None]})):
        with pytest.raises(FixData, match="TS1131"):
            decode_manifest(_container(schema, [record], "null"))


@pytest.mark.parametrize(
    "value", ["[" * 100_000 + "]" * 100_000, "9" * 100_000, "NaN", "[" * 200 + "]" * 200]
)
def test_deep_and_endless_json(value: str) -> None:
    """Depth and digits have limits, in keys that nobody reads too."""
    text = ('{"id": 1, "other": ' + value + "}").encode()
    with pytest.raises(FixData, match="TS1109"):
        decode_snapshot(text)
    with pytest.raises(FixData, match="TS1111"):
        decode_schema(text)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "..", "", ".hidden", "a\nb", "\x1b[2J"])
def test_names_that_lead_elsewhere(name: str) -> None:
    """A file that metadata names lies in its own folder."""
    layout = TableLayout("/w/demo.db/t")
    for path in (layout.manifest_path, layout.index_path, lambda one: layout.data_file("", 0, one)):
        with pytest.raises(FixData, match="TS1190"):
            path(name)


def test_an_external_path_is_kept_and_allows_nothing() -> None:
    """The path of a data file outside of its table is read as a text, and no folder is allowed by itself."""
    (entry,) = decode_manifest(encode_manifest([make_entry(external_path="file:/etc/passwd")], "zstd"))
    assert entry.file.external_path == "file:/etc/passwd"
    with pytest.raises(Unsupported, match="TS1191"):
        NO_FOLDERS.open(entry.file.external_path, "passwd")


SNAPSHOT = {
    "version": 3, "id": 1, "schemaId": 0, "baseManifestList": "b", "deltaManifestList": "d", "commitUser": "u",
    "commitIdentifier": 1, "commitKind": "APPEND", "timeMillis": 1, "totalRecordCount": 1, "deltaRecordCount": 1,
    "indexManifest": "i", "properties": {"k": "v"}, "nextRowId": 3,
}  # fmt: skip
SCHEMA = {
    "version": 3, "id": 0, "fields": [{"id": 0, "name": "a", "type": "BIGINT"}], "highestFieldId": 0,
    "partitionKeys": [], "primaryKeys": [], "options": {}, "comment": "c", "timeMillis": 1,
}  # fmt: skip
OPTIONAL = {"version", "indexManifest", "properties", "nextRowId", "comment", "timeMillis"}


@pytest.mark.parametrize(
    ("known", "decode"), [(SNAPSHOT, decode_snapshot), (SCHEMA, decode_schema)], ids=["snapshot", "schema"]
)
def test_unknown_and_renamed_keys(known: dict[str, object], decode: Callable[[bytes], object]) -> None:
    """A key that nobody knows changes nothing; a known one under another name is missing, and refused when needed."""
    plain = decode(json.dumps(known).encode())
    assert decode(json.dumps({**known, "futureKey": {"deep": [1, None]}, "": "x"}).encode()) == plain
    refused = set()
    for key in known:
        renamed = {(name + "_" if name == key else name): value for name, value in known.items()}
        try:
            assert decode(json.dumps(renamed).encode()) != plain or key in OPTIONAL
        except FixData:
            refused.add(key)
    assert refused >= {"id", "schemaId", "fields", "baseManifestList", "commitKind"} & set(known)
    assert not refused & {"comment", "properties", "nextRowId", "indexManifest"}


def test_links_inside_the_warehouse_are_not_followed(tmp_path: Path) -> None:
    """A linked file, table folder or databases folder is refused; the warehouse itself may be a link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    real = tmp_path / "real"
    (real / "demo.db").mkdir(parents=True)
    (real / "demo.db" / "file").symlink_to(outside / "secret")
    (real / "demo.db" / "t").symlink_to(outside, target_is_directory=True)
    (real / "other.db").symlink_to(outside, target_is_directory=True)
    (real / "demo.db" / "plain").write_text("p")
    (tmp_path / "w").symlink_to(real, target_is_directory=True)
    files = LocalFileIO(str(tmp_path / "w"))
    assert files.read(f"{files.root}/demo.db/plain") == b"p"
    for path in ("demo.db/file", "demo.db/t/secret", "other.db/secret"):
        with pytest.raises(FixData, match="TS1290"):
            files.read(f"{files.root}/{path}")
    for path in ("demo.db/t", "other.db"):
        with pytest.raises(FixData, match="TS1290"):
            files.list(f"{files.root}/{path}")
    with pytest.raises(FixData, match="TS1290"):
        files.write(f"{files.root}/other.db/new", b"")
    assert json.dumps(sorted(path.name for path in outside.iterdir())) == '["secret"]'
