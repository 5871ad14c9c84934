"""Which aggregate function a name means, and which one each column of a table has.

CHANGE     which aggregate functions there are (options fields.<column>.aggregate-function,
           fields.default-aggregate-function)
INVARIANT  its names are those of options.AGGREGATE_FUNCTIONS (tests/house/test_merge_engines.py).
"""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import DataField
from tablestore_engine.lsm.aggregate_collections import make_collect, make_listagg, make_merge_map
from tablestore_engine.lsm.aggregate_function import AggregatedColumn, AggregateFunction
from tablestore_engine.lsm.aggregate_numbers import make_number
from tablestore_engine.lsm.aggregate_one_by_one import (
    make_bitmap,
    make_merge_map_with_keytime,
    make_nested_update,
)
from tablestore_engine.lsm.aggregate_picks import First, Last, make_boolean, make_extreme
from tablestore_engine.options import FieldOptions

Make = Callable[[AggregatedColumn], AggregateFunction]
FUNCTIONS: dict[str, Make] = {
    "sum": lambda column: make_number(column, multiplies=False),
    "product": lambda column: make_number(column, multiplies=True),
    "max": lambda column: make_extreme(column, largest=True),
    "min": lambda column: make_extreme(column, largest=False),
    "last_value": lambda _column: Last(skips_null=False),
    "last_non_null_value": lambda _column: Last(skips_null=True),
    "first_value": lambda _column: First(skips_null=False),
    "first_non_null_value": lambda _column: First(skips_null=True),
    "listagg": make_listagg,
    "bool_and": lambda column: make_boolean(column, largest=False),
    "bool_or": lambda column: make_boolean(column, largest=True),
    "collect": make_collect,
    "merge_map": make_merge_map,
    "merge_map_with_keytime": make_merge_map_with_keytime,
    "nested_update": make_nested_update,
    "rbm32": make_bitmap,
}


def make_function(name: str, field: DataField, options: FieldOptions) -> AggregateFunction:
    """The function of that name for a column. Raises Unsupported TS1661; FixRequest TS1662, TS1665, TS1672."""
    make = FUNCTIONS.get(name)
    if make is None:
        raise Unsupported(
            "TS1661",
            f"aggregate function {name!r} of column {field.name} is not supported",
            why=f"rows would be merged wrongly; built: {', '.join(FUNCTIONS)}",
            fix="use one of these, or another engine for this table",
        )
    column = AggregatedColumn(
        field.name,
        field.type,
        options.is_distinct(field.name),
        options.delimiter(field.name),
        options.nested_key(field.name),
        options.count_limit(field.name),
        options.time_field(field.name),
    )
    return make(column)
