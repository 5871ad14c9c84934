"""What the signed rows of a query mean for its stored rows: rows themselves, or contributions to groups.

CHANGE     for which aggregate functions a `changed_keys` run adds up changes
Forms      rows    the root is linear: a signed row is a row of the result
           groups  one Aggregate over linear nodes, below nothing but renames and constants; the key is exactly its
                   grouping columns, or constants where it has none
INVARIANT  what is added up is exact in any order: counts, sums of integers and decimals, extremes of types whose equal
           values are the same value. Everything else raises NoDelta.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from tablestore_engine.queryplan.equal_values import is_carried, is_exact
from tablestore_engine.queryplan.known_columns import is_grouped
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import output_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Place, PlanNode
from tablestore_engine.queryplan.plan_rules import PASSED


class Expressions(Protocol):
    """What Catalyst's JSON does not say of an expression."""

    def type_of(self, place: Place) -> object:
        """As the JSON has those of attributes."""

    def name_of(self, place: Place) -> str:
        """Of the function: `sum` and `try_sum` are one class."""


GROUP, COUNT, SUM, SUM_OR_ZERO, MIN, MAX = "group", "count", "sum", "sum or zero", "min", "max"
DISTINCT = "count distinct"
# Catalyst's class → what its changes are added up by
FOLLOWED = {
    "Count": COUNT, "CountIf": COUNT, "Sum": SUM, "Min": MIN, "Max": MAX, "BoolAnd": MIN, "BoolOr": MAX,
}  # fmt: skip
_DIGITS_NEVER_LOST = 28  # a sum has ten digits more, up to 38
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_ORDERED = _INTEGERS | {"boolean", "date", "timestamp", "timestamp_ntz", "string"}


@dataclass(frozen=True)
class GroupColumn:
    """A column of the result. `how`: GROUP for a value that all rows of a group have, else how changes are added up.

    `values`: expressions over a row, one but for COUNT and DISTINCT, which count where none is NULL; `condition`: of
    FILTER and count_if. `type`: of the value, as Catalyst's JSON has it. `is_negative`: a SUM of the values below 0
    alone.
    """

    how: str
    values: tuple[Place, ...]
    condition: Place | None = None
    type: object = None
    is_negative: bool = False

    @property
    def counts_rows(self) -> bool:
        """count(*)."""
        return self.how == COUNT and not self.values and self.condition is None


@dataclass(frozen=True)
class GroupsRoot:
    """`below`: the node whose rows are grouped. `columns`: of the result, in its order. `is_total`: there is one group,
    also over no rows.
    """

    below: PlanNode
    columns: tuple[GroupColumn, ...]
    is_total: bool


def find_groups(
    root: PlanNode, key: Collection[int], expressions: Expressions, usable: Callable[[Expression], bool]
) -> GroupsRoot | None:
    """None: the root is no group by. `key`: ids of the root's columns. Raises NoDelta."""
    node, sources = root, {one: one for one in output_ids(root)}
    constants: dict[int, Expression] = {}
    while node.kind != "Aggregate":
        if node.kind == "Project":
            items = {one.identity: one for one in node.fields["projectList"]}
            for column, inner in list(sources.items()):
                item = items[inner]
                source = item if item.is_attribute else item.children[0]
                if source.is_attribute and source.identity is not None:
                    sources[column] = source.identity
                elif source.kind == "Literal":
                    constants[column] = item
                    del sources[column]
                else:
                    return None
        elif node.kind not in PASSED or node.kind == "Filter":
            return None
        if not node.children:
            return None
        node = node.children[0]
    return _Groups(node, expressions, usable).root(output_ids(root), sources, constants, key)


