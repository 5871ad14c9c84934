"""Partial aggregates of which all columns of a grouped query follow: what a run keeps of each group between two runs.

CHANGE     which aggregate functions of a `changed_keys` query are kept as state
Form       one Aggregate over linear nodes, below projections and filters (HAVING); the key is exactly its grouping
           columns, or constants where it has none
Slots      GROUP for each column of the key, then COUNT, SUM, MIN and MAX of each aggregated expression, each once
INVARIANT  a slot is exact in any order of rows. An average is computed of a sum and a count by Spark's own expression,
           so nothing here says how Spark divides or rounds. An average of integers is a sum of DOUBLE in Spark: it is
           exact below 2^53, which the slot of negative values bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tablestore_engine.queryplan.delta_root import (
    DISTINCT,
    GROUP,
    SUM,
    Expressions,
    GroupColumn,
    aggregate_column,
)
from tablestore_engine.queryplan.equal_values import is_exact, is_float
from tablestore_engine.queryplan.known_columns import is_grouped
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode
from tablestore_engine.queryplan.plan_rules import PASSED

AVERAGE = "average"


class BufferedExpressions(Expressions, Protocol):
    """With what Spark adds up."""

    def buffer_type_of(self, place: Place) -> object:
        """Of the first buffer of an aggregate function, as Catalyst's JSON has types."""


@dataclass(frozen=True)
class KeptAggregate:
    """An aggregate function of the query. `slot`: of its count, sum or extreme; of an average, of its sum. `negatives`:
    of the negative values of an average of integers.

    `type`: of the result; of an average, of Spark's sum.
    """

    how: str
    slot: int
    type: object
    negatives: int | None = None


@dataclass(frozen=True)
class StateRoot:
    """`above`: projections and filters over `aggregate`, from the lowest to the root. `slots`: the first `width` are
    those of the key, in its order; a total has none of these. `groups`: grouping expressions, each with its slot.
    `kept`: by the place of the AggregateExpression.
    """

    aggregate: PlanNode
    above: tuple[Path, ...]
    slots: tuple[GroupColumn, ...]
    width: int
    groups: tuple[tuple[Expression, int], ...]
    kept: Mapping[Place, KeptAggregate]

    @property
    def below(self) -> PlanNode:
        """Whose rows are grouped."""
        return self.aggregate.children[0]

    @property
    def is_total(self) -> bool:
        """There is one group, also over no rows."""
        return not self.aggregate.fields["groupingExpressions"]

    def text(self) -> str:
        """What the columns of a state mean: another text is another state."""
        return "\n".join(
            f"{one.how} {one.values} {one.condition} {one.type} {one.is_negative}" for one in self.slots
        )


def find_state(
    root: PlanNode,
    key: Sequence[int],
    expressions: BufferedExpressions,
    usable: Callable[[Expression], bool],
) -> StateRoot | None:
    """None: the root is no group by. `key`: ids of the root's columns. Raises NoDelta."""
    node, above = root, list[PlanNode]()
    while node.kind != "Aggregate":
        if node.kind != "Project" and node.kind not in PASSED:
            return None
        if node.kind in ("Project", "Filter"):
            above.insert(0, node)
        node = node.children[0]
    sources: dict[int, int | None] = {one: one for one in key}
    for one in reversed(above):
        if one.kind == "Project":
            sources = {identity: _source(one, inner) for identity, inner in sources.items()}
    for one in above:
        for each in one.expressions:
            if not usable(each):
                raise NoDelta(f"{each.name or each.kind}, whose value does not follow from one row")
    found = _Slots(node, expressions, usable)
    found.add_key([sources[one] for one in key])
    for item in node.fields["aggregateExpressions"]:
        found.add_item(item)
    has_filter = any(one.kind == "Filter" for one in above)
    if has_filter and not node.fields["groupingExpressions"]:
        raise NoDelta("HAVING of a total without GROUP BY")
    paths = tuple(one.path for one in above)
    return StateRoot(node, paths, tuple(found.slots), found.width, tuple(found.groups), found.kept)


def _source(node: PlanNode, inner: int | None) -> int | None:
    """The column below that a column of a projection is; None for a constant. Raises NoDelta."""
    if inner is None:
        return None
    item = next(one for one in node.fields["projectList"] if one.identity == inner)
    source = item if item.is_attribute else item.children[0]
    if source.is_attribute:
        return source.identity
    if source.kind == "Literal":
        return None
    raise NoDelta(f"a key that is computed from a group ({item.name})")


