"""What a scan gives: every library the same rows, the state that was asked for, and nothing silently else."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixRequest, NotFound, Table, WriteSpec

SCHEMA = pa.schema({"id": pa.int64(), "n": pa.int64(), "s": pa.string()})
ROWS = [{"id": 1, "n": 2**60 + 1, "s": "a"}, {"id": 2, "n": None, "s": None}, {"id": 3, "n": 3, "s": "c"}]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three rows in the first snapshot, tagged; one row more in the second."""
    table = Engine(str(tmp_path)).create_table("demo.t", SCHEMA, primary_key="id")
    table.upsert(ROWS)
    table.tag("first")
    table.upsert([{"id": 4, "n": 4, "s": "d"}])
    return table


def test_scan_gives_each_library_the_same_rows(table: Table) -> None:
    """Large integers beside NULL stay exact; a relation of DuckDB can be read twice."""
    scan = table.scan(columns=["id", "n"], filter="id <= 3")
    expected = [(row["id"], row["n"]) for row in ROWS]
    assert [tuple(row.values()) for row in scan.to_arrow().to_pylist()] == expected
    assert scan.to_polars().rows() == expected
    assert pl.DataFrame(scan).rows() == expected
    frame = scan.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert [(i, None if pd.isna(n) else int(n)) for i, n in frame.itertuples(index=False)] == expected
    relation = scan.to_duckdb()
    assert relation.fetchall() == relation.fetchall() == expected
    assert scan.to_duckdb(duckdb.connect()).fetchall() == expected
    assert duckdb.sql("select count(*) from scan").fetchall() == [(3,)]
    assert pa.table(scan).to_pylist() == scan.to_arrow().to_pylist()
    assert pa.RecordBatchReader.from_stream(scan).schema == scan.schema
    assert pa.Table.from_batches(scan.to_batches()).to_pylist() == scan.to_arrow().to_pylist()


def test_scan_states_and_limits(table: Table) -> None:
    """Snapshot, tag and time name a state; a limit is a maximum, and 0 gives columns without rows."""
    assert table.scan().to_arrow().num_rows == 4
    assert table.scan(snapshot=1).to_arrow().num_rows == table.scan(tag="first").to_arrow().num_rows == 3
    first, second = (one.time_millis for one in table.snapshots())
    assert table.scan(timestamp_ms=first).to_arrow().num_rows == (3 if first < second else 4)
    assert [table.scan(limit=n).to_arrow().num_rows for n in (0, 2, 4, 9)] == [0, 2, 4, 4]
    assert table.scan(limit=0).to_polars().columns == ["id", "n", "s"]
    with pytest.raises(NotFound):
        table.scan(snapshot=7)


def test_scan_of_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    """In each library."""
    scan = Engine(str(tmp_path)).create_table("demo.e", SCHEMA).scan(columns=["s"], filter="s = 'x'")
    assert scan.to_arrow().schema == scan.schema == pa.schema({"s": pa.string()})
    assert (scan.to_polars().columns, list(scan.to_pandas().columns)) == (["s"], ["s"])
    assert pa.table(scan).num_rows == 0


@pytest.mark.parametrize(
    "words", [{}, {"filter": "id < 15"}, {"limit": 12}, {"filter": "id < 15", "limit": 3}]
)
def test_scan_of_no_columns_counts_rows(tmp_path: Path, words: dict[str, Any]) -> None:
    """Over several files with deleted rows, the count is that of a scan with columns, in each form that has one."""
    with Engine(str(tmp_path)) as engine:
        engine.create_database("d")
        table = engine.create_table("d.t", pa.schema({"id": pa.int64()}), primary_key="id")
        for first in (0, 8, 16):
            table.upsert([{"id": first + one} for one in range(10)])
        table.delete("id = 3")
        expected = table.scan(**words).to_arrow().num_rows
        assert (
            expected == {None: 25, "id < 15": 14}[words.get("filter")]
            if "limit" not in words
            else words["limit"]
        )
        scan = table.scan(columns=[], **words)
        assert scan.to_arrow().num_rows == expected
        assert sum(batch.num_rows for batch in scan.to_batches()) == expected
        assert pa.table(scan).num_rows == expected
        assert len(scan.to_pandas()) == expected


def test_scan_after_the_schema_changed_has_one_schema(tmp_path: Path) -> None:
    """Files of the old and of the new columns give batches of one schema, as a stream demands."""
    engine = Engine(str(tmp_path))
    table = engine.create_table("demo.t", SCHEMA, primary_key="id")
    table.upsert(ROWS)
    more = pa.table({"id": [9], "n": [9], "s": ["z"], "more": [1.5]})
    table.write(more, WriteSpec(on_schema_change="append_new_columns"))
    assert pa.table(table.scan(filter="more is null or more > 1")).num_rows == 4
    assert table.scan(filter="more is null", limit=2).to_arrow()["more"].to_pylist() == [None, None]


def test_a_polars_expression_is_refused_with_what_to_do(table: Table) -> None:
    """TS1569 names the ways that a filter has, and where polars' own expression goes."""
    with pytest.raises(FixRequest, match="TS1569") as caught:
        table.scan(filter=pl.col("n") > 2)  # type: ignore[arg-type]
    assert ".to_polars().filter(" in str(caught.value)


def test_repr_says_what_it_is(table: Table, tmp_path: Path) -> None:
    """Short, and the arguments of a scan in it are those that were passed."""
    scan = table.scan(columns=["id"], filter="n > 2", limit=5)
    assert repr(scan) == "Scan('demo.t', snapshot=2, columns=['id'], filter='n > 2', limit=5)"
    assert repr(table.scan(snapshot=1)) == "Scan('demo.t', snapshot=1)"
    assert repr(table) == "Table('demo.t')"
    assert repr(Engine(str(tmp_path))) == f"Engine('{tmp_path}')"


@pytest.mark.parametrize(
    "request_",
    [
        {"columns": "id"}, {"columns": ["id", "id"]}, {"limit": -1}, {"limit": True}, {"limit": 1.5}, {"filter": 5},
        {"filter": [("id", "=", 1)]},
    ],
)  # fmt: skip
def test_scan_with_arguments_that_mean_nothing_is_refused(table: Table, request_: dict[str, object]) -> None:
    """TS1569, before anything is read."""
    with pytest.raises(FixRequest, match="TS1569"):
        table.scan(**request_)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [{"filter": "id = 1"}, {"limit": 1}])
def test_scan_for_spark_with_a_filter_is_refused(table: Table, words: dict[str, object]) -> None:
    """TS1569 without a JVM: the frame would not have it."""
    with pytest.raises(FixRequest, match="TS1569"):
        table.scan(**words).to_spark()  # type: ignore[arg-type]


def test_scan_without_duckdb_names_the_extra(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1567 says what to install."""

    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(FixRequest, match=r"(?s)TS1567.*dbt-tablestore\[duckdb\]"):
        table.scan().to_duckdb()
