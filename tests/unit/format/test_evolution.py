"""Reading old files with a new schema: ids decide, casts are exact, everything else is refused."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, NotFound, Unsupported
from tablestore_engine.format.data_type import STRING, DataField, DataType
from tablestore_engine.format.evolution import evolve, plan_columns
from tablestore_engine.format.evolution_cast import cast_column, check_cast, is_widening
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.schema_change import add_column, drop_column, rename_column, retype_column
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import parse_type

OLD = new_schema(pa.schema([("a", pa.int8()), ("b", pa.string()), ("c", pa.int32()), ("dt", pa.string())]))
FILE = pa.table({
    "_SEQUENCE_NUMBER": pa.array([7, 8], pa.int64()), "a": pa.array([1, -2], pa.int8()), "b": ["x", None],
    "c": pa.array([5, 6], pa.int32()), "dt": ["p", "p"],
})  # fmt: skip


def _newest() -> TableSchema:
    """Rename a → id, drop b, add b again, widen id TINYINT → INT."""
    schema = rename_column(OLD, "a", "id")
    schema = drop_column(schema, "b")
    schema = add_column(schema, "b", STRING)
    return retype_column(schema, "id", parse_type("INT"))


def test_ids_decide_not_names() -> None:
    """A renamed column is found under its old name; a column added under a dropped name is all nulls."""
    new = _newest()
    plans = plan_columns(OLD, new)
    assert [(p.field.name, p.source) for p in plans] == [("id", "a"), ("c", "c"), ("dt", "dt"), ("b", None)]
    table = evolve(FILE, OLD, new)
    assert table.schema == new.arrow_schema()
    assert table.to_pydict() == {"id": [1, -2], "c": [5, 6], "dt": ["p", "p"], "b": [None, None]}


def test_wanted_columns_partitions_and_kept_columns() -> None:
    """Only wanted columns are read; partition values replace the file's; system columns pass through."""
    table = evolve(FILE, OLD, _newest(), ["dt", "id"], partition={"dt": "q"}, keep=["_SEQUENCE_NUMBER"])
    assert table.to_pydict() == {"_SEQUENCE_NUMBER": [7, 8], "dt": ["q", "q"], "id": [1, -2]}
    assert evolve(FILE.drop_columns(["dt"]), OLD, OLD, partition={"dt": None}).column("dt").to_pylist() == [
        None,
        None,
    ]
    assert evolve(FILE, OLD, OLD, []).num_rows == 2
    with pytest.raises(NotFound):
        evolve(FILE, OLD, OLD, ["nope"])


def test_a_file_that_lacks_its_own_column_is_damaged() -> None:
    """A column that the file's schema promises and the file does not have is an error, not nulls."""
    with pytest.raises(FixData) as raised:
        evolve(FILE.drop_columns(["c"]), OLD, OLD)
    assert raised.value.code == "TS1124"


_S, _I = "STRING", "INT"


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        ("TINYINT", "BIGINT", [1, None], [1, None]),
        ("BIGINT", "INT", [2**32 + 5, -1], [5, -1]),
        ("BIGINT", "DOUBLE", [2**53 + 1], [float(2**53)]),
        ("INT", "DECIMAL(12,2)", [7, None], [Decimal("7.00"), None]),
        ("BIGINT", "DECIMAL(38,10)", [-(2**63)], [Decimal("-9223372036854775808.0000000000")]),
        ("FLOAT", "DOUBLE", [1.5], [1.5]),
        ("DOUBLE", "FLOAT", [1e300], [float("inf")]),
        ("DECIMAL(10,2)", "DECIMAL(38,4)", [Decimal("1.25")], [Decimal("1.2500")]),
        ("DECIMAL(10,2)", "DOUBLE", [Decimal("1.25"), None], [1.25, None]),
        ("DECIMAL(20,2)", "DOUBLE", [Decimal("123456789012345678.91")], [1.2345678901234568e17]),
        ("DECIMAL(38,10)", "FLOAT", [Decimal("12345678901234567890.1234567891")], [12345679395506094080.0]),
        ("BIGINT", "FLOAT", [2**53 + 1], [float(2**53)]),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", [dt.datetime(2024, 1, 1)], [dt.datetime(2024, 1, 1)]),
        ("DATE", "TIMESTAMP(6)", [dt.date(1969, 12, 31)], [dt.datetime(1969, 12, 31)]),
        ("CHAR(3)", "VARCHAR(5)", ["abc"], ["abc"]),
        ("VARBINARY(3)", "BYTES", [b"a"], [b"a"]),
        ("INT", "STRING", [-5, None], ["-5", None]),
        ("BOOLEAN", "STRING", [True, False], ["true", "false"]),
        ("DATE", "STRING", [dt.date(2024, 1, 1), None], ["2024-01-01", None]),
        ("DECIMAL(38,10)", "STRING", [Decimal("1E-10")], ["0.0000000001"]),
        ("DOUBLE", "STRING", [1e7, 1.5, 1.5], ["1.0E7", "1.5", "1.5"]),
        ("TIMESTAMP(3)", "STRING", [dt.datetime(2024, 1, 1)], ["2024-01-01 00:00:00.000"]),
    ],
)
def test_casts(old: str, new: str, values: list[object], expected: list[object]) -> None:
    """Each supported cast gives what Java gives, for arrays and chunked arrays, nulls included."""
    a, b = parse_type(old), parse_type(new)
    array = pa.array(values, type_to_arrow(a))
    result = cast_column(array, a, b)
    assert result.type == type_to_arrow(b)
    assert result.to_pylist() == expected
    chunked = cast_column(pa.chunked_array([array, array]), a, b)
    assert chunked.to_pylist() == expected * 2


