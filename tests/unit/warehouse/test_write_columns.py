"""Columns of rows that Python users write: a typing error never empties a column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, OnSchemaChange, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import FixRequest

KEYED = TableSpec(primary_key=("id",))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A keyed table with one row."""
    with Engine(str(tmp_path)) as opened:
        opened.create_database("d")
        opened.write("d.t", pa.table({"id": [1], "amount": [10], "name": ["a"]}), WriteSpec(table=KEYED))
        yield opened


def _rows(engine: Engine) -> list[dict[str, object]]:
    return list(engine.table("d.t").scan().to_arrow().to_pylist())


def test_an_unknown_column_is_refused(engine: Engine) -> None:
    """`amuont` is no column: the nearest one is named, the row stays; on request it is left out, as in SQL before."""
    rows = pa.table({"id": [1], "amuont": [20], "name": ["b"]})
    with pytest.raises(FixRequest, match="'amount'") as refused:
        engine.write("d.t", rows, WriteSpec())
    assert refused.value.code == "TS1062"
    assert _rows(engine) == [{"id": 1, "amount": 10, "name": "a"}]
    engine.write("d.t", rows, WriteSpec(on_schema_change=OnSchemaChange.IGNORE))
    assert _rows(engine) == [{"id": 1, "amount": None, "name": "b"}]


def test_a_missing_column_of_an_upsert_is_refused(engine: Engine) -> None:
    """An upsert replaces whole rows: a column that is left out would become NULL; `missing_columns` asks for that."""
    rows = pa.table({"ID": [1], "name": ["b"]})
    with pytest.raises(FixRequest, match="amount") as refused:
        engine.table("d.t").write(rows)
    assert refused.value.code == "TS1063"
    assert _rows(engine) == [{"id": 1, "amount": 10, "name": "a"}]
    engine.table("d.t").write(rows, WriteSpec(missing_columns="null"))
    assert _rows(engine) == [{"id": 1, "amount": None, "name": "b"}]


def test_rows_that_only_delete_need_their_key(engine: Engine) -> None:
    """A delete has no values to give."""
    engine.write("d.t", pa.table({"id": [1], "_ROW_KIND": [3]}), WriteSpec())
    assert _rows(engine) == []


def test_appends_and_overwrites_may_leave_columns_out(engine: Engine) -> None:
    """Nothing is replaced by them column by column; a new table has the columns of its first rows."""
    whole = WriteSpec(mode=WriteMode.OVERWRITE_TABLE)
    engine.write("d.t", pa.table({"id": [2], "name": ["b"]}), whole)
    assert _rows(engine) == [{"id": 2, "amount": None, "name": "b"}]
    append = WriteSpec(mode=WriteMode.APPEND)
    engine.write("d.log", pa.table({"a": [1], "b": [2]}), append)
    engine.write("d.log", pa.table({"a": [2]}), append)
    with pytest.raises(FixRequest, match="TS1062"):
        engine.write("d.log", pa.table({"a": [2], "c": [3]}), append)


def test_words_of_missing_columns() -> None:
    """Anything but refuse and null is refused."""
    with pytest.raises(FixRequest, match="missing_columns"):
        WriteSpec(missing_columns="fill")
