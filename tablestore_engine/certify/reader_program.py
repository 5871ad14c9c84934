"""The program that reads a snapshot with a reader of others, and writes the rows to stdout as an Arrow stream.

    versions                          reader → version, null where it is not installed: one JSON object
    read READER LOCATION SNAPSHOT     the rows; a reader that fails ends the program with status 3, reason on stderr
    … STORE                           of an S3 store: endpoint, region, path_style, anonymous as one JSON object

CHANGE     which readers `tablestore certify` knows
INVARIANT  it imports the standard library, pyarrow and the reader, and nothing of this engine: it runs in the
           environment of the reader, by its path, in a process of its own.
INVARIANT  credentials of a store come from the environment, and are in no argument.
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
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
Opened = tuple[Any, Iterable[Any]]  # Arrow schema, record batches
Store = dict[str, Any] | None  # None: a folder


def installed_versions() -> dict[str, str | None]:
    """Version of each reader's package; nothing is imported."""
    found: dict[str, str | None] = {}
    for name in READERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def open_pypaimon(location: str, snapshot: int | None, store: Store = None) -> Opened:
    """By pypaimon; None: its newest snapshot."""
    module = importlib.import_module("pypaimon.table.file_store_table")
    table = module.FileStoreTable.from_path(location, *_paimon_options(store))
    if snapshot is not None:
        table = table.copy({"scan.snapshot-id": str(snapshot)})
    builder = table.new_read_builder()
    reader = builder.new_read().to_arrow_batch_reader(builder.new_scan().plan().splits())
    return reader.schema, reader


def open_rust(location: str, snapshot: int | None, store: Store = None) -> Opened:
    """By pypaimon-rust, split by split."""
    options = {} if snapshot is None else {"scan.snapshot-id": str(snapshot)}
    builder = rust_table(location, snapshot, store).new_read_builder(options)
    splits, reader = builder.new_scan().plan().splits(), builder.new_read()
    batches = (batch for split in splits for batch in reader.read([split]))
    first = next(batches, None)
    if first is None:
        return None, ()
    return first.schema, _after(first, batches)


def rust_table(location: str, snapshot: int | None, store: Store = None) -> Any:  # noqa: ANN401 - pypaimon-rust's table
    """With the schema of the snapshot, None: the newest one."""
    files, folder = _files(location, store)
    if snapshot is None:
        fs = importlib.import_module("pyarrow.fs")
        found = files.get_file_info(fs.FileSelector(f"{folder}/schema"))
        schema_id = max(int(one.base_name[7:]) for one in found if one.base_name.startswith("schema-"))
    else:
        schema_id = json.loads(_read(files, f"{folder}/snapshot/snapshot-{snapshot}"))["schemaId"]
    schema = _read(files, f"{folder}/schema/schema-{schema_id}").decode()
    table = importlib.import_module("pypaimon_rust.datafusion").Table
    options = _paimon_options(store)
    return table.from_resolved_schema(location, schema, **({"options": options[0]} if options else {}))


def open_pyiceberg(location: str, snapshot: int | None, store: Store = None) -> Opened:
    """By pyiceberg: of the newest metadata, which `version-hint.text` names."""
    module = importlib.import_module("pyiceberg.table")
    properties = {}
    if store is not None:
        names = ("access-key-id", "secret-access-key", "session-token")
        properties = _s3_options(store, names) | {"s3.force-virtual-addressing": str(not store["path_style"])}
    table = module.StaticTable.from_metadata(location, properties)
    reader = table.scan(snapshot_id=snapshot).to_arrow_batch_reader()
    return reader.schema, reader


def open_duckdb(location: str, snapshot: int | None, store: Store = None) -> Opened:
    """By DuckDB's extension `iceberg`, of the newest metadata."""
    at = "" if snapshot is None else f", snapshot_from_id => {int(snapshot)}"
    connection = duckdb_with_iceberg()
    if store is not None:
        _open_store(connection, store)
    found = connection.execute(f"SELECT * FROM iceberg_scan({_text(location)}{at})")
    to_reader = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch
    reader = to_reader(_BATCH_ROWS)
    return reader.schema, reader