@pytest.mark.parametrize(
    ("old", "new"),
    [("STRING", "INT"), ("TIMESTAMP(6)", "TIMESTAMP(3)"), ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"),
     ("STRING", "VARCHAR(3)"),
     ("DECIMAL(10,2)", "DECIMAL(10,1)"), ("DOUBLE", "INT"), ("BYTES", "STRING"), ("TIMESTAMP_LTZ(3)", "STRING"),
     ("INT", "VARCHAR(3)"), ("CHAR(2)", "CHAR(3)"), ("DATE", "INT")],
)  # fmt: skip
def test_casts_that_are_refused(old: str, new: str) -> None:
    """What is not known to equal Java is refused with the column and both types, never read wrong."""
    schema = TableSchema(0, (DataField(0, "col", parse_type(old)),), 0)
    changed = TableSchema(1, (DataField(0, "col", parse_type(new)),), 0)
    with pytest.raises(Unsupported, match="col"):
        plan_columns(schema, changed)


def test_nested_rows_follow_ids_at_every_depth() -> None:
    """ROW children inside lists, maps and rows are matched by id, with nulls and slices kept."""
    old = new_schema(pa.schema([
        ("l", pa.list_(pa.struct([("x", pa.int8()), ("gone", pa.string())]))),
        ("m", pa.map_(pa.string(), pa.struct([("y", pa.int16())]))),
    ]))  # fmt: skip
    row = old.field("l").type.element
    assert row is not None
    x = DataField(row.fields[0].id, "renamed", parse_type("BIGINT"))
    fresh = DataField(50, "fresh", STRING)
    inner = old.field("m").type.value
    assert inner is not None
    y = DataField(inner.fields[0].id, "y", parse_type("INT"))
    new = TableSchema(1, (
        DataField(0, "l", DataType("ARRAY", element=DataType("ROW", fields=(fresh, x)))),
        DataField(old.fields[1].id, "m", DataType("MAP", key=STRING, value=DataType("ROW", fields=(y,)))),
    ), 50)  # fmt: skip
    rows = {
        "l": [[{"x": 9, "gone": "g"}], None, [], [None, {"x": None, "gone": ""}], [{"x": -1, "gone": None}]],
        "m": [[("k", {"y": 1})], None, [], [("a", None), ("b", {"y": 2})], [("c", {"y": 3})]],
    }
    table = pa.table(rows, schema=old.arrow_schema())
    expected = {
        "l": [
            [{"fresh": None, "renamed": 9}],
            None,
            [],
            [None, {"fresh": None, "renamed": None}],
            [{"fresh": None, "renamed": -1}],
        ],
        "m": rows["m"],
    }
    assert evolve(table, old, new).to_pydict() == expected
    assert evolve(table, old, new).schema == new.arrow_schema()
    assert evolve(table.slice(1, 3), old, new).to_pydict() == {k: v[1:4] for k, v in expected.items()}
    evolve(table, old, new).validate(full=True)


def test_multisets_and_changed_shapes() -> None:
    """A MULTISET's elements widen; a nested type that becomes another is refused."""
    old, new = (DataType("MULTISET", element=parse_type(t)) for t in ("TINYINT", "INT"))
    array = pa.array([[(1, 2)]], type_to_arrow(old))
    assert cast_column(array, old, new).to_pylist() == [[(1, 2)]]
    with pytest.raises(Unsupported):
        cast_column(array, old, DataType("ARRAY", element=parse_type("INT")))


def test_widening_is_strict() -> None:
    """Only casts that keep every value count as widening; what Paimon also casts stays readable."""

    def wide(a: str, b: str) -> bool:
        return is_widening(parse_type(a), parse_type(b))

    assert wide("INT", "BIGINT")
    assert wide("INT", "DECIMAL(10,0)")
    assert wide("VARCHAR(3)", "STRING")
    assert wide("DECIMAL(10,2)", "DECIMAL(12,4)")
    assert wide("TIME(0)", "TIME(3)")
    assert wide("INT", "DOUBLE")
    assert wide("SMALLINT", "FLOAT")
    assert wide("FLOAT", "DOUBLE")
    for a, b in (("BIGINT", "INT"), ("INT", "DECIMAL(9,0)"), ("DECIMAL(10,2)", "DECIMAL(11,4)"),
                 ("STRING", "VARCHAR(9)"), ("INT", "STRING"), ("DOUBLE", "FLOAT"),
                 ("DATE", "TIMESTAMP(6)")):  # fmt: skip
        assert not wide(a, b)
    for a, b in (("BIGINT", "FLOAT"), ("BIGINT", "DOUBLE"), ("INT", "FLOAT"), ("DECIMAL(10,2)", "DOUBLE"),
                 ("DECIMAL(3,0)", "FLOAT")):  # fmt: skip
        assert not wide(a, b)
        check_cast(parse_type(a), parse_type(b), column="another engine's table")  # reading goes on


@pytest.mark.parametrize("bits", [24, 53])
def test_what_counts_as_widening_keeps_neighbours_apart(bits: int) -> None:
    """No accepted pair maps two integers of its old type to one value of its new type."""
    for old, width in (("TINYINT", 7), ("SMALLINT", 15), ("INT", 31), ("BIGINT", 63)):
        for new in ("FLOAT", "DOUBLE"):
            if not is_widening(parse_type(old), parse_type(new)):
                continue
            top = min(2**bits + 1, 2**width - 1)
            column = pa.array([top, top - 1], type_to_arrow(parse_type(old)))
            one, other = cast_column(column, parse_type(old), parse_type(new)).to_pylist()
            assert one != other, (old, new)