class _Slots:
    def __init__(
        self, node: PlanNode, expressions: BufferedExpressions, usable: Callable[[Expression], bool]
    ) -> None:
        self._expressions, self._usable = expressions, usable
        self._groups: Sequence[Expression] = node.fields["groupingExpressions"]
        self._items = {one.identity: one for one in node.fields["aggregateExpressions"]}
        self._known: list[tuple[GroupColumn, tuple[Expression, ...]]] = []
        self.slots: list[GroupColumn] = []
        self.groups: list[tuple[Expression, int]] = []
        self.width = 0
        self.kept: dict[Place, KeptAggregate] = {}

    def add_key(self, sources: Iterable[int | None]) -> None:
        """One slot for each column; a total has the same key whatever its rows are."""
        covered: set[Place] = set()
        for one in sources:
            item = None if one is None else self._items[one]
            inner = item if item is None or item.is_attribute else item.children[0]
            if not self._groups and (inner is None or inner.kind == "Literal"):
                continue
            same = [group for group in self._groups if inner is not None and inner.is_same(group)]
            if item is None or inner is None or not same:
                raise NoDelta("a key that has more than the columns of GROUP BY")
            type_ = self._expressions.type_of(inner.place)
            if not is_exact(type_) or not self._usable(inner):
                raise NoDelta(f"a value of a group whose equal values can differ ({item.name})")
            self._known.append((column := GroupColumn(GROUP, (inner.place,), type=type_), (inner,)))
            self.groups += [(group, len(self.slots)) for group in same]
            self.slots.append(column)
            covered |= {group.place for group in same}
        self.width = len(self.slots)
        if any(group.place not in covered for group in self._groups):
            raise NoDelta("a key without a column of GROUP BY")

    def add_item(self, item: Expression) -> None:
        """A column of the Aggregate: constants, groups and aggregates, and what is computed of them."""
        if not self._usable(item):
            raise NoDelta(f"an aggregate over a value that does not follow from one row ({item.name})")
        self._add_part(item, item.name)

    def _add_part(self, part: Expression, name: str) -> None:
        if part.kind == "AggregateExpression":
            self._add_aggregate(part, name)
        elif not is_grouped(part, self._groups):
            for child in part.children:
                self._add_part(child, name)

    def _add_aggregate(self, aggregate: Expression, name: str) -> None:
        function, *conditions = aggregate.children
        used = (*function.children, *conditions)
        if function.kind == "Average":
            self._add_average(aggregate, used, name)
            return
        column = aggregate_column(aggregate, name, self._expressions, self._usable)
        if column.how == DISTINCT:
            raise NoDelta(f"count(DISTINCT) beside a state of groups ({name})")
        slot = self._add(column, used)
        self.kept[aggregate.place] = KeptAggregate(
            column.how, slot, self._expressions.type_of(aggregate.place)
        )

    def _add_average(self, aggregate: Expression, used: tuple[Expression, ...], name: str) -> None:
        function = aggregate.children[0]
        if self._expressions.name_of(function.place) not in ("avg", "mean"):
            raise NoDelta(f"an aggregate function whose changes cannot be added up ({name})")
        column = aggregate_column(aggregate, name, self._expressions, self._usable, how=SUM)
        slot, buffer = self._add(column, used), self._expressions.buffer_type_of(function.place)
        negatives = None
        if is_float(buffer):
            negatives = self._add(replace(column, is_negative=True), used)
        self.kept[aggregate.place] = KeptAggregate(AVERAGE, slot, buffer, negatives)

    def _add(self, column: GroupColumn, used: tuple[Expression, ...]) -> int:
        """The number of its slot."""
        for number, (known, parts) in enumerate(self._known):
            if _is_same(known, column) and _all_same(parts, used):
                return number
        self._known.append((column, used))
        self.slots.append(column)
        return len(self.slots) - 1


def _is_same(one: GroupColumn, other: GroupColumn) -> bool:
    return (one.how, len(one.values), one.condition is None, one.type, one.is_negative) == (
        other.how, len(other.values), other.condition is None, other.type, other.is_negative,
    )  # fmt: skip


def _all_same(some: Collection[Expression], others: Collection[Expression]) -> bool:
    return len(some) == len(others) and all(map(Expression.is_same, some, others))
