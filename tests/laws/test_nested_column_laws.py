"""Laws of nested columns: rows whose structs have other fields than the table's, against values moved by hand.

The generator makes the rows' type by editing a copy of the table's: fields go, come, change places and case. The oracle
knows from these edits, not from the types, what a write has to do, and moves plain Python values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.rows.conformed_rows import conform
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write.row_columns import check_columns
from tablestore_engine.warehouse.write.target_schema import plan_target
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec
from tests.doses import examples

Value = Any  # dicts, lists, pairs and numbers, as Arrow takes and gives them
KEYED = TableSpec(("id",))


@dataclass
class Shape:
    """A column's type, on both sides at once: `old` and `new` are its names there, None where the side lacks it."""

    kind: str  # int, list, map, struct
    old: str | None = None
    new: str | None = None
    inside: list[Shape] = field(default_factory=list)


def make_shape(random: Random, depth: int) -> Shape:
    """The same on both sides."""
    kind = random.choice(["int", "list", "map", "struct", "struct"]) if depth else "int"
    if kind == "struct":
        names = random.sample("abcdef", random.randint(1, 3))
        fields = [make_shape(random, depth - 1) for _ in names]
        for name, one in zip(names, fields, strict=True):
            one.old = one.new = name
        return Shape(kind, inside=fields)
    return Shape(kind, inside=[make_shape(random, depth - 1)] if kind != "int" else [])


def edit(shape: Shape, random: Random, edits: set[str]) -> None:
    """Change the rows' side of some structs; `edits` gets "added" and "missing" of fields that both sides can reach."""
    if shape.kind == "struct":
        kept = [one for one in shape.inside if random.random() < 0.85] or shape.inside[:1]
        for one in shape.inside:
            if one not in kept:
                one.new = None
                edits.add("missing")
            elif one.new is not None and random.random() < 0.3:
                one.new = one.new.upper()
        if random.random() < 0.25:
            added = make_shape(random, 1)
            added.new = random.choice("xyz")
            shape.inside.append(added)
            edits.add("added")
    for one in shape.inside:
        if one.new == one.old or (one.new and one.old):
            edit(one, random, edits)


def arrow_of(shape: Shape, side: str, random: Random) -> pa.DataType:
    """Of one side; the rows' fields come in another order."""
    inside = [(getattr(one, side), arrow_of(one, side, random)) for one in shape.inside]
    if shape.kind == "int":
        return pa.int64()
    if shape.kind == "list":
        return (
            random.choice([pa.list_, pa.large_list])(inside[0][1])
            if side == "new"
            else pa.list_(inside[0][1])
        )
    if shape.kind == "map":
        return pa.map_(pa.string(), inside[0][1])
    fields = [pair for pair in inside if pair[0] is not None]
    if side == "new":
        random.shuffle(fields)
    return pa.struct(fields)


def make_value(shape: Shape, random: Random) -> Value:
    """A value of the rows, as pairs of (shape, value) in structs: both sides can be told from it."""
    if random.random() < 0.15:
        return None
    if shape.kind == "int":
        return random.randint(0, 99)
    if shape.kind == "struct":
        return [(one, make_value(one, random)) for one in shape.inside]
    values = [make_value(shape.inside[0], random) for _ in range(random.randint(0, 3))]
    return values if shape.kind == "list" else [(f"k{at}", one) for at, one in enumerate(values)]


def told(
    shape: Shape, value: Value, name_of: Callable[[Shape], str | None], *, has: Callable[[Shape], bool]
) -> Value:
    """The value with the names of one side; a field that the rows do not have is NULL."""
    if value is None or shape.kind == "int":
        return value
    if shape.kind == "list":
        return [told(shape.inside[0], one, name_of, has=has) for one in value]
    if shape.kind == "map":
        return [(key, told(shape.inside[0], one, name_of, has=has)) for key, one in value]
    return {
        name: told(one, part, name_of, has=has) if has(one) else None
        for one, part in value
        if (name := name_of(one)) is not None
    }


def write(table: TableSchema, rows: pa.Table, spec: WriteSpec) -> tuple[TableSchema, list[Value]]:
    """What a write stores, without files."""
    incoming = from_arrow(rows)
    check_columns(table, incoming.fields, spec, only_deletes=False, table="d.t")
    plan = plan_target(table, incoming.fields, KEYED, spec.on_schema_change, table="d.t", new_uuid="u")
    made = conform(incoming.read(plan.schema), plan.schema)
    return plan.schema, list(made.column("c").to_pylist())


@settings(max_examples=examples(35, 2000))
@given(st.randoms(use_true_random=False))
def test_fields_are_matched_by_name_added_dropped_or_refused(random: Random) -> None:
    """No field of the rows is lost and none of the table becomes NULL, but as the write asks."""
    shape = make_shape(random, 3)
    first = pa.schema([("id", pa.int64()), ("c", arrow_of(shape, "old", random))])
    fields = from_arrow(first.empty_table()).fields
    table = plan_target(None, fields, KEYED, OnSchemaChange.IGNORE, table="d.t", new_uuid="u").schema
    edits: set[str] = set()
    edit(shape, random, edits)
    values = [make_value(shape, random) for _ in range(4)]
    given_values = [told(shape, one, lambda at: at.new, has=lambda _: True) for one in values]
    rows = pa.table({"id": range(4), "c": pa.array(given_values, arrow_of(shape, "new", random))})

    def has(one: Shape) -> bool:
        return one.new is not None

    kept = [told(shape, one, lambda at: at.old, has=has) for one in values]
    grown = [told(shape, one, lambda at: at.old or at.new, has=has) for one in values]
    for rule, refusal, stored in (
        (OnSchemaChange.SAME_COLUMNS, "TS1062" if "added" in edits else "TS1063" if edits else None, kept),
        (OnSchemaChange.IGNORE, "TS1063" if "missing" in edits else None, kept),
        (OnSchemaChange.APPEND_NEW_COLUMNS, None, grown),
    ):
        if refusal is not None:
            with pytest.raises(FixRequest, match=refusal):
                write(table, rows, WriteSpec(on_schema_change=rule))
        if refusal != "TS1062":
            target, found = write(table, rows, WriteSpec(on_schema_change=rule, missing_columns="null"))
            assert found == stored
            assert (target != table) == (rule is OnSchemaChange.APPEND_NEW_COLUMNS and "added" in edits)
