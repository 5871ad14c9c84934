"""INT96 timestamps, which Java writes for more than 6 digits: exact, or refused by TS1164; never wrapped around."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.errors import Unsupported
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.store.files.int96_columns import fine_columns
from tablestore_engine.store.files.parquet_input import ParquetInput

NANOS, MICROS = pa.timestamp("ns"), pa.timestamp("us")
FINE = new_schema(pa.schema({"fine": NANOS, "deep": pa.list_(NANOS), "micros": MICROS}))
YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds


def _stored(folder: Path, rows: pa.Table) -> str:
    path = str(folder / "rows.parquet")
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True, store_schema=False, row_group_size=4)
    return path


def _ways(path: str, schema: TableSchema) -> list[pa.Table]:
    """Whole, by row groups, and in parts of a row group."""
    with ParquetInput(LocalFileIO("/"), path, schema=schema) as file:
        groups = range(file.metadata.num_row_groups)
        return [
            file.read(None),
            pa.concat_tables([file.read(None, [one]) for one in groups]),
            pa.concat_tables(file.read_portions(None, 3, groups)),
        ]


def test_values_of_both_units_are_exact(tmp_path: Path) -> None:
    """Random nanoseconds of all years that Arrow has, microseconds of years 1 to 9999, beside other columns."""
    chance = np.random.default_rng(41)
    nanos = [-(2**63) + 1, 2**63 - 1, -1, 0, None, *chance.integers(-(2**63) + 1, 2**63 - 1, 20).tolist()]
    micros = [YEAR_1, YEAR_9999, -1, None, 0, *chance.integers(YEAR_1, YEAR_9999, 20).tolist()]
    rows = pa.table(
        {
            "id": range(25),
            "fine": pa.array(nanos, NANOS),
            "micros": pa.array(micros, MICROS),
            "deep": pa.array(
                [None if one is None else [{"at": one}] for one in nanos], pa.list_(pa.struct({"at": NANOS}))
            ),
        }
    )
    path = _stored(tmp_path, rows)
    for found in _ways(path, FINE):
        assert found.cast(rows.schema).equals(rows)
        assert (found.schema.field("fine").type, found.schema.field("micros").type) == (NANOS, MICROS)
    with ParquetInput(LocalFileIO("/"), path, schema=FINE) as file:
        some = rows.select(["micros", "id"])
        assert file.read(["micros", "id"]).cast(some.schema) == some
        assert file.read(["id"]).column_names == ["id"]


@pytest.mark.parametrize("micros", [YEAR_1, YEAR_9999, (2**63 - 1) // 1000 + 1])
def test_a_value_beyond_nanoseconds_is_refused(tmp_path: Path, micros: int) -> None:
    """Arrow alone wraps it around, which is seen here; nested ones too."""
    array = pa.array([0, micros], MICROS)
    nested = pa.StructArray.from_arrays([array], ["at"])
    for column in ({"fine": array}, {"deep": nested}):
        path = _stored(tmp_path, pa.table(column))
        assert pq.read_table(path).num_rows == 2
        with (
            ParquetInput(LocalFileIO("/"), path, schema=FINE) as file,
            pytest.raises(Unsupported, match="TS1164"),
        ):
            file.read(None)


def test_nanoseconds_in_a_column_of_microseconds_are_refused(tmp_path: Path) -> None:
    """They would be cut off."""
    path = _stored(tmp_path, pa.table({"micros": pa.array([1000, 1001], NANOS)}))
    with ParquetInput(LocalFileIO("/"), path) as file, pytest.raises(Unsupported, match="TS1164"):
        list(file.read_portions(None, 1, [0]))


def test_fine_columns_are_those_of_more_than_six_digits() -> None:
    """At any depth, and their key columns."""
    fields = pa.schema({"a": NANOS, "b": MICROS, "c": pa.list_(NANOS)})
    assert fine_columns(new_schema(fields)) == {"a", "c", "_KEY_a", "_KEY_c"}


def test_keys_in_nanoseconds_are_written_and_found(tmp_path: Path) -> None:
    """Keys that differ in nanoseconds alone stay two rows, are updated one by one, and come back as they were."""
    zoned = pa.timestamp("ns", "UTC")
    fields = [("z", zoned), ("u", MICROS), ("v", pa.int64())]
    schema = pa.schema([pa.field("t", NANOS, nullable=False), *fields])
    table = Engine(str(tmp_path)).create_table("demo.t", schema, primary_key="t", options={"bucket": 3})

    def rows(keys: list[int], value: int) -> pa.Table:
        at, count = pa.array(keys, pa.int64()), len(keys)
        columns = [at.cast(NANOS), at.cast(zoned), pa.array([YEAR_9999] * count, MICROS), [value] * count]
        return pa.table(columns, schema=schema)

    keys = [-(2**63) + 1, -2, -1, 0, 1, 999, 1000, 2**63 - 1]
    table.upsert(rows(keys, 1))
    table.upsert(rows([-1, 999], 2))
    table.compact()
    found = table.scan().to_arrow().sort_by("t")
    assert found.schema.equals(schema)
    assert found.column("t").cast(pa.int64()).to_pylist() == keys
    assert found.column("z").cast(pa.int64()).to_pylist() == keys
    assert found.column("v").to_pylist() == [2 if key in (-1, 999) else 1 for key in keys]
    assert set(found.column("u").cast(pa.int64()).to_pylist()) == {YEAR_9999}
    assert table.verify() == ()
