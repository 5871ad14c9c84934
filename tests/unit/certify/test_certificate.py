"""A reader that is wrong is reported, with what is wrong; one that is right is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine, FixRequest, Table, TableSpec, WriteSpec
from tablestore_engine.certify.certificate import ReaderResult
from tablestore_engine.certify.reader_process import READERS, ReaderEnvironment
from tests.doses import cases
from tests.unit.certify.planted import plant

Change = Callable[[pa.Table], pa.Table]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "amount": pa.array([0.0, 1.5, float("nan"), None], pa.float64()),
        "at": pa.array([1, 2, None, 4_000_000_000], pa.timestamp("us")),
        "small": pa.array([1, None, 3, 4], pa.int32()),
        "tags": pa.array([[], ["a", None], None, ["b"]], pa.list_(pa.string())),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """ROWS, and a second snapshot without the last one."""
    engine = Engine(str(tmp_path / "warehouse"))
    engine.write("demo.t", ROWS, WriteSpec(table=TableSpec(primary_key=("id",))))
    engine.table("demo.t").delete("id = 4")
    return engine.table("demo.t")


def _with(name: str, values: list[object], type_: pa.DataType | None = None) -> Change:
    at = ROWS.schema.get_field_index(name)
    column = pa.array(values, type_ or ROWS.schema.field(name).type)
    return lambda rows: rows.set_column(at, name, column)


SAME: dict[str, Change] = {
    "as it is": lambda rows: rows,
    "other order": lambda rows: rows.take([2, 0, 3, 1]),
    "wider": lambda rows: rows.set_column(3, "small", rows["small"].cast(pa.int64())),
    "other unit": lambda rows: rows.set_column(2, "at", rows["at"].cast(pa.timestamp("ns"))),
    "dictionary": lambda rows: rows.set_column(1, "amount", rows["amount"].dictionary_encode()),
    "large list": lambda rows: rows.set_column(
        4, "tags", rows["tags"].cast(pa.large_list(pa.large_string()))
    ),
}
WRONG: dict[str, tuple[Change, str]] = {
    "one value": (_with("id", [1, 2, 3, 5]), "values of id"),
    "negative zero": (_with("amount", [-0.0, 1.5, float("nan"), None]), "values of amount"),
    "NULL for NaN": (_with("amount", [0.0, 1.5, None, None]), "values of amount"),
    "a nanosecond": (
        _with("at", [1000, 2000, None, 4_000_000_000_001], pa.timestamp("ns")),
        "a value of column at",
    ),
    "empty for NULL": (_with("tags", [[], ["a", None], [], ["b"]]), "values of tags"),
    "order in a list": (_with("tags", [[], [None, "a"], None, ["b"]]), "values of tags"),
    "values in other rows": (_with("small", [None, 1, 3, 4]), "the combination of values in rows"),
    "a row lacks": (lambda rows: rows.slice(1), "3 rows instead of 4"),
    "a row twice": (lambda rows: pa.concat_tables([rows, rows.slice(3)]), "5 rows instead of 4"),
    "a column lacks": (lambda rows: rows.drop_columns(["small"]), "no column small"),
    "a column more": (lambda rows: rows.append_column("more", rows["id"]), "a column more too much"),
    "order of columns": (lambda rows: rows.select(ROWS.column_names[::-1]), "columns in the order tags"),
    "type": (
        lambda rows: rows.set_column(3, "small", rows["small"].cast(pa.string())),
        "column small as string instead of int32",
    ),
    "narrower": (
        lambda rows: rows.set_column(0, "id", pc.cast(rows["id"], pa.int32())),
        "column id as int32 instead of int64",
    ),
    "zone": (
        lambda rows: rows.set_column(2, "at", rows["at"].cast(pa.timestamp("us", "UTC"))),
        "column at as timestamp[us, tz=UTC]",
    ),
}


def result(
    table: Table, tmp_path: Path, patch: pytest.MonkeyPatch, rows: pa.Table, end: str = "return"
) -> ReaderResult:
    """Of the planted reader at the first snapshot; clean only when it is OK."""
    plant(tmp_path, patch, rows, end)
    found = table.certify(["pypaimon"], snapshot=1)
    assert (found.snapshot_id, found.rows) == (1, 4)
    [one] = found.readers
    assert found.is_clean == (one.status == "OK")
    assert (one.reader, one.version) == ("pypaimon", "9.9")
    return one


@pytest.mark.parametrize("kind", SAME)
def test_an_equal_table_is_ok(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Order of rows, width, unit and layout do not count."""
    found = result(table, tmp_path, monkeypatch, SAME[kind](ROWS))
    assert (found.status, found.rows, found.details) == ("OK", 4, ())


@pytest.mark.parametrize("kind", cases(WRONG, 5))
def test_a_wrong_reader_differs(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Each kind of fault is found and named."""
    change, expected = WRONG[kind]
    found = result(table, tmp_path, monkeypatch, change(ROWS))
    assert found.status == "differs"
    assert any(one.startswith(expected) for one in found.details), found.details


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("raise OSError('no such file: data-1')", "OSError: no such file: data-1"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "it was ended by signal 11"),
        ("os._exit(7)", "it ended with status 7"),
    ],
)
def test_a_reader_that_fails_is_refused(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, reason: str
) -> None:
    """After its last row too: rows that came are not the table."""
    found = result(table, tmp_path, monkeypatch, ROWS, end)
    assert found.status == "refused"
    assert reason in found.details[0]


def test_readers_are_those_of_the_environment(table: Table) -> None:
    """By default all; those that are missing are listed, and Iceberg's need the option."""
    found = table.certify()
    by_name = {one.reader: one for one in found.readers}
    assert found.is_clean
    assert (by_name["pypaimon-rust"].status, by_name["pypaimon-rust"].rows) == ("OK", 3)
    assert by_name["pyiceberg"].status == "not installed"
    assert by_name["duckdb"].status == "refused"
    assert "metadata.iceberg.storage" in by_name["duckdb"].details[0]
    assert not table.certify(["duckdb"]).is_clean


def test_a_table_that_no_reader_could_read_is_not_clean(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was compared: the only reader needs Iceberg metadata, which the table does not have."""
    versions = {**dict.fromkeys(READERS), "duckdb": "1.5.5"}
    monkeypatch.setattr(ReaderEnvironment, "versions", lambda _: versions)
    assert not table.certify().is_clean


def test_a_reader_that_cannot_be_asked_is_an_error(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown, not installed, no interpreter, none at all."""
    for readers, python, code in (
        (["sqlite"], None, "TS1581"),
        ([], None, "TS1581"),
        (["pypaimon-rust", "pypaimon"], None, "TS1582"),
        (None, str(tmp_path / "python"), "TS1583"),
        (None, "/bin/false", "TS1583"),
    ):
        with pytest.raises(FixRequest, match=code):
            table.certify(readers, python=python)
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(FixRequest, match="no reader is installed"):
        table.certify(python=str(bare))
