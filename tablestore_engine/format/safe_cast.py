"""A column as another Arrow type, or pa.ArrowInvalid: Arrow's safe cast, and the losses that it lets pass.

Steps      children of structs under the target's spelling → cast → compare where Arrow does not
Losses     TIMESTAMP to DATE drops the time of day · DOUBLE beyond the range of FLOAT becomes infinite · any number
           but 0 becomes true · a struct child in another case becomes NULL, since Arrow matches names exactly
INVARIANT  DOUBLE to FLOAT and floats to DECIMAL round to the nearest value: they have no exact form.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

_INT64_DIGITS = 19
_DECIMAL_DIGITS_MAX = 38


def safe_cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """The column with type `target`; no value is cut, wrapped or lost."""
    spelled = _spelled(column.type, target)
    if spelled != column.type:
        column = pa.chunked_array([chunk.view(spelled) for chunk in column.chunks], spelled)
    if pat.is_decimal(target) and pat.is_integer(column.type):
        # Arrow asks for room for every int64; the real check is the second cast
        wide = pa.decimal128(min(_INT64_DIGITS + target.scale, _DECIMAL_DIGITS_MAX), target.scale)
        return column.cast(wide).cast(target)
    made = column.cast(target)
    _check_kept(column, made)
    return made


def _spelled(given: pa.DataType, target: pa.DataType) -> pa.DataType:
    """`given` with struct children named as in `target` where they differ in case alone."""
    if pat.is_struct(given) and pat.is_struct(target):
        wanted = {field.name.lower(): field for field in target}
        fields = []
        for field in given:
            meant = wanted.get(field.name.lower())
            if meant is not None:
                field = field.with_name(meant.name).with_type(_spelled(field.type, meant.type))
            fields.append(field)
        return pa.struct(fields)
    if pat.is_list(given) and pat.is_list(target):
        return pa.list_(given.value_field.with_type(_spelled(given.value_type, target.value_type)))
    if pat.is_map(given) and pat.is_map(target):
        item = given.item_field.with_type(_spelled(given.item_type, target.item_type))
        return pa.map_(given.key_field, item, given.keys_sorted)
    return given


def _check_kept(given: pa.ChunkedArray, made: pa.ChunkedArray) -> None:
    source, target = given.type, made.type
    if pat.is_struct(source) and pat.is_struct(target):
        for field in target:
            if source.get_field_index(field.name) >= 0:
                _check_kept(pc.struct_field(given, field.name), pc.struct_field(made, field.name))
    elif pat.is_list(source) and pat.is_list(target):
        _check_kept(pc.list_flatten(given), pc.list_flatten(made))
    elif pat.is_timestamp(source) and pat.is_date(target):
        _check_equal(given, made.cast(source))
    elif pat.is_boolean(target) and (pat.is_integer(source) or pat.is_floating(source)):
        _check_equal(given, made.cast(pa.int8()).cast(source))
    elif pat.is_float32(target) and pat.is_floating(source):
        _check_equal(pc.is_inf(given), pc.is_inf(made))


def _check_equal(given: pa.ChunkedArray, back: pa.ChunkedArray) -> None:
    if not pc.all(pc.equal(given, back)).as_py():  # nulls do not count
        raise pa.ArrowInvalid("the value cannot be kept in this type")
