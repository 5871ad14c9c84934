"""Catalyst's logical plan as frozen values: nodes, expressions, and the place of each in Spark's own plan.

INVARIANT  a node or expression that this module does not know keeps its class name and children: callers decide by
           name and refuse what they do not know.
INVARIANT  `place` leads back to the JVM object: the child indexes of the node, then field, item and child indexes of
           the expression. The plan that the JSON was made from is not changed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Path = tuple[int, ...]


def is_within(path: Path, above: Path) -> bool:
    """Whether a node is another one, or lies below it."""
    return path[: len(above)] == above


@dataclass(frozen=True)
class Place:
    """Of an expression: its node, the field of the node, the item of that field (None: the field is one expression),
    child indexes below.
    """

    node: Path
    field: str
    item: int | None
    below: Path = ()


@dataclass(frozen=True)
class Expression:
    """`kind`: Catalyst's class name. `identity`: the ExprId of an attribute or alias. `plans`: of a subquery."""

    kind: str
    children: tuple[Expression, ...]
    place: Place
    identity: int | None = None
    name: str = ""
    type: object = None
    is_nullable: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    plans: tuple[PlanNode, ...] = ()

    @property
    def is_attribute(self) -> bool:
        """A column of a child, as it is."""
        return self.kind == "AttributeReference"

    @cached_property
    def references(self) -> frozenset[int]:
        """Ids of the attributes in it, its subqueries' outer references included."""
        if self.is_attribute and self.identity is not None:
            return frozenset([self.identity])
        inside = [outer for plan in self.plans for outer in _outer_references(plan)]
        return frozenset(inside).union(*(child.references for child in self.children))

    def walk(self) -> Iterator[Expression]:
        """Itself and everything below, not the plans of subqueries."""
        yield self
        for child in self.children:
            yield from child.walk()

    def is_same(self, other: Expression) -> bool:
        """Structurally equal: the same function of the same attributes."""
        if self.kind != other.kind or len(self.children) != len(other.children) or self.plans or other.plans:
            return False
        if self.is_attribute:
            return self.identity == other.identity
        if self.facts != other.facts or self.type != other.type:
            return False
        return all(map(Expression.is_same, self.children, other.children))


@dataclass(frozen=True)
class PlanNode:
    """`fields`: expressions by the name of the node's field. `facts`: other fields, as JSON has them."""

    kind: str
    children: tuple[PlanNode, ...]
    path: Path
    fields: Mapping[str, tuple[Expression, ...]]
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def expressions(self) -> Iterator[Expression]:
        """Of the node itself."""
        for found in self.fields.values():
            yield from found

    def walk(self) -> Iterator[PlanNode]:
        """Itself and all nodes below, not those of subqueries in expressions."""
        yield self
        for child in self.children:
            yield from child.walk()

    @cached_property
    def subqueries(self) -> tuple[PlanNode, ...]:
        """Plans in the expressions of the node."""
        return tuple(plan for one in self.expressions for part in one.walk() for plan in part.plans)

    def walk_all(self) -> Iterator[PlanNode]:
        """Nodes of subqueries as well."""
        for node in self.walk():
            yield node
            for plan in node.subqueries:
                yield from plan.walk_all()

    @property
    def join_type(self) -> str:
        """Of a Join: Inner, Cross, LeftOuter, RightOuter, FullOuter, LeftSemi, LeftAnti, ExistenceJoin, …"""
        found = self.facts.get("joinType") or {}
        name = str(found.get("object") or found.get("product-class") or "")
        return name.rsplit(".", maxsplit=1)[-1].removesuffix("$")


def read_plan(text: str) -> PlanNode:
    """Of `LogicalPlan.toJSON`."""
    return _read_nodes(json.loads(text), ())


_IGNORED = frozenset({"class", "num-children", "child", "left", "right", "children"})
# facts that do not change what an expression computes
_NO_MEANING = frozenset({
    "exprId", "qualifier", "metadata", "explicitMetadata", "nonInheritableMetadataKeys", "resultId", "origin",
})  # fmt: skip


