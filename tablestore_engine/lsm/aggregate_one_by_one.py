"""Aggregate functions whose outcome depends on each step: nested_update, merge_map_with_keytime and rbm32.

CHANGE     the aggregate functions nested_update, merge_map_with_keytime and rbm32 (options fields.<column>.nested-key,
           fields.<column>.count-limit, fields.<column>.ts-field)
Steps      keys with one value → that value; the others: version by version, what is there counts as after a late one
PAIMON     1.4.2: the first value stays as it is, NULL elements and repeated keys included. The order of elements and of
           map entries is that of Java's hash tables; here it is that of arrival.
WHY        version by version: what a limit, a removed entry or a retraction leaves depends on what came before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import DataType
from tablestore_engine.lsm.aggregate_function import AggregatedColumn, AggregateFunction, wrong_type
from tablestore_engine.lsm.option_errors import not_exact
from tablestore_engine.lsm.version_groups import NO_ROW, VersionGroups, pick_values

_STRING_LENGTH = 2**31 - 1


@dataclass(frozen=True)
class OneByOne(AggregateFunction):
    """`agg` and `take_back` are given values that are not NULL, as Python has them."""

    column: AggregatedColumn

    @abstractmethod
    def agg(self, old: Any, new: Any) -> Any:  # noqa: ANN401 - a value of the column's type
        """Both as one; `old` came first."""

    def take_back(self, old: Any, gone: Any) -> Any:  # noqa: ANN401 - as agg
        """`old` without `gone`. REQUIRES retracts."""
        raise NotImplementedError

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """NULL where every value is NULL or taken back first."""
        mine = groups.valid(values)
        found = mine.row_of_each(mine.starts) if len(mine.rows) else np.full(groups.count, NO_ROW)
        if not len(mine.rows):
            return pick_values(values, found)
        slow = (mine.sizes > 1) | mine.retracts[mine.starts]
        made = [self._fold(values, mine, int(start), int(size)) for start, size in _spans(mine, slow)]
        at = found.copy()
        at[mine.present[slow]] = len(values) + np.arange(len(made))
        return pick_values(
            pa.chunked_array([*values.chunks, pa.array(made, values.type)], type=values.type), at
        )

    def _fold(self, values: pa.ChunkedArray, groups: VersionGroups, start: int, size: int) -> Any:  # noqa: ANN401 - as agg
        found: Any = None
        for place in range(start, start + size):
            value = values[int(groups.rows[place])].as_py()
            if groups.retracts[place]:
                found = None if found is None else self.take_back(found, value)
            elif found is None:
                found = value
            elif groups.late is not None and groups.late[place]:
                found = self.agg(value, found)
            else:
                found = self.agg(found, value)
        return found


def _spans(groups: VersionGroups, chosen: np.ndarray) -> zip[tuple[int, int]]:
    return zip(groups.starts[chosen], groups.sizes[chosen], strict=True)


@dataclass(frozen=True)
class NestedUpdate(OneByOne):
    """Rows of arrays put one after the other, or by the columns `nested_key`; a retraction removes its rows."""

    retracts: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True

    def agg(self, old: list[Any], new: list[Any]) -> list[Any]:
        """No more than `count_limit` rows; of equal nested keys the last."""
        limit = self.column.count_limit
        if limit is not None and len(old) >= limit:
            return old
        rows = _rows(old)
        more = _rows(new)
        rows += more if limit is None else more[: limit - len(old)]
        if not self.column.nested_key:
            return rows
        return list({self._key(row): row for row in rows}.values())

    def take_back(self, old: list[Any], gone: list[Any]) -> list[Any]:
        """Without rows that equal one of `gone`, or have its nested key."""
        if not self.column.nested_key:
            texts = {repr(row) for row in _rows(gone)}
            return [row for row in _rows(old) if repr(row) not in texts]
        keys = {self._key(row) for row in _rows(gone)}
        return [row for key, row in {self._key(row): row for row in _rows(old)}.items() if key not in keys]

    def _key(self, row: dict[str, Any]) -> str:
        return repr([row[name] for name in self.column.nested_key])


def _rows(elements: Sequence[Any]) -> list[Any]:
    return [one for one in elements if one is not None]


@dataclass(frozen=True)
class MergeMapWithKeyTime(OneByOne):
    """Maps put together; of equal keys the row with the larger time. A NULL row removes its key."""

    is_ordered: ClassVar[bool] = True

    def agg(self, old: list[Any], new: list[Any]) -> list[Any]:
        """A row without a time is passed over."""
        entries = {repr(key): (key, row) for key, row in old}
        for key, row in new:
            name = repr(key)
            if row is None:
                entries.pop(name, None)
                continue
            if row[self.column.time] is None:
                continue
            stored = entries[name][1] if name in entries else None
            if stored is None or stored[self.column.time] is None or self._is_later(row, stored):
                entries[name] = (key, row)
        return list(entries.values())

    def _is_later(self, row: dict[str, Any], stored: dict[str, Any]) -> bool:
        """As Java orders texts: by units of UTF-16."""
        one, other = (str(each[self.column.time]).encode("utf-16-be") for each in (row, stored))
        return one > other


@dataclass(frozen=True)
class Bitmap32(OneByOne):
    """The union of roaring bitmaps in their portable form."""

    def agg(self, old: bytes, new: bytes) -> bytes:
        """The same bytes as Java's. Raises FixData TS1671."""
        union = self._bitmap(old) | self._bitmap(new)
        union.run_optimize()
        return bytes(union.serialize())

    def _bitmap(self, data: bytes) -> BitMap:
        try:
            return BitMap.deserialize(data)
        except (ValueError, TypeError) as error:
            raise FixData(
                "TS1671",
                f"column {self.column.name} has a value that is no bitmap",
                why=f"rbm32 expects a roaring bitmap in its portable form; {len(data)} bytes were given",
                fix="write the bytes that a roaring bitmap of 32-bit numbers serializes to",
            ) from error


