"""Rows of ORC and Avro data files, as they lie in the file, with the columns and types of a Parquet file of ours.

CHANGE     which formats of data files are read
Steps      open → batches of the format's reader → columns by name, in the types that the file's schema says
INVARIANT  a value that a reader cannot hold is an error with the file's name, never another value.
LIMIT      ORC without timestamps: of a writer whose zone is not UTC, Arrow 26 reads those near 1970 a second late, and
           none before 1677 or after 2262. Avro: no year after 9999.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tablestore_engine.errors import TablestoreError, Unsupported
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import append_schema, key_value_schema
from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.layout import file_format
from tablestore_engine.format.schema import KEY_PREFIX, TableSchema

PARQUET = "parquet"
_AVRO_ROWS = 20_000  # Python objects at a time


def is_parquet(path: str) -> bool:
    """By its name, as every reader of the format decides."""
    return file_format(path) == PARQUET


def full_schema(schema: TableSchema) -> pa.Schema:
    """All columns that a data file of this schema may have, in their order."""
    return key_value_schema(schema) if schema.is_keyed else append_schema(schema)


def read_stored(fileio: FileIO, path: str, schema: TableSchema) -> Iterator[pa.Table]:
    """All rows of a file that is not Parquet, in order; no table without rows.

    `schema`: the one that the file was written with. Columns: those of full_schema that the file has. Raises
    Unsupported TS1377, NotFound TS1201.
    """
    with _explained(path), fileio.open_input(path) as source:
        yield from READERS[file_format(path)](source, schema)


def _read_orc(source: pa.NativeFile, schema: TableSchema) -> Iterator[pa.Table]:
    import pyarrow.compute as pc  # noqa: PLC0415 -- few tables need either, and both take long to load
    from pyarrow import orc  # noqa: PLC0415

    file = orc.ORCFile(source)
    stored: pa.Schema = file.schema
    wanted = [field for field in full_schema(schema) if field.name in stored.names]
    padded = _padded_columns(schema)
    for number in range(file.nstripes):
        batch = file.read_stripe(number, [field.name for field in wanted])
        rows = pa.Table.from_batches([batch]).select([field.name for field in wanted])
        for at, field in enumerate(wanted):
            if field.name in padded:
                rows = rows.set_column(at, field.name, pc.utf8_rtrim(rows.column(at), " "))
        if rows.num_rows:
            yield rows.cast(pa.schema(wanted))


def _padded_columns(schema: TableSchema) -> frozenset[str]:
    """CHAR columns: ORC pads them with blanks, and readers of it take these away."""
    for field in schema.fields:
        if _has(field.type, *TIMESTAMP_ROOTS):
            raise ValueError(f"{field.name} is a timestamp: Arrow reads some of ORC a second late")
        if not field.type.is_atomic and _has(field.type, "CHAR"):
            raise ValueError(f"{field.name} has CHAR inside: ORC pads it with blanks")
    names = [field.name for field in schema.fields if field.type.root == "CHAR"]
    return frozenset([*names, *(KEY_PREFIX + name for name in names)])


def _read_avro(source: pa.NativeFile, schema: TableSchema) -> Iterator[pa.Table]:
    import fastavro  # noqa: PLC0415 -- as for ORC

    reader = fastavro.reader(source)
    names = _names(reader.writer_schema)
    wanted = pa.schema([field for field in full_schema(schema) if field.name in names])
    types = {field.name: field.type for field in schema.fields}
    prefix = {KEY_PREFIX + name: type_ for name, type_ in types.items()}
    shaped = {
        name: one
        for name, one in {**types, **prefix}.items()
        if name in names and _has(one, "MAP", "MULTISET")
    }
    rows: list[Mapping[str, Any]] = []
    for row in reader:
        assert isinstance(row, dict)
        for name, type_ in shaped.items():
            row[name] = _shaped(row[name], type_)
        rows.append(row)
        if len(rows) == _AVRO_ROWS:
            yield pa.Table.from_pylist(rows, wanted)
            rows = []
    if rows:
        yield pa.Table.from_pylist(rows, wanted)


def _names(written: Any) -> frozenset[str]:  # noqa: ANN401 -- a parsed Avro schema
    """Of the columns: the rows are a record, which Paimon up to 0.9 lets be NULL."""
    record = next(one for one in written if one != "null") if isinstance(written, list) else written
    return frozenset(one["name"] for one in record["fields"])


def _has(type_: DataType, *roots: str) -> bool:
    return any(one.root in roots for one in type_.walk())


def _shaped(value: Any, type_: DataType) -> Any:  # noqa: ANN401 -- values of any column
    """Maps as pairs: Avro has them with texts as keys alone, others are lists of records."""
    if value is None:
        return None
    if type_.root in ("MAP", "MULTISET"):
        pairs = value.items() if isinstance(value, dict) else [(one["key"], one["value"]) for one in value]
        key, inner = (type_.key, type_.value) if type_.root == "MAP" else (type_.element, None)
        return [
            (key and _shaped(one, key), _shaped(other, inner) if inner else other) for one, other in pairs
        ]
    if type_.root == "ARRAY" and type_.element is not None:
        return [_shaped(one, type_.element) for one in value]
    if type_.root == "ROW":
        return {field.name: _shaped(value[field.name], field.type) for field in type_.fields}
    return value


READERS: Mapping[str, Callable[[pa.NativeFile, TableSchema], Iterator[pa.Table]]] = {
    "orc": _read_orc,
    "avro": _read_avro,
}


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except TablestoreError:
        raise
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError, EOFError) as error:
        raise Unsupported(
            "TS1377",
            f"the data file {path} cannot be read",
            why=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no text'}",
            fix="compact the table with file.format=parquet in the engine that wrote it",
        ) from error
