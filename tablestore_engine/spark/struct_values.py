"""Values of SQL as a column takes them: casts that lose no value silently, fields of structs that are never swapped.

CHANGE     to which field of a struct a value of INSERT, UPDATE or MERGE is written
Rule       Spark's store assignment (spark.sql.storeAssignmentPolicy) says which type may be stored in which column, and
           Spark itself is asked (TS2156). LEGACY allows every cast.
Rule       INSERT takes the fields by position, as Spark does. BY NAME, UPDATE and MERGE match names without case.
INVARIANT  by position, a field that has the name of the column's field at another place is refused (TS1551).
INVARIANT  what cannot be cast raises instead of becoming NULL, at any depth and in both modes of CAST (ANSI or not).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - pyspark's own name for it
from pyspark.sql import types as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.nested_fields import match_names
from tablestore_engine.spark.spark_types import spark_type
from tablestore_engine.spark.type_ddl import has_spark_type, spark_ddl
from tablestore_engine.sql.scanner import quote_string


@dataclass(frozen=True)
class Value:
    """An expression with the type that Spark found; NULL needs no session. Spark takes no subquery in a lambda."""

    column: Column
    type: st.DataType
    session: SparkSession | None = None
    has_subquery: bool = False


def assigned(value: Value, field: DataField, *, by_name: bool, path: str | None = None) -> Column:
    """The value cast to the column, its fields matched; what cannot be cast raises instead of becoming NULL.

    Raises FixRequest TS1551. `path`: how errors name the column, if not by its name.
    """
    path = path or field.name
    if field.type.is_atomic:
        if has_spark_type(field.type):
            _check_assignable(value.session, value.type, spark_type(field.type), path)
        return checked_cast(value.column, spark_ddl(field.type), path)
    column = value.column
    if has_spark_type(field.type):
        column = match_fields(value, spark_type(field.type), path, by_name=by_name)
    return column.cast(spark_ddl(field.type))


def match_fields(value: Value, wanted: st.DataType, path: str, *, by_name: bool) -> Column:
    """The value with the fields of `wanted`, and their types. Raises FixRequest TS1551.

    The expression is evaluated once, as the argument of a lambda. Spark takes no subquery there: one is repeated, since
    Spark runs equal ones once, and refused where lists or maps inside need a lambda.
    """
    matching = _Matching(by_name, value.session, has_subquery=value.has_subquery)
    moved = matching.value(value.column, value.type, wanted, path)
    if moved is value.column or value.has_subquery:
        return moved
    return F.transform(F.array(value.column), lambda one: matching.value(one, value.type, wanted, path))[0]


@dataclass(frozen=True)
class _Matching:
    """Walks through a type."""

    by_name: bool
    session: SparkSession | None
    has_subquery: bool

    def value(self, one: Column, given: st.DataType, wanted: st.DataType, path: str) -> Column:
        """`one` itself where nothing moves. Kinds that differ are left to the cast, which refuses them."""
        if isinstance(given, st.StructType) and isinstance(wanted, st.StructType):
            return self._struct(one, given, wanted, path)
        if isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
            inside, path = (given.elementType, wanted.elementType), f"{path}.element"
            if not self._moves(*inside, path):
                return one
            self._check_lambda(given, wanted, path)
            return F.transform(one, lambda element: self.value(element, *inside, path))
        if isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
            return self._map(one, given, wanted, path)
        if _is_leaf(given) and _is_leaf(wanted) and given.simpleString() != wanted.simpleString():
            _check_assignable(self.session, given, wanted, path)
            return checked_cast(one, wanted.simpleString(), path)
        return one

    def _moves(self, given: st.DataType, wanted: st.DataType, path: str) -> bool:
        probe = F.lit(None)
        return self.value(probe, given, wanted, path) is not probe

    def _check_lambda(self, given: st.DataType, wanted: st.DataType, path: str) -> None:
        if self.has_subquery:
            raise _subquery(given, wanted, path)

    def _struct(self, one: Column, given: st.StructType, wanted: st.StructType, path: str) -> Column:
        places = _places(given.names, wanted.names, path, by_name=self.by_name)
        parts, moved = [], False
        for at, (place, target) in enumerate(zip(places, wanted.fields, strict=True)):
            source = given.fields[place]
            part = one.getField(source.name)
            made = self.value(part, source.dataType, target.dataType, f"{path}.{target.name}")
            parts += [F.lit(target.name), made]
            moved = moved or place != at or made is not part
        return F.when(one.isNotNull(), F.named_struct(*parts)) if moved else one

    def _map(self, one: Column, given: st.MapType, wanted: st.MapType, path: str) -> Column:
        keys = (given.keyType, wanted.keyType, f"{path}.key")
        values = (given.valueType, wanted.valueType, f"{path}.value")
        if self._moves(*keys):
            self._check_lambda(given, wanted, path)
            one = F.transform_keys(one, lambda key, _: self.value(key, *keys))
        if self._moves(*values):
            self._check_lambda(given, wanted, path)
            one = F.transform_values(one, lambda _, value: self.value(value, *values))
        return one


def _subquery(given: st.DataType, wanted: st.DataType, path: str) -> FixRequest:
    return FixRequest(
        "TS1551",
        f"a subquery does not give the fields and types of column {path}",
        why=f"the column has {wanted.simpleString()}, the subquery gives {given.simpleString()}",
        fix="give the fields of the column in their order, and cast their values in the subquery",
    )


def checked_cast(value: Column, type_text: str, path: str) -> Column:
    """A cast to an atomic type; a value that does not fit raises TS1603 with `path`."""
    cast = value.try_cast(type_text)
    told = F.lit(f"TS1603 column {path}: a value does not fit {type_text}: ")
    misfit = value.isNotNull() & cast.isNull()
    return F.when(misfit, F.raise_error(F.concat(told, value.cast("string")))).otherwise(cast)


def _check_assignable(
    session: SparkSession | None, given: st.DataType, wanted: st.DataType, path: str
) -> None:
    """Raises FixRequest TS2156 for types that Spark does not store in each other, whatever the values are."""
    if given == wanted or not _is_leaf(given) or not _is_leaf(wanted):
        return
    assert session is not None  # only NULL has none
    policy = str(session.conf.get("spark.sql.storeAssignmentPolicy")).upper()
    if policy == "LEGACY":
        return
    jvm: Any = session._jvm
    rules = jvm.org.apache.spark.sql.catalyst.expressions.Cast
    can_store = rules.canANSIStoreAssign if policy == "ANSI" else rules.canUpCast
    if not can_store(
        *(jvm.org.apache.spark.sql.types.DataType.fromJson(one.json()) for one in (given, wanted))
    ):
        raise FixRequest(
            "TS2156",
            f"a value of type {given.simpleString()} cannot be stored in column {path}",
            why=f"the column has the type {wanted.simpleString()}, and Spark stores no {given.simpleString()} in it "
            f"(spark.sql.storeAssignmentPolicy={policy})",
            fix=f"cast the value in the statement: cast(… as {wanted.simpleString()}); "
            "spark.sql.storeAssignmentPolicy=LEGACY casts every value",
        )


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
