"""Checksums of the rows of a table, in any order: of each column, and of the rows as a whole.

INVARIANT  memory is a batch and some numbers for each column, whatever the size of the table.
INVARIANT  equal sums of a column: the same values as often. Equal sums of the rows: the same rows as often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tablestore_engine.certify.value_hashes import add_up, combine, hash_values, is_emptied

_ROWS = "the combination of values in rows"
_MASK = (1 << 64) - 1


@dataclass
class TableSums:
    """Sums of the batches that were added. `wanted`: the schema of our columns, whose names a reader must have.

    `emptied` and `emptied_rows`: the same sums, where a NULL list of structs counts as an empty one.
    """

    wanted: pa.Schema
    rows: int = 0
    columns: dict[str, int] = field(default_factory=dict)
    all_rows: int = 0
    emptied: dict[str, int] = field(default_factory=dict)
    emptied_rows: int = 0

    def __post_init__(self) -> None:
        self.columns = dict.fromkeys(self.wanted.names, 0)
        self.emptied = {one.name: 0 for one in self.wanted if has_emptied(one.type)}

    def add(self, batch: pa.RecordBatch) -> None:
        """Raises pa.ArrowInvalid for a value that the type of our column does not have: its text has the column."""
        rows = np.zeros(batch.num_rows, np.uint64)
        emptied_rows = rows
        for one in self.wanted:
            array = batch.column(batch.schema.get_field_index(one.name))
            try:
                hashes = hash_values(array, one.type)
                self.columns[one.name] = (self.columns[one.name] + add_up(hashes)) & _MASK
                rows = combine(rows, hashes)
                if one.name in self.emptied:
                    hashes = hash_values(array, one.type, null_is_empty=True)
                    self.emptied[one.name] = (self.emptied[one.name] + add_up(hashes)) & _MASK
                emptied_rows = combine(emptied_rows, hashes)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise pa.ArrowInvalid(f"column {one.name}: {error}") from error
        self.rows += batch.num_rows
        self.all_rows = (self.all_rows + add_up(rows)) & _MASK
        self.emptied_rows = (self.emptied_rows + add_up(emptied_rows)) & _MASK

    def differences(self, other: TableSums) -> tuple[str, ...]:
        """What `other`, of a reader and of all or some of these columns, has otherwise; empty: nothing."""
        found = [] if self.rows == other.rows else [f"{other.rows} rows instead of {self.rows}"]
        columns = [name for name, value in other.columns.items() if self.columns[name] != value]
        if columns:
            found.append(f"values of {', '.join(columns)}")
        elif not found and self.wanted.names == other.wanted.names and self.all_rows != other.all_rows:
            found.append(_ROWS)
        return tuple(found)

    def is_emptied_by(self, other: TableSums) -> bool:
        """Whether all that differs is that `other` has an empty list of structs for a NULL one."""
        return (self.rows, self.emptied, self.emptied_rows) == (other.rows, other.emptied, other.emptied_rows)


def has_emptied(type_: pa.DataType) -> bool:
    """Whether a list or map of structs is in it, at any depth."""
    return is_emptied(type_) or any(has_emptied(part) for part in _parts(type_))


def schema_differences(ours: pa.Schema, theirs: pa.Schema) -> tuple[str, ...]:
    """Columns that lack, are too much, are in another order or have another type; empty: none."""
    lacking = [name for name in ours.names if name not in theirs.names]
    extra = [name for name in theirs.names if name not in ours.names]
    found = [f"no column {name}" for name in lacking] + [f"a column {name} too much" for name in extra]
    if not found and list(ours.names) != list(theirs.names):
        found.append(f"columns in the order {', '.join(theirs.names)}")
    for one in ours:
        if one.name not in lacking:
            other = theirs.field(one.name).type
            if not is_like(one.type, other):
                found.append(f"column {one.name} as {other} instead of {one.type}")
    return tuple(found)


def is_like(ours: pa.DataType, theirs: pa.DataType) -> bool:
    """Whether values of `theirs` can be compared with ours: the same kind, an integer as wide or wider.

    Layouts of text, bytes, lists and dictionaries do not count, nor does the unit of a time: values do.
    """
    theirs = theirs.value_type if pa.types.is_dictionary(theirs) else theirs
    if pa.types.is_struct(ours) and pa.types.is_struct(theirs):
        same = [one.name for one in ours] == [one.name for one in theirs]
        return same and all(is_like(one.type, two.type) for one, two in zip(ours, theirs, strict=True))
    inner, others = list(_parts(ours)), list(_parts(theirs))
    if inner or others:
        same = _kind(ours) == _kind(theirs) and len(inner) == len(others)
        return same and all(is_like(one, two) for one, two in zip(inner, others, strict=True))
    if pa.types.is_signed_integer(ours):
        return bool(pa.types.is_signed_integer(theirs)) and theirs.bit_width >= ours.bit_width
    return _kind(ours) == _kind(theirs)


def _parts(type_: pa.DataType) -> Iterator[pa.DataType]:
    if pa.types.is_struct(type_):
        yield from (one.type for one in type_)
    elif pa.types.is_map(type_):
        yield from (type_.key_type, type_.item_type)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        yield type_.value_type


def _kind(type_: pa.DataType) -> Sequence[object]:
    types = pa.types
    if types.is_timestamp(type_):
        return ("timestamp", type_.tz is not None)
    if types.is_decimal(type_):
        return ("decimal", type_.precision, type_.scale)
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return ("text",)
    if types.is_binary(type_) or types.is_large_binary(type_) or types.is_binary_view(type_):
        return ("bytes",)
    if types.is_fixed_size_binary(type_):
        return ("bytes",)
    if types.is_time(type_):
        return ("time",)
    if types.is_list(type_) or types.is_large_list(type_):
        return ("list",)
    return ("map",) if types.is_map(type_) else (str(type_),)
