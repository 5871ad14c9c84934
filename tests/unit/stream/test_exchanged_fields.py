"""Columns and fields whose name another one has taken, by ids at every depth."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dbt.adapters.tablestore.inputs.exchanged_columns import _is_in
from tablestore_engine.api import Engine, Table
from tablestore_engine.stream.changes_input import plan_changes

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.struct([("b", pa.string())])), ("a.b", pa.string())])


def exchanged(table: Table, position: str | None) -> tuple[str, ...]:
    """Names since the position."""
    return plan_changes(table.store, position).exchanged


def test_names_with_a_dot_are_no_fields_of_structs(tmp_path: Path) -> None:
    """A column `a.b` beside a field b of a: the one is not the other; each that is made again is noticed."""
    engine = Engine(str(tmp_path))
    table = engine.create_table("demo.t", SCHEMA, primary_key="id")
    table.upsert([{"id": 1, "a": {"b": "x"}, "a.b": "y"}])
    step = plan_changes(table.store, None).step
    assert step is not None
    table.upsert([{"id": 2, "a": {"b": "x"}, "a.b": "y"}])
    assert exchanged(table, step.after) == ()
    table.drop_column("a.b")
    table.add_column("a.b", "STRING")
    table.upsert([{"id": 3, "a": {"b": "x"}, "a.b": "y"}])
    assert exchanged(table, step.after) == ("a.b",)


def test_a_column_is_found_by_its_own_name_or_by_a_field_in_it() -> None:
    """Names with dots included; a longer name is another."""
    assert all(_is_in(path, {"a.b"}) for path in ("a.b", "a.b.c"))
    assert not any(_is_in(path, {"a.b"}) for path in ("a", "a.bc"))