def duckdb_with_iceberg() -> Any:  # noqa: ANN401 - DuckDB's connection
    """A connection; the extensions are those of the wheels duckdb-extension-*, else installed ones. Fetches nothing."""
    connection = importlib.import_module("duckdb").connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in _EXTENSIONS:
        _load(connection, name)
    return connection


READERS: dict[str, Callable[[str, int | None, Store], Opened]] = {
    "pypaimon": open_pypaimon,
    "pypaimon-rust": open_rust,
    "duckdb": open_duckdb,
    "pyiceberg": open_pyiceberg,
}


# ---- object stores -------------------------------------------------------------------------------------------


def _s3_options(store: dict[str, Any], names: tuple[str, str, str]) -> dict[str, str]:
    """With these names of key, secret and token; what is not given is left out."""
    given = {"s3.endpoint": store["endpoint"], "s3.region": store["region"]}
    keys = {} if store["anonymous"] else dict(zip(names, map(os.environ.get, _CREDENTIALS), strict=True))
    given |= {f"s3.{name}": value for name, value in keys.items()}
    return {name: value for name, value in given.items() if value}


def _paimon_options(store: Store) -> tuple[dict[str, str], ...]:
    if store is None:
        return ()
    options = _s3_options(store, ("access-key", "secret-key", "session-token"))
    return ({**options, "s3.path-style-access": str(store["path_style"]).lower()},)


def _open_store(connection: Any, store: dict[str, Any]) -> None:  # noqa: ANN401 - DuckDB's connection
    _load(connection, "httpfs")
    names = ("KEY_ID", "SECRET", "SESSION_TOKEN")
    options = _s3_options(store, names)
    scheme, _, host = options.get("s3.endpoint", "").partition("://")
    words = {name: options[f"s3.{name}"] for name in names if f"s3.{name}" in options}
    words |= {"REGION": options["s3.region"]} if "s3.region" in options else {}
    words |= {"ENDPOINT": host} if host else {}
    words["URL_STYLE"] = "path" if store["path_style"] and host else "vhost"
    listed = ", ".join(f"{name} {_text(value)}" for name, value in words.items())
    connection.execute(f"CREATE SECRET (TYPE s3, USE_SSL {str(scheme != 'http').lower()}, {listed})")


def _files(location: str, store: Store) -> tuple[Any, str]:
    """A file system of Arrow, and the folder in it."""
    fs = importlib.import_module("pyarrow.fs")
    if store is None:
        return fs.LocalFileSystem(), location
    options = _s3_options(store, ("access_key", "secret_key", "session_token"))
    words = {name.removeprefix("s3."): value for name, value in options.items()}
    if "endpoint" in words:
        words["endpoint_override"] = words.pop("endpoint")
    virtual = {"force_virtual_addressing": not store["path_style"]}
    return fs.S3FileSystem(anonymous=store["anonymous"], **words, **virtual), location.partition("://")[2]


def _read(files: Any, path: str) -> bytes:  # noqa: ANN401 - Arrow's file system
    with files.open_input_stream(path) as stream:
        return bytes(stream.read())


# ---- parts ---------------------------------------------------------------------------------------------------


def _load(connection: Any, name: str) -> None:  # noqa: ANN401 - DuckDB's connection
    try:
        module = importlib.import_module(f"duckdb_extension_{name}")
    except ImportError:
        connection.execute(f"LOAD {name}")
        return
    folder = Path(str(module.__file__)).parent
    connection.execute(f"LOAD {_text(str(next(folder.glob('extensions/*/*.duckdb_extension'))))}")


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
    _, reader, location, snapshot, *store = words
    try:
        _write(READERS[reader](location, int(snapshot), json.loads(store[0]) if store else None), out)
    except BaseException as error:  # noqa: BLE001 - a process edge: every failure is an answer
        first_line = (str(error).strip().splitlines() or [""])[0]
        sys.stderr.write(f"\n{type(error).__name__}: {first_line}\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(_main(sys.argv[1:]))  # threads of a reader must not hold the end
