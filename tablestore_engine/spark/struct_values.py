"""Values of SQL as a column takes them: casts that lose no value silently, fields of structs that are never swapped.

Rule       INSERT takes the fields by position, as Spark does. BY NAME, UPDATE and MERGE match names without case.
INVARIANT  by position, a field that has the name of the column's field at another place is refused (TS1551).
INVARIANT  what cannot be cast raises instead of becoming NULL, at any depth: Spark's CAST wraps and gives NULL here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import types as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.nested_fields import match_names
from tablestore_engine.spark.spark_types import has_spark_type, spark_type
from tablestore_engine.sql.scanner import quote_name, quote_string

_VARIABLE = "__ts_value"
_SUBQUERY = re.compile(r"\bselect\b", re.IGNORECASE)


@dataclass(frozen=True)
class ValueTypes:
    """The types that Spark found for the expressions of nested columns; `by_name`: how their fields match."""

    by_name: bool
    types: Mapping[str, st.DataType] = field(default_factory=dict)

    def matched(self, expression: str, column: DataField) -> str:
        """The expression with the fields in the order of the column. Raises FixRequest TS1551."""
        given = self.types.get(expression)
        if given is None or not has_spark_type(column.type):
            return expression
        return match_fields(expression, given, spark_type(column.type), column.name, by_name=self.by_name)


def match_fields(
    expression: str, given: st.DataType, wanted: st.DataType, path: str, *, by_name: bool
) -> str:
    """SQL for `expression` of type `given` with the fields of `wanted`, and their types. Raises FixRequest TS1551.

    The expression is evaluated once, as the argument of a lambda. Spark takes no subquery there: one is repeated, since
    Spark runs equal ones once, and refused where lists or maps inside need a lambda. `path`: of the column.
    """
    once = f"{_VARIABLE}0"
    value = _Matching(by_name).value(once, given, wanted, path)
    if value == once:
        return expression
    if _SUBQUERY.search(expression):
        value = _Matching(by_name).value(f"({expression})", given, wanted, path)
        if _VARIABLE in value:
            raise _subquery(given, wanted, path)
        return value
    return f"transform(array({expression}), {once} -> {value})[0]"


@dataclass
class _Matching:
    """One walk through a type; `count`: lambda variables so far, each has a name of its own."""

    by_name: bool
    count: int = 0

    def value(self, text: str, given: st.DataType, wanted: st.DataType, path: str) -> str:
        """`text` itself where nothing moves. Kinds that differ are left to the cast, which refuses them."""
        if isinstance(given, st.StructType) and isinstance(wanted, st.StructType):
            return self._struct(text, given, wanted, path)
        if isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
            one = self._variable()
            made = self.value(one, given.elementType, wanted.elementType, f"{path}.element")
            return text if made == one else f"transform({text}, {one} -> {made})"
        if isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
            return self._map(text, given, wanted, path)
        if _is_leaf(given) and _is_leaf(wanted) and given.simpleString() != wanted.simpleString():
            return checked_cast(text, wanted.simpleString(), path)
        return text

    def _struct(self, text: str, given: st.StructType, wanted: st.StructType, path: str) -> str:
        places = _places(given.names, wanted.names, path, by_name=self.by_name)
        parts, moved = [], False
        for at, (place, target) in enumerate(zip(places, wanted.fields, strict=True)):
            source = given.fields[place]
            part = f"{text}.{quote_name(source.name)}"
            made = self.value(part, source.dataType, target.dataType, f"{path}.{target.name}")
            parts.append(f"{quote_string(target.name)}, {made}")
            moved = moved or place != at or made != part
        return f"if({text} is null, null, named_struct({', '.join(parts)}))" if moved else text

    def _map(self, text: str, given: st.MapType, wanted: st.MapType, path: str) -> str:
        key, value = self._variable(), self._variable()
        keys = self.value(key, given.keyType, wanted.keyType, f"{path}.key")
        values = self.value(value, given.valueType, wanted.valueType, f"{path}.value")
        if keys != key:
            text = f"transform_keys({text}, ({key}, {value}) -> {keys})"
        return text if values == value else f"transform_values({text}, ({key}, {value}) -> {values})"

    def _variable(self) -> str:
        self.count += 1
        return f"{_VARIABLE}{self.count}"


def _subquery(given: st.DataType, wanted: st.DataType, path: str) -> FixRequest:
    return FixRequest(
        "TS1551",
        f"a subquery does not give the fields and types of column {path}",
        why=f"the column has {wanted.simpleString()}, the subquery gives {given.simpleString()}",
        fix="give the fields of the column in their order, and cast their values in the subquery",
    )


def checked_cast(expression: str, type_text: str, path: str) -> str:
    """SQL that casts to an atomic type; a value that does not fit raises TS1603 with `path`."""
    cast = f"try_cast({expression} as {type_text})"
    told = quote_string(f"TS1603 column {path}: a value does not fit {type_text}: ")
    misfit = f"({expression}) is not null and {cast} is null"
    return f"if({misfit}, raise_error({told} || cast({expression} as string)), {cast})"


def _is_leaf(type_: st.DataType) -> bool:
    return not isinstance(type_, st.StructType | st.ArrayType | st.MapType | st.NullType)


def _places(given: list[str], wanted: list[str], path: str, *, by_name: bool) -> list[int]:
    """For each wanted field the index of the given one. Raises FixRequest TS1551."""
    found = [place for place in match_names(wanted, given) if place is not None]
    if by_name:
        if len(found) == len(wanted) == len(given):
            return found
    elif len(given) == len(wanted):
        by_position = enumerate(match_names(wanted, given))
        if all(place is None or place == at for at, place in by_position):
            return list(range(len(wanted)))
    raise _mismatch(given, wanted, path, can_match=len(found) == len(wanted) == len(given))


def _mismatch(given: list[str], wanted: list[str], path: str, *, can_match: bool) -> FixRequest:
    fields = ", ".join(f"{quote_string(name)}, …" for name in wanted)
    choice = "write INSERT INTO … BY NAME SELECT …, or " if can_match else ""
    return FixRequest(
        "TS1551",
        f"a struct does not match the fields of column {path}",
        why=f"the column has {', '.join(wanted)}, the value has {', '.join(given)}",
        fix=f"{choice}give the fields of the column in their order: named_struct({fields})",
    )
