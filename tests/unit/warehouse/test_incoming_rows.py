"""Rows as Python users give them: what becomes of them, and what is refused before anything is written."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, OnSchemaChange, Table, TableVersion, WriteMode, WriteSpec
from tablestore_engine.errors import FixData, FixRequest, TablestoreError

SCHEMA = pa.schema(
    [("id", pa.int64()), ("s", pa.string()), ("at", pa.timestamp("us")), ("clock", pa.time32("ms"))]
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """`d.t`, empty."""
    engine = Engine(str(tmp_path))
    engine.create_database("d")
    return engine.create_table("d.t", SCHEMA, primary_key=("id",))


ACCEPTED = {
    "polars time": (pl.DataFrame({"id": [1], "clock": [dt.time(1, 2, 3)]}), "clock", dt.time(1, 2, 3)),
    "pandas without values": (pd.DataFrame({"id": [1], "s": [None]}), "s", None),
    "polars without values": (pl.DataFrame({"id": [1], "s": [None]}), "s", None),
    "whole microseconds": (
        pa.table({"id": [1], "at": pa.array([1000], pa.timestamp("ns"))}),
        "at",
        dt.datetime(1970, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001 - a wall-clock column
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_compatible_rows_are_taken(table: Table, name: str) -> None:
    """Types that frames choose by themselves do not stand in the way when no value is lost."""
    rows, column, value = ACCEPTED[name]
    table.write(rows, WriteSpec(missing_columns="null"))
    assert table.scan(columns=[column]).to_arrow().column(0).to_pylist() == [value]


REFUSED = {
    "nanoseconds": (pa.table({"id": [1], "at": pa.array([1001], pa.timestamp("ns"))}), "TS1603"),
    "a column twice": (pa.table([[1], ["a"], ["b"]], names=["id", "s", "s"]), "TS1024"),
    "a column in two cases": (pa.table([[1], ["a"], ["b"]], names=["id", "s", "S"]), "TS1024"),
    "pandas column twice": (pd.DataFrame([[1, "a", "b"]], columns=["id", "s", "s"]), "TS1607"),
    "pandas values of two types": (pd.DataFrame({"id": [1, 2], "s": ["a", 3]}), "TS1607"),
    "unknown row kind": (pa.table({"id": [1], "_ROW_KIND": pa.array([7], pa.int8())}), "TS1606"),
    "row kind beyond a byte": (pa.table({"id": [1], "_ROW_KIND": [259]}), "TS1606"),
    "row kind as text": (pa.table({"id": [1], "_ROW_KIND": ["-D"]}), "TS1606"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_rows_are_refused_with_a_code(table: Table, name: str) -> None:
    """No error of Arrow or pandas reaches the user, nothing is guessed, and the table stays as it is."""
    rows, code = REFUSED[name]
    with pytest.raises(TablestoreError) as caught:
        table.write(rows, WriteSpec(missing_columns="null"))
    assert caught.value.code == code
    assert table.latest_snapshot_id() is None


def test_a_handle_hears_conditions_too(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """delete_when and checks go to Spark whether an engine or a table handle writes; they are never dropped."""

    class Asked(Exception):
        """Spark would have been started."""

    def ask(*_: object) -> None:
        raise Asked

    monkeypatch.setattr(type(table.warehouse), "resolver", property(ask))
    for spec in (WriteSpec(delete_when="s = 'x'"), WriteSpec(checks={"one": "id > 0"})):
        with pytest.raises(Asked):
            table.write(pa.table({"id": [1], "s": ["x"]}), spec)


def test_words_of_a_write_may_be_texts() -> None:
    """A text is the word, not something else that happens to compare unequal to all words."""
    spec = WriteSpec(mode="overwrite_table", on_schema_change="ignore")  # type: ignore[arg-type]
    assert spec.mode is WriteMode.OVERWRITE_TABLE
    assert spec == WriteSpec(mode=WriteMode.OVERWRITE_TABLE, on_schema_change=OnSchemaChange.IGNORE)


@pytest.mark.parametrize(
    "wrong", [{"mode": "replace"}, {"on_schema_change": "x"}, {"duplicates": "first"}, {"stage": ""}]
)
def test_unknown_words_are_refused(wrong: dict[str, str]) -> None:
    """TS1025 names what is wrong."""
    with pytest.raises(FixRequest, match="TS1025"):
        WriteSpec(**wrong)  # type: ignore[arg-type]


def test_a_version_names_one_state() -> None:
    """Two answers to one question are refused."""
    with pytest.raises(FixRequest, match="TS1015"):
        TableVersion(snapshot=1, tag="x")


def test_the_error_of_a_frame_says_why(table: Table) -> None:
    """The reason of Arrow is in the error."""
    with pytest.raises(FixData, match="Duplicate column names"):
        table.write(REFUSED["pandas column twice"][0])
