"""VARIANT: what is a variant, and what is refused before a reader could decode it wrong."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.evolution_cast import cast_column, check_cast
from tablestore_engine.format.safe_cast import safe_cast
from tablestore_engine.format.type_arrow import VARIANT_ARROW, type_to_arrow

VARIANT = DataType("VARIANT")
NULL = {"value": b"\0", "metadata": b"\1\0\0"}  # JSON null
PLAIN = pa.struct([("metadata", pa.binary()), ("value", pa.large_binary())])
_BAD: dict[str, pa.Array] = {
    "an empty value": pa.array([NULL, NULL | {"value": b""}], PLAIN),
    "no value": pa.array([NULL, NULL | {"value": None}], PLAIN),
    "short metadata": pa.array([NULL, NULL | {"metadata": b"\1\0"}], PLAIN),
    "another version": pa.array([NULL, NULL | {"metadata": b"\2\0\0"}], PLAIN),
    "JSON text": pa.array(["null"]),
    "a third field": pa.array([NULL | {"typed_value": 1}]),
}


@pytest.mark.parametrize("name", _BAD)
def test_rows_that_hold_no_variant_are_refused(name: str) -> None:
    """Alone, in a list, in a struct and as values of a map."""
    bad = _BAD[name]
    arrays = {
        VARIANT: bad,
        DataType("ARRAY", element=VARIANT): pa.ListArray.from_arrays([0, len(bad)], bad),
        DataType("ROW", fields=(DataField(1, "v", VARIANT),)): pa.StructArray.from_arrays([bad], ["v"]),
        DataType("MAP", key=DataType("INT", nullable=False), value=VARIANT): pa.MapArray.from_arrays(
            [0, len(bad)], pa.array(range(len(bad)), pa.int32()), bad
        ),
    }
    for type_, array in arrays.items():
        with pytest.raises(pa.ArrowInvalid, match="VARIANT"):
            safe_cast(pa.chunked_array([array]), type_to_arrow(type_))


def test_fields_in_any_order_and_nulls_are_kept() -> None:
    """A NULL is no JSON null, wherever it lies; slices too."""
    given = pa.chunked_array([pa.array([NULL, None, NULL, None], PLAIN).slice(1)])
    assert safe_cast(given, VARIANT_ARROW).to_pylist() == [None, NULL, None]
    assert safe_cast(pa.chunked_array([pa.nulls(2)]), VARIANT_ARROW).to_pylist() == [None, None]


def test_shredded_variant_is_refused() -> None:
    """Java's form of it: what lies in typed_value would be missing."""
    shredded = pa.array([{"metadata": b"\1\0\0", "value": None, "typed_value": 1}])
    lacking = pa.array([NULL, {"value": None, "metadata": b"\1\0\0"}], PLAIN)
    for array in (shredded, lacking, pa.StructArray.from_arrays([lacking], ["v"])):
        type_ = (
            VARIANT if array.type.num_fields > 1 else DataType("ROW", fields=(DataField(1, "v", VARIANT),))
        )
        with pytest.raises(Unsupported, match="TS1162"):
            cast_column(array, type_, type_)


def test_stored_nulls_have_no_gaps_below() -> None:
    """Parquet's writer takes no NULL in the two fields, which are NOT NULL, not even below a NULL."""
    made = cast_column(pa.nulls(2, VARIANT_ARROW), VARIANT, VARIANT)
    assert made.to_pylist() == [None, None]
    assert made.field("value").null_count == made.field("metadata").null_count == 0


@pytest.mark.parametrize("other", [DataType("VARCHAR", length=5), DataType("BYTES"), DataType("INT")])
def test_no_cast_makes_or_leaves_a_variant(other: DataType) -> None:
    """Files of an old type cannot be read as the other one."""
    for pair in ((VARIANT, other), (other, VARIANT)):
        with pytest.raises(Unsupported, match="TS1123"):
            check_cast(*pair, column="v")