def make_nested_update(column: AggregatedColumn) -> NestedUpdate:
    """Raises FixRequest TS1662, TS1672; Unsupported TS1667."""
    element = column.type.element
    if column.type.root != "ARRAY" or element is None or element.root != "ROW":
        raise wrong_type(column, "nested_update", "ARRAY<ROW<…>>")
    _check_fields(column, element, column.nested_key, "nested-key")
    if column.nested_key and column.count_limit is not None:
        raise not_exact(
            f"a limited nested_update by key (column {column.name})",
            why="Paimon 1.4 counts rows before it finds equal keys, later releases after it",
            fix=f"leave 'fields.{column.name}.count-limit' or 'fields.{column.name}.nested-key' out",
        )
    return NestedUpdate(column)


def make_merge_map_with_keytime(column: AggregatedColumn) -> MergeMapWithKeyTime:
    """Raises FixRequest TS1662, TS1672."""
    value = column.type.value
    if column.type.root != "MAP" or value is None or value.root != "ROW" or len(value.fields) < 2:
        raise wrong_type(column, "merge_map_with_keytime", "MAP<…, ROW<…>> with two columns in the row")
    _check_fields(column, value, (column.time,) if column.time else (), "ts-field")
    name = column.time or value.fields[-1].name
    time = next(field.type for field in value.fields if field.name == name)
    if time.root != "VARCHAR" or time.length != _STRING_LENGTH:
        raise wrong_type(
            column, "merge_map_with_keytime", f"STRING for {name}, which Paimon compares as text"
        )
    return MergeMapWithKeyTime(AggregatedColumn(column.name, column.type, time=name))


def make_bitmap(column: AggregatedColumn) -> Bitmap32:
    """Raises FixRequest TS1662."""
    if column.type.root != "VARBINARY":
        raise wrong_type(column, "rbm32", "BYTES")
    return Bitmap32(column)


def _check_fields(column: AggregatedColumn, row: DataType, names: Sequence[str], option: str) -> None:
    known = [field.name for field in row.fields]
    missing = [name for name in names if name not in known]
    if missing:
        raise FixRequest(
            "TS1672",
            f"column {column.name} has no nested column {missing[0]!r}",
            why=f"'fields.{column.name}.{option}' names it; there are {', '.join(known)}",
            fix="correct the option",
        )
