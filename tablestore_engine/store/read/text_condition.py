"""A filter text over the columns of a table: types are checked, and each comparison becomes a Predicate.

CHANGE     the types in a filter that is a text
Steps      parse (sql/filter_parser) → NOT pushed down to the comparisons → literals in the form of their column
INVARIANT  the Predicate is TRUE of exactly the rows that the text is TRUE of, in three-valued logic: every step keeps
           what is TRUE, and NOT is resolved before, by asking for what is FALSE.
INVARIANT  a literal is never cast: integers and decimals are compared as exact numbers, FLOAT and DOUBLE as DOUBLE,
           dates and times by their calendar; a literal of another kind raises FixRequest TS1565.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.sql import filter_parser as tree
from tablestore_engine.store.files.column_facts import FindFacts
from tablestore_engine.store.files.comparable_values import Comparable, comparable, is_comparable
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.file_pruning import may_match, prune
from tablestore_engine.store.read.predicate import (
    NOTHING,
    Always,
    And,
    Compare,
    Like,
    Missing,
    OneOf,
    Operator,
    Or,
    Predicate,
    matching,
    pinned,
)

_INTEGER_BITS = dict(zip(INTEGER_ROOTS, (8, 16, 32, 64), strict=True))
_OPPOSITE: Mapping[str, Operator] = {
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip
_OPERATORS: Mapping[str, Operator] = {value: value for value in _OPPOSITE.values()}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?(?P<zone>Z|[+-]\d{2}:\d{2})?", re.ASCII
)


@dataclass(frozen=True)
class PredicateCondition:
    """A Predicate over the columns of a schema, exact for each row. Implements BoundCondition."""

    predicate: Predicate
    schema: TableSchema

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that the predicate compares; one at least, since a table without columns has no number of rows."""
        asked = _columns_of(self.predicate) or self.schema.field_names[:1]
        return tuple(name for name in self.schema.field_names if name in asked)

    def mask(self, rows: pa.Table) -> Mask:
        return matching(self.predicate, rows, {field.name: field.type for field in self.schema.fields})

    def prune(self, files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
        """By partition values, statistics and the bucket of the key."""
        return prune(files, self.predicate, self.schema)

    def possible(self, sets: Sequence[FindFacts]) -> Sequence[bool]:
        """By bounds and null counts."""
        return [may_match(self.predicate, find) for find in sets]

    def key_values(self, columns: Sequence[str]) -> Sequence[frozenset[Comparable]] | None:
        found = [values for name in columns if (values := pinned(self.predicate, name)) is not None]
        return found if len(found) == len(columns) else None


@dataclass(frozen=True)
class TextCondition:
    """A filter as SQL text. Implements RowCondition."""

    text: str
    _bound: list[PredicateCondition] = field(default_factory=list, compare=False, repr=False)

    def bind(self, schema: TableSchema) -> PredicateCondition:
        """Once for the same schema, so that a scan is checked and run with one parse.

        Raises FixRequest TS1564 for text that is no filter, TS1565 for columns and literals that do not fit.
        """
        bound = next((one for one in self._bound if one.schema is schema), None)
        if bound is None:
            predicate = _Binder(self.text, schema).bind(tree.parse_filter(self.text), wanted=True)
            bound = PredicateCondition(predicate, schema)
            self._bound[:] = [bound]
        return bound


def _columns_of(predicate: Predicate) -> frozenset[str]:
    match predicate:
        case And(parts) | Or(parts):
            return frozenset(name for part in parts for name in _columns_of(part))
        case Always():
            return frozenset()
        case _:
            return frozenset([predicate.column])


@dataclass(frozen=True)
class _Binder:
    text: str
    schema: TableSchema

    def bind(self, node: tree.FilterNode, *, wanted: bool) -> Predicate:
        """What holds exactly where the node is TRUE, or with `wanted` False exactly where it is FALSE."""
        match node:
            case tree.Constant(holds):
                return Always(holds == wanted)
            case tree.Negated(part):
                return self.bind(part, wanted=not wanted)
            case tree.AllOf(parts) | tree.AnyOf(parts):
                bound = tuple(self.bind(part, wanted=wanted) for part in parts)
                return And(bound) if isinstance(node, tree.AllOf) == wanted else Or(bound)
            case tree.Null(name):
                return Missing(self._column(name).name, negated=not wanted)
            case tree.Truth(name):
                truth = tree.Compared(name, "=", tree.Literal("boolean", "true"))
                return self.bind(truth, wanted=wanted)
            case tree.Liked(name, pattern):
                return self._liked(self._column(name), pattern, wanted=wanted)
            case tree.Compared(name, operator, literal):
                known = (_OPERATORS if wanted else _OPPOSITE)[operator]
                return self._compared(self._column(name), known, literal)
            case tree.Listed(name, literals):
                return self._listed(self._column(name), literals, wanted=wanted)

    def _liked(self, column: DataField, pattern: str, *, wanted: bool) -> Predicate:
        if column.type.root != "VARCHAR":
            raise self._refused(column, "LIKE compares STRING and VARCHAR columns only")
        return Like(column.name, pattern, negated=not wanted)

    def _listed(self, column: DataField, literals: Iterable[tree.Literal], *, wanted: bool) -> Predicate:
        operator: Operator = "=" if wanted else "!="
        each = [self._compared(column, operator, literal) for literal in literals]
        if not wanted:
            return And(tuple(each))
        return OneOf(column.name, frozenset(one.value for one in each if isinstance(one, Compare)))

    def _column(self, name: str) -> DataField:
        """By its exact name, else without regard to case, as in SQL."""
        fields = self.schema.fields
        found = [one for one in fields if one.name == name] or [
            one for one in fields if one.name.lower() == name.lower()
        ]
        if len(found) != 1:
            names = ", ".join(self.schema.field_names)
            raise FixRequest(
                "TS1565",
                f"filter {self.text!r:.200} names column {name!r}",
                why=f"the columns are {names}",
                fix="name one of them; quote texts with ' and names with `",
            )
        return found[0]

    def _compared(self, column: DataField, operator: Operator, literal: tree.Literal) -> Predicate:
        root = column.type.root
        if not is_comparable(column.type):
            raise self._refused(column, f"values of {type_to_text(column.type)} are not compared by filters")
        if root in INTEGER_ROOTS or root == "DECIMAL":
            return self._compared_exactly(column, operator, literal)
        if root in TIMESTAMP_ROOTS:
            return _on_grid(column, operator, self._micros(column, literal), _TimeGrid(column))
        value = self._value(column, literal)
        if root == "BOOLEAN" and operator not in ("=", "!="):
            raise self._refused(column, f"operator {operator} does not compare BOOLEAN")
        return Compare(column.name, operator, value)

    def _value(self, column: DataField, literal: tree.Literal) -> Comparable:
        """Of a type whose literals need no rounding to a grid."""
        match column.type.root, literal.kind:
            case "BOOLEAN", "boolean":
                return int(literal.text == "true")
            case "VARCHAR", "text":
                return literal.text
            case "DATE", "date" | "text":
                return self._parsed(column, literal, _DATE, dt.date.fromisoformat)
            case "FLOAT" | "DOUBLE", "number":
                number = float(literal.text)
                if math.isinf(number):
                    raise self._refused(column, f"{literal.text[:40]} is too large for DOUBLE")
                return number
        raise self._misfit(column, literal)

    def _compared_exactly(self, column: DataField, operator: Operator, literal: tree.Literal) -> Predicate:
        if literal.kind != "number" or "e" in literal.text.lower():
            raise self._misfit(column, literal)
        digits = literal.text.removeprefix("-")
        number = int(literal.text) if digits.isdecimal() else Fraction(literal.text)
        return _on_grid(column, operator, number, _NumberGrid(column))

    def _micros(self, column: DataField, literal: tree.Literal) -> Fraction:
        if literal.kind not in ("timestamp", "text"):
            raise self._misfit(column, literal)
        moment = _TIME.fullmatch(literal.text)
        has_zone = moment is not None and moment["zone"] is not None
        if moment is not None and has_zone != (column.type.root == "TIMESTAMP_LTZ"):
            needs = "no offset" if has_zone else "an offset such as Z or +02:00"
            raise self._refused(
                column, f"a literal for {type_to_text(column.type)} has {needs}, got '{literal.text}'"
            )
        return Fraction(self._parsed(column, literal, _TIME, dt.datetime.fromisoformat))

    def _parsed(
        self,
        column: DataField,
        literal: tree.Literal,
        form: re.Pattern[str],
        parse: Callable[[str], dt.date],
    ) -> int:
        try:
            value = comparable(parse(literal.text), column.type) if form.fullmatch(literal.text) else None
        except ValueError:
            value = None
        if not isinstance(value, int):
            raise self._misfit(column, literal)
        return value

    def _misfit(self, column: DataField, literal: tree.Literal) -> FixRequest:
        return self._refused(column, f"{literal.kind} {literal.text!r:.60} is no value of its type")

    def _refused(self, column: DataField, why: str) -> FixRequest:
        return FixRequest(
            "TS1565",
            f"filter {self.text!r:.200} cannot compare column {column.name!r}",
            why=f"its type is {type_to_text(column.type)}: {why}",
            fix="write a literal of the column's type (docs/python-api.md#filters), or pass a pyarrow expression",
        )


# ---- values that lie on a grid -----------------------------------------------------------------------------


class _NumberGrid:
    """Integers, and decimals by their unscaled numbers."""

    def __init__(self, column: DataField) -> None:
        type_ = column.type
        self.scale = (type_.scale or 0) if type_.root == "DECIMAL" else 0
        self.step: Fraction | int = 1  # fractions take ten times as long
        if self.scale:
            self.step = Fraction(1, int(10**self.scale))
        if type_.root == "DECIMAL":
            self.high = int(10 ** (type_.precision or 38)) - 1
            self.low = -self.high
        else:
            self.high = int(2 ** (_INTEGER_BITS[type_.root] - 1)) - 1
            self.low = -self.high - 1
        self.is_decimal = type_.root == "DECIMAL"

    def value(self, steps: int) -> Comparable:
        """The number of so many steps; Decimal's own arithmetic would round to 28 digits."""
        if not self.is_decimal:
            return steps
        digits = tuple(int(digit) for digit in str(abs(steps)))
        return Decimal((int(steps < 0), digits, -self.scale))


class _TimeGrid:
    """Microseconds, in steps of the column's precision."""

    def __init__(self, column: DataField) -> None:
        self.micros = int(10 ** (6 - (column.type.precision or 0)))
        self.step = Fraction(self.micros)
        self.low, self.high = -(2**63) // self.micros, 2**63 // self.micros - 1

    def value(self, steps: int) -> Comparable:
        """Microseconds since 1970."""
        return steps * self.micros


def _on_grid(
    column: DataField, operator: Operator, number: Fraction | int, grid: _NumberGrid | _TimeGrid
) -> Predicate:
    """A comparison with a number that no value of the column may equal, by the nearest value below it."""
    steps = int(number // grid.step)
    is_exact = number == steps * grid.step
    every_value = Missing(column.name, negated=True)
    if steps > grid.high or (steps < grid.low):
        is_above = steps > grid.high
        holds = operator == "!=" or ((operator in ("<", "<=")) == is_above and operator != "=")
        return every_value if holds else NOTHING
    if is_exact:
        return Compare(column.name, operator, grid.value(steps))
    if operator in ("=", "!="):
        return every_value if operator == "!=" else NOTHING
    return Compare(column.name, "<=" if operator in ("<", "<=") else ">", grid.value(steps))
