"""Each place of the Python API that takes names of columns takes them in any case, as SQL does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, NotFound, Table, TableSpec, WriteSpec

SPEC = TableSpec(
    primary_key=("id", "DT"),
    partition_by=("dt",),
    options={"bucket": "2", "bucket-key": "id", "sequence.field": "SEQ"},
    not_null=("NAME",),
    column_comments={"name": "who"},
)
ROWS = pa.table({"Id": [1], "Dt": ["x"], "Seq": [1], "Name": ["a"]})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table whose columns are Id, Dt, Seq and Name, made by names in other cases."""
    engine = Engine(str(tmp_path))
    engine.write("demo.t", ROWS, WriteSpec(SPEC))
    return engine.table("demo.t")


def test_spec_names_columns_in_any_case(table: Table) -> None:
    """The schema has them as the columns are written, also those that options name."""
    schema = table.schema
    assert (schema.primary_keys, schema.partition_keys) == (("Id", "Dt"), ("Dt",))
    assert (schema.options["bucket-key"], schema.options["sequence.field"]) == ("Id", "Seq")
    assert not schema.field("Name").type.nullable
    assert schema.field("Name").description == "who"


READS: dict[str, Callable[[Table, str], list[str]]] = {
    "scan": lambda table, name: table.scan(columns=[name]).to_arrow().column_names,
    "scan batches": lambda table, name: next(table.scan(columns=[name], limit=1).to_batches()).schema.names,
    "change_batches": lambda table, name: next(iter(table.change_batches(0, columns=[name]))).schema.names[
        :1
    ],
    "stream": lambda table, name: next(
        iter(table.stream("from-snapshot", snapshot_id=1, until=1, columns=[name]))
    ).schema.names[:1],
    "system_table": lambda table, name: table.system_table("audit_log", columns=[name]).column_names,
    "analyze": lambda table, name: list(table.analyze(columns=[name]).columns),  # type: ignore[union-attr] # it has rows
    "filter": lambda table, name: (
        table.scan(filter=f"{name} = 'a'", columns=["Name"]).to_arrow().column_names
    ),
}


@pytest.mark.parametrize("read", READS)
def test_reads_name_columns_in_any_case(table: Table, read: str) -> None:
    """The result has the table's spelling; a name that the table lacks is refused."""
    for name in ("Name", "name", "NAME"):
        assert READS[read](table, name) == ["Name"], name
    with pytest.raises((NotFound, ValueError)):
        READS[read](table, "named")


def test_each_method_with_columns_is_in_the_table() -> None:
    """A method of Table that takes `columns` is one of those above."""
    taken = {
        name
        for name, method in inspect.getmembers(Table, callable)
        if not name.startswith("_") and "columns" in inspect.signature(method).parameters
    }
    assert taken == {"analyze", "scan", "change_batches", "stream", "system_table"}


def test_scan_with_columns_that_differ_in_case_is_refused(table: Table) -> None:
    """The same column twice, in two spellings; and a limit beyond 64 bits is no limit."""
    with pytest.raises(ValueError, match="TS1569"):
        table.scan(columns=["name", "NAME"])
    assert table.scan(limit=10**20).to_arrow().num_rows == 1