class _Groups:
    def __init__(
        self, node: PlanNode, expressions: Expressions, usable: Callable[[Expression], bool]
    ) -> None:
        self._node, self._expressions, self._usable = node, expressions, usable
        self._groups = node.fields["groupingExpressions"]

    def root(
        self,
        outputs: Iterable[int],
        sources: Mapping[int, int],
        constants: Mapping[int, Expression],
        key: Collection[int],
    ) -> GroupsRoot:
        items = {one.identity: one for one in self._node.fields["aggregateExpressions"]}
        found: list[GroupColumn] = []
        covered: set[Place] = set()
        for one in outputs:
            item = constants.get(one) or items[sources[one]]
            inner = item if item.is_attribute else item.children[0]
            column = self._column(item, inner)
            found.append(column)
            if one in key:
                same = {group.place for group in self._groups if inner.is_same(group)}
                if column.how != GROUP or (inner.references and not same):
                    raise NoDelta("a key that has more than the columns of GROUP BY")
                covered |= same
        if any(group.place not in covered for group in self._groups):
            raise NoDelta("a key without a column of GROUP BY")
        return GroupsRoot(self._node.children[0], tuple(found), not self._groups)

    def _column(self, item: Expression, inner: Expression) -> GroupColumn:
        if inner.kind == "Literal" or is_grouped(inner, self._groups):
            type_ = self._expressions.type_of(inner.place)
            if not is_exact(type_) or not self._usable(inner):
                raise NoDelta(f"a value of a group whose equal values can differ ({item.name})")
            return GroupColumn(GROUP, (inner.place,), type=type_)
        is_zeroed = inner.kind == "Coalesce" and len(inner.children) == 2 and _is_zero(inner.children[1])
        aggregate = inner.children[0] if is_zeroed else inner
        if aggregate.kind != "AggregateExpression":
            raise NoDelta(f"a column computed from aggregates ({item.name})")
        column = aggregate_column(aggregate, item.name, self._expressions, self._usable)
        if not is_zeroed:
            return column
        if column.how != SUM or not _is_never_lost(column.type):
            raise NoDelta(f"a column computed from aggregates ({item.name})")
        return GroupColumn(SUM_OR_ZERO, column.values, column.condition, column.type)


def aggregate_column(
    aggregate: Expression,
    name: str,
    expressions: Expressions,
    usable: Callable[[Expression], bool],
    how: str = "",
) -> GroupColumn:
    """How changes of an aggregate function are added up. `how`: for functions that are not FOLLOWED; `name`: of the
    column. Raises NoDelta.
    """
    function, *conditions = aggregate.children
    known = how or FOLLOWED.get(function.kind)
    is_other = function.kind == "Sum" and expressions.name_of(function.place) != "sum"
    is_distinct = aggregate.facts.get("isDistinct")
    if known is None or is_other or not (is_distinct is False or (is_distinct is True and known == COUNT)):
        raise NoDelta(f"an aggregate function whose changes cannot be added up ({name})")
    for one in (*function.children, *conditions):
        if not usable(one):
            raise NoDelta(f"an aggregate over a value that does not follow from one row ({name})")
    if function.kind == "CountIf":
        if conditions:
            raise NoDelta(f"count_if with FILTER ({name})")
        return GroupColumn(COUNT, (), function.children[0].place)
    condition = conditions[0].place if conditions else None
    if known == COUNT and is_distinct:
        return _distinct(function, condition, name, expressions)
    if known == COUNT:
        return GroupColumn(COUNT, tuple(_counted(function)), condition)
    value = function.children[0]
    type_ = expressions.type_of(value.place)
    if not _is_followed(known, type_):
        raise NoDelta(f"{'a sum' if known == SUM else 'an extreme'} of {type_} ({name})")
    return GroupColumn(known, (value.place,), condition, type_)


def _distinct(
    function: Expression, condition: Place | None, name: str, expressions: Expressions
) -> GroupColumn:
    values = tuple(_counted(function))
    types = [expressions.type_of(one) for one in values]
    if not values or not all(is_carried(one) and is_exact(one) for one in types):
        raise NoDelta(f"count(DISTINCT) of {', '.join(map(str, types)) or 'a constant'} ({name})")
    return GroupColumn(DISTINCT, values, condition, types[0])


def _counted(function: Expression) -> Iterator[Place]:
    """Without constants, which are never NULL but for NULL itself."""
    for one in function.children:
        if one.kind != "Literal" or one.facts.get("value") is None:
            yield one.place


def _is_followed(how: str, type_: object) -> bool:
    if not isinstance(type_, str):
        return False
    is_decimal = type_.startswith("decimal")
    return is_decimal or type_ in (_INTEGERS if how == SUM else _ORDERED)


def _is_never_lost(type_: object) -> bool:
    """Whether no sum of the type is NULL because it has too many digits."""
    return "decimal" not in str(type_) or int(str(type_)[8:].split(",")[0]) <= _DIGITS_NEVER_LOST


def _is_zero(expression: Expression) -> bool:
    """Also with a cast around it."""
    while expression.kind == "Cast":
        expression = expression.children[0]
    value = expression.facts.get("value") if expression.kind == "Literal" else None
    try:
        return value is not None and float(str(value)) == 0
    except ValueError:
        return False
