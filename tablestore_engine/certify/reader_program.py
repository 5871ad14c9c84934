"""The program that reads a snapshot with a reader of others, and writes the rows to stdout as an Arrow stream.

    versions                          reader → version, null where it is not installed: one JSON object
    read READER LOCATION SNAPSHOT     the rows; a reader that fails ends the program with status 3, reason on stderr

CHANGE     which readers `tablestore certify` knows
INVARIANT  it imports the standard library, pyarrow and the reader, and nothing of this engine: it runs in the
           environment of the reader, by its path, in a process of its own.
INVARIANT  a reader returns batches, never a whole table, where its library can do so.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

REFUSED = 3
_EXTENSIONS = ("avro", "iceberg")  # avro first: iceberg needs it
_BATCH_ROWS = 65_536
Opened = tuple[Any, Iterable[Any]]  # Arrow schema, record batches


def installed_versions() -> dict[str, str | None]:
    """Version of each reader's package; nothing is imported."""
    found: dict[str, str | None] = {}
    for name in READERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def open_pypaimon(location: str, snapshot: int | None) -> Opened:
    """By pypaimon; None: its newest snapshot."""
    module = importlib.import_module("pypaimon.table.file_store_table")
    table = module.FileStoreTable.from_path(location)
    if snapshot is not None:
        table = table.copy({"scan.snapshot-id": str(snapshot)})
    builder = table.new_read_builder()
    reader = builder.new_read().to_arrow_batch_reader(builder.new_scan().plan().splits())
    return reader.schema, reader


def open_rust(location: str, snapshot: int | None) -> Opened:
    """By pypaimon-rust, split by split."""
    options = {} if snapshot is None else {"scan.snapshot-id": str(snapshot)}
    builder = rust_table(location, snapshot).new_read_builder(options)
    splits, reader = builder.new_scan().plan().splits(), builder.new_read()
    batches = (batch for split in splits for batch in reader.read([split]))
    first = next(batches, None)
    if first is None:
        return None, ()
    return first.schema, _after(first, batches)


def rust_table(location: str, snapshot: int | None) -> Any:  # noqa: ANN401 - pypaimon-rust's table
    """With the schema of the snapshot, None: the newest one."""
    folder = Path(location)
    if snapshot is None:
        schema_id = max(int(file.name[7:]) for file in (folder / "schema").glob("schema-*"))
    else:
        schema_id = json.loads((folder / "snapshot" / f"snapshot-{snapshot}").read_text())["schemaId"]
    schema = (folder / "schema" / f"schema-{schema_id}").read_text()
    return importlib.import_module("pypaimon_rust.datafusion").Table.from_resolved_schema(location, schema)


def open_pyiceberg(location: str, snapshot: int | None) -> Opened:
    """By pyiceberg: of the newest metadata, which `version-hint.text` names."""
    module = importlib.import_module("pyiceberg.table")
    reader = module.StaticTable.from_metadata(location).scan(snapshot_id=snapshot).to_arrow_batch_reader()
    return reader.schema, reader


def open_duckdb(location: str, snapshot: int | None) -> Opened:
    """By DuckDB's extension `iceberg`, of the newest metadata."""
    at = "" if snapshot is None else f", snapshot_from_id => {int(snapshot)}"
    found = duckdb_with_iceberg().execute(f"SELECT * FROM iceberg_scan({_text(location)}{at})")
    to_reader = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch
    reader = to_reader(_BATCH_ROWS)
    return reader.schema, reader


def duckdb_with_iceberg() -> Any:  # noqa: ANN401 - DuckDB's connection
    """A connection; the extensions are those of the wheels duckdb-extension-*, else installed ones. Fetches nothing."""
    connection = importlib.import_module("duckdb").connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in _EXTENSIONS:
        try:
            module = importlib.import_module(f"duckdb_extension_{name}")
        except ImportError:
            connection.execute(f"LOAD {name}")
            continue
        folder = Path(str(module.__file__)).parent
        connection.execute(f"LOAD {_text(str(next(folder.glob('extensions/*/*.duckdb_extension'))))}")
    return connection


READERS: dict[str, Callable[[str, int | None], Opened]] = {
    "pypaimon": open_pypaimon,
    "pypaimon-rust": open_rust,
    "duckdb": open_duckdb,
    "pyiceberg": open_pyiceberg,
}


def _text(value: str) -> str:
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def _after(first: object, others: Iterator[object]) -> Iterator[object]:
    yield first
    yield from others


def _write(opened: Opened, out: int) -> None:
    pa = importlib.import_module("pyarrow")
    schema, batches = opened
    schema = pa.schema([]) if schema is None else schema
    with os.fdopen(out, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _main(words: list[str]) -> int:
    if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
        sys.path.pop(0)  # modules here must not stand for packages of the reader
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no row
    if words == ["versions"]:
        with os.fdopen(out, "w") as answer:
            json.dump(installed_versions(), answer)
        return 0
    _, reader, location, snapshot = words
    try:
        _write(READERS[reader](location, int(snapshot)), out)
    except BaseException as error:  # noqa: BLE001 - a process edge: every failure is an answer
        first_line = (str(error).strip().splitlines() or [""])[0]
        sys.stderr.write(f"\n{type(error).__name__}: {first_line}\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(_main(sys.argv[1:]))  # threads of a reader must not hold the end