def _read_nodes(nodes: Sequence[Mapping[str, Any]], path: Path, prefix: int | None = None) -> PlanNode:
    found, rest = _read_node(nodes, 0, path, prefix)
    assert rest == len(nodes), "a plan with nodes that belong to no parent"
    return found


def _read_node(
    nodes: Sequence[Mapping[str, Any]], index: int, path: Path, prefix: int | None
) -> tuple[PlanNode, int]:
    raw = nodes[index]
    fields: dict[str, tuple[Expression, ...]] = {}
    facts: dict[str, Any] = {}
    for name, value in raw.items():
        if name in _IGNORED:
            continue
        expressions = _read_field(name, value, path)
        if name == "joinType" and "exists" in value:
            fields["joinType.exists"] = (_read_expression(value["exists"], Place(path, name, None)),)
        if expressions is None:
            facts[name] = value
        else:
            fields[name] = expressions
    children, following = [], index + 1
    for number in range(raw["num-children"]):
        child, following = _read_node(nodes, following, (*path, number), prefix)
        children.append(child)
    return PlanNode(_short(raw["class"]), tuple(children), path, fields, facts), following


def _read_field(name: str, value: object, path: Path) -> tuple[Expression, ...] | None:
    """None: it holds no expression."""
    if not isinstance(value, list):
        return None
    if _is_expression(value):
        return (_read_expression(value, Place(path, name, None)),)
    flat = [part for one in value for part in one] if _is_table(value) else value
    if flat and all(isinstance(one, list) and _is_expression(one) for one in flat):
        return tuple(_read_expression(one, Place(path, name, number)) for number, one in enumerate(flat))
    return () if value == [] else None


def _is_table(value: Sequence[Any]) -> bool:
    """Rows of expressions, as Expand has them; they are numbered row by row."""
    return bool(value) and all(
        isinstance(row, list) and row and all(isinstance(one, list) for one in row) for row in value
    )


def _is_expression(value: Sequence[Any]) -> bool:
    return bool(value) and isinstance(value[0], dict) and "class" in value[0] and "num-children" in value[0]


def _read_expression(parts: Sequence[Mapping[str, Any]], place: Place) -> Expression:
    found, _ = _read_part(parts, 0, place)
    return found


def _read_part(parts: Sequence[Mapping[str, Any]], index: int, place: Place) -> tuple[Expression, int]:
    raw = parts[index]
    children, following = [], index + 1
    for number in range(raw["num-children"]):
        below = Place(place.node, place.field, place.item, (*place.below, number))
        child, following = _read_part(parts, following, below)
        children.append(child)
    kind = _short(raw["class"])
    identity = raw.get("exprId")
    plans = tuple(
        _read_nodes(value, ())
        for name, value in raw.items()
        if name == "plan" and isinstance(value, list) and _is_expression(value)
    )
    facts = {
        name: value
        for name, value in raw.items()
        if name not in _IGNORED and name not in _NO_MEANING and name != "plan"
    }
    is_named = kind in ("AttributeReference", "Alias")
    made = Expression(
        kind,
        tuple(children),
        place,
        int(identity["id"]) if is_named and identity else None,
        str(raw.get("name", "")),
        raw.get("dataType"),
        bool(raw.get("nullable", True)),
        {} if is_named else facts,
        plans,
    )
    return made, following


def _short(name: str) -> str:
    """A class without its package; a Scala object has a `$` at its end."""
    return name.rsplit(".", maxsplit=1)[-1].removesuffix("$").rsplit("$", maxsplit=1)[-1]


def _outer_references(plan: PlanNode) -> Iterator[int]:
    for node in plan.walk_all():
        for expression in node.expressions:
            for part in expression.walk():
                if part.kind == "OuterReference":
                    yield from part.references
