"""ORC and Avro files of other engines are read through Parquet copies with the same rows at the same positions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyroaring import BitMap

from tablestore_engine.errors import Unsupported
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.store.files import parquet_copies
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.parquet_copies import as_parquet
from tablestore_engine.store.files.stored_file import StoredFile
from tests.garbage import collect_young
from tests.unit.store.table_world import make_table, put, row

COLUMNS = pa.schema([
    ("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(12, 3)), ("day", pa.date32()),
    ("tags", pa.list_(pa.string())), ("counts", pa.map_(pa.string(), pa.int32())),
])  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "name": None if number % 7 == 3 else f"n{number}",
        "price": Decimal(number) / 8,
        "day": dt.date(1900 + number, 1, 1),
        "tags": ["a", None, str(number)][: number % 4],
        "counts": [("x", number), ("y", None)][: number % 3],
    }
    for number in range(100)
]
AVRO = {
    "type": "record", "name": "r", "fields": [
        {"name": "id", "type": ["null", "long"]}, {"name": "name", "type": ["null", "string"]},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
        {"name": "counts", "type": ["null", {"type": "map", "values": ["null", "int"]}]},
    ],
}  # fmt: skip


def write_orc(path: Path, rows: list[dict[str, Any]]) -> None:
    """As Arrow writes it, small stripes."""
    orc.write_table(pa.Table.from_pylist(rows, COLUMNS), path, stripe_size=1024, batch_size=16)


def write_avro(path: Path, rows: list[dict[str, Any]], schema: Any = AVRO) -> None:
    """As Java names logical types."""
    with path.open("wb") as out:
        fastavro.writer(
            out, fastavro.parse_schema(schema), [{**one, "counts": dict(one["counts"])} for one in rows]
        )


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], None]] = {"orc": write_orc, "avro": write_avro}


def stored(path: Path, schema: TableSchema, rows: int) -> StoredFile:
    """A file of an append table."""
    table = make_table(
        path.parent / f"of-{path.name}", keys=(), columns={"id": "BIGINT", "name": "STRING", "n": "INT"}
    )
    put(table, row(1))
    [file] = table.plan_scan().files
    return replace(
        file, path=str(path), schema=schema, meta=replace(file.meta, file_name=path.name, row_count=rows)
    )


@pytest.mark.parametrize("name", WRITERS)
def test_rows_and_positions_are_those_of_the_file(tmp_path: Path, name: str) -> None:
    """Every type, a vector over positions, some columns, and a file that was read before."""
    path = tmp_path / f"data-1.{name}"
    WRITERS[name](path, ROWS)
    reader = FileReader(LocalFileIO(str(tmp_path)), new_schema(COLUMNS))
    file = stored(path, reader.schema, len(ROWS))
    assert reader.read_visible(file).to_pylist() == ROWS
    hidden = replace(file, deleted=BitMap([0, 50, 99]))
    assert reader.read_visible(hidden, ["id"])["id"].to_pylist() == [
        n for n in range(100) if n not in (0, 50, 99)
    ]
    path.unlink()
    assert reader.read_visible(file, ["name"])["name"].to_pylist() == [one["name"] for one in ROWS]


def test_rows_that_their_schema_lets_be_null_are_read(tmp_path: Path) -> None:
    """Paimon up to 0.9 writes Avro files of a record or NULL."""
    write_avro(tmp_path / "data-1.avro", ROWS, ["null", AVRO])
    reader = FileReader(LocalFileIO(str(tmp_path)), new_schema(COLUMNS))
    assert reader.read_visible(stored(tmp_path / "data-1.avro", reader.schema, len(ROWS))).to_pylist() == ROWS


@pytest.mark.parametrize("name", WRITERS)
def test_file_without_rows_has_its_columns(tmp_path: Path, name: str) -> None:
    """Not an error: another engine may leave one."""
    path = tmp_path / f"data-1.{name}"
    WRITERS[name](path, [])
    reader = FileReader(LocalFileIO(str(tmp_path)), new_schema(COLUMNS))
    assert reader.read_visible(stored(path, reader.schema, 0)).num_rows == 0


@pytest.mark.parametrize("name", WRITERS)
def test_damage_and_values_that_cannot_be_read_are_named(tmp_path: Path, name: str) -> None:
    """TS1377 with the file; nothing is read in part."""
    path = tmp_path / f"data-1.{name}"
    WRITERS[name](path, ROWS)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    reader = FileReader(LocalFileIO(str(tmp_path)), new_schema(COLUMNS))
    with pytest.raises(Unsupported, match=f"TS1377.*data-1.{name}"):
        reader.read_visible(stored(path, reader.schema, len(ROWS)))


def test_timestamps_of_orc_are_refused(tmp_path: Path) -> None:
    """Arrow reads some of them a second late, at any depth."""
    times = pa.schema([("id", pa.int64()), ("at", pa.list_(pa.timestamp("us")))])
    path = tmp_path / "data-1.orc"
    orc.write_table(pa.table({"id": [1], "at": [[dt.datetime(2026, 1, 1)]]}, schema=times), path)  # noqa: DTZ001
    reader = FileReader(LocalFileIO(str(tmp_path)), new_schema(times))
    with pytest.raises(Unsupported, match="at is a timestamp"):
        reader.read_visible(stored(path, reader.schema, 1))


def test_copies_are_bounded_and_stay_while_a_plan_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest goes when all are too large; a plan that names it keeps its file."""
    monkeypatch.setattr(parquet_copies, "BYTES_MAX", 1)
    fileio = LocalFileIO(str(tmp_path))
    schema = new_schema(COLUMNS)
    files = []
    for number in range(3):
        path = tmp_path / f"data-{number}.orc"
        write_orc(path, ROWS)
        files.append(stored(path, schema, len(ROWS)))
    planned = as_parquet(fileio, files[0])
    as_parquet(fileio, files[1])
    as_parquet(fileio, files[2])
    collect_young()
    assert pq.read_metadata(planned.path).num_rows == len(ROWS)
    place = planned.path
    del planned
    collect_young()
    assert not Path(place).exists()
