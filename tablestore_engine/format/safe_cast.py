"""A column as another Arrow type, or pa.ArrowInvalid: Arrow's safe cast, which also refuses losses that Arrow permits.

CHANGE     which cast of incoming values is safe
Steps      structs, lists and maps are cast child by child, by the same rules; fields are matched by name without case
Refused    losses that Arrow's safe cast permits: TIMESTAMP to DATE drops the time of day ·
           DOUBLE beyond the range of FLOAT becomes infinite · any number
           but 0 becomes true · floats that become DECIMAL are rounded, and DECIMALs that become floats · texts of
           large numbers become infinite · numbers become times, and times numbers, of an unnamed unit ·
           TIMESTAMP to TIME drops the date · a zone is dropped or added
INVARIANT  DOUBLE to FLOAT rounds to the nearest value; a text is parsed to the nearest value.
INVARIANT  a float becomes the DECIMAL that is written like it (1.24), and a DECIMAL the float, else it is refused. Both
           go by text: Arrow's own casts between them are often off in the last digits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from tablestore_engine.format.nested_fields import match_names
from tablestore_engine.format.type_arrow import is_variant

_INTEGER_DIGITS = 20  # of an unsigned one
_FLOAT_DIGITS = 17  # a DOUBLE is never written with more
_LARGEST_DECIMAL = 76  # digits of pa.decimal256


def safe_cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """The column with type `target`; no value is cut, wrapped or lost.

    Fields that the target lacks are dropped, and those that the column lacks are NULL: the caller compares types.
    """
    chunks = column.chunks or [pa.nulls(0, column.type)]  # types are compared without a value, too
    return pa.chunked_array([_cast(chunk, target) for chunk in chunks], target)


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pat.is_null(array.type):
        return pa.nulls(len(array), target)
    if pat.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_variant(target):
        from tablestore_engine.format.variant import checked_variant  # noqa: PLC0415 - for such columns alone

        return checked_variant(array)
    if array.type.equals(target) and not _has_variant(target):
        return array
    if pat.is_struct(array.type) and pat.is_struct(target):
        return _cast_struct(array, target)
    if pat.is_map(array.type) and pat.is_map(target):
        return _cast_map(array, target)
    if _is_list(array.type) and pat.is_list(target):
        return _cast_list(array, target)
    return _cast_scalar(array, target)


def _has_variant(arrow: pa.DataType) -> bool:
    return is_variant(arrow) or any(
        _has_variant(arrow.field(at).type) for at in range(arrow.num_fields if pat.is_nested(arrow) else 0)
    )


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pat.is_list(arrow) or pat.is_large_list(arrow) or pat.is_fixed_size_list(arrow))


def _cast_struct(array: pa.StructArray, target: pa.StructType) -> pa.StructArray:
    fields, children = list(target), array.flatten()  # what lies below a NULL is NULL
    places = match_names([field.name for field in fields], [field.name for field in array.type])
    made = [
        pa.nulls(len(array), field.type) if at is None else _cast(children[at], field.type)
        for field, at in zip(fields, places, strict=True)
    ]
    for field, child in zip(fields, made, strict=True):
        _check_not_null(field, child, nulls=array.null_count)
    return pa.StructArray.from_arrays(made, fields=fields, mask=array.is_null())


def _cast_list(array: pa.Array, target: pa.ListType) -> pa.ListArray:
    values = _cast(array.flatten(), target.value_type)
    _check_not_null(target.value_field, values)
    return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=array.is_null())


def _cast_map(array: pa.MapArray, target: pa.MapType) -> pa.MapArray:
    entry = pa.struct([array.type.key_field, array.type.item_field])
    entries = array.view(pa.list_(pa.field("entries", entry, nullable=False)))
    keys, items = entries.flatten().flatten()
    keys, items = _cast(keys, target.key_type), _cast(items, target.item_type)
    _check_not_null(target.item_field, items)
    return pa.MapArray.from_arrays(_offsets(entries), keys, items, type=target, mask=array.is_null())


def _offsets(lists: pa.Array) -> pa.Array:
    """Into the values that flatten() gives, which are without those of NULL lists."""
    lengths = np.asarray(pc.if_else(lists.is_valid(), pc.list_value_length(lists), 0)).astype(np.int64)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)])).cast(pa.int32())


def _check_not_null(field: pa.Field, values: pa.Array, *, nulls: int = 0) -> None:
    if not field.nullable and values.null_count > nulls:
        raise pa.ArrowInvalid(f"field {field.name!r} is NOT NULL, and a value has none")


def _cast_scalar(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.null_count == len(array):
        return (
            array.cast(target)
            if pat.is_nested(array.type) or pat.is_nested(target)
            else pa.nulls(len(array), target)
        )
    _check_kinds(array.type, target)
    if pat.is_decimal(target) and pat.is_integer(array.type):
        # Arrow asks for room for every value of the type; the real check is the second cast
        return array.cast(pa.decimal256(_INTEGER_DIGITS + target.scale, target.scale)).cast(target)
    if pat.is_float16(array.type):
        array = array.cast(pa.float32())
    if pat.is_floating(array.type) and pat.is_decimal(target):
        return _float_to_decimal(array, target)
    if pat.is_decimal(array.type) and pat.is_floating(target):
        return _decimal_to_float(array, target)
    made = array.cast(target)
    _check_kept(array, made)
    return made


def _float_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    if not pc.all(pc.is_finite(array)).as_py():
        raise pa.ArrowInvalid("a value is infinite or no number")
    room = target.precision - target.scale
    if pc.any(pc.greater_equal(pc.abs(array), 10.0**room)).as_py():
        raise pa.ArrowInvalid(f"the value has more than {room} digits before the decimal point")
    places = f"the value has more than {target.scale} decimal places"
    try:
        made = array.cast(pa.string()).cast(target)
    except pa.ArrowInvalid as wrong:
        raise pa.ArrowInvalid(places) from wrong
    _check_equal(
        array, made.cast(pa.string()).cast(array.type), places
    )  # 5e-324 is cast to 0 without an error
    return made


def _decimal_to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    made = array.cast(pa.string()).cast(target)
    finer = pa.decimal256(_LARGEST_DECIMAL, max(array.type.scale, 0) + _FLOAT_DIGITS)
    why = f"the value has more digits than {target} keeps"
    try:
        back, given = made.cast(pa.string()).cast(finer), array.cast(finer)
    except pa.ArrowInvalid as wrong:  # infinite, or too large to compare
        raise pa.ArrowInvalid(why) from wrong
    _check_equal(given, back, why)
    return made


def _is_number(arrow: pa.DataType) -> bool:
    return bool(
        pat.is_integer(arrow) or pat.is_floating(arrow) or pat.is_decimal(arrow) or pat.is_boolean(arrow)
    )


def _check_kinds(given: pa.DataType, target: pa.DataType) -> None:
    """Casts that Arrow knows and no row means."""
    if (_is_number(given) and pat.is_temporal(target)) or (pat.is_temporal(given) and _is_number(target)):
        raise pa.ArrowInvalid(f"the rows have {given}: a number has no unit of time")
    if pat.is_timestamp(given) and pat.is_time(target):
        raise pa.ArrowInvalid(f"the rows have {given}: its date would be lost")
    if pat.is_timestamp(given) and pat.is_timestamp(target) and (given.tz is None) != (target.tz is None):
        raise pa.ArrowInvalid(f"the rows have {given}: one is an instant, the other a wall-clock time")


def _check_kept(given: pa.Array, made: pa.Array) -> None:
    source, target = given.type, made.type
    if pat.is_timestamp(source) and pat.is_date(target):
        _check_equal(given, made.cast(source))
    elif pat.is_boolean(target) and (pat.is_integer(source) or pat.is_floating(source)):
        _check_equal(given, made.cast(pa.int8()).cast(source))
    elif pat.is_float32(target) and pat.is_floating(source):
        _check_equal(pc.is_inf(given), pc.is_inf(made))
    elif pat.is_floating(target) and (pat.is_string(source) or pat.is_large_string(source)):
        _check_equal(pc.match_substring(given, "inf", ignore_case=True), pc.is_inf(made))


def _check_equal(given: pa.Array, back: pa.Array, why: str = "the value cannot be kept in this type") -> None:
    if not pc.all(pc.equal(given, back)).as_py():  # nulls do not count
        raise pa.ArrowInvalid(why)
