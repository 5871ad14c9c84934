"""Where a plan reads tables: each occurrence is one reading of one table, with the columns that the query uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tablestore_engine.queryplan.plan_nodes import Expression, Path, PlanNode
from tablestore_engine.queryplan.plan_rules import LEAVES, TRACED


@dataclass(frozen=True)
class TableColumns:
    """One reading of a table as Spark's analyzer made it.

    `table`: schema.table; `is_fixed`: at a version that the text names, so its rows never change; `primary_key`: names.
    """

    table: str
    is_fixed: bool
    primary_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Occurrence:
    """`path`: of its leaf; () in a subquery of an expression, which has no place in the tree of nodes.

    `columns`: ExprId → name, of the columns that the query uses, at least one.
    """

    path: Path
    source: TableColumns
    columns: Mapping[int, str]
    in_subquery: bool

    @property
    def table(self) -> str:
        """schema.table."""
        return self.source.table

    @property
    def key_ids(self) -> frozenset[int]:
        """ExprIds of the primary key's columns; those that the query does not use are not there."""
        key = {name.lower() for name in self.source.primary_key}
        return frozenset(identity for identity, name in self.columns.items() if name.lower() in key)


def find_occurrences(plan: PlanNode, tables: Mapping[int, TableColumns]) -> tuple[Occurrence, ...]:
    """`tables`: by the ExprId of the first column of a leaf."""
    used = used_ids(plan)
    return tuple(_occurrences(plan, tables, used, in_subquery=False))


def find_untracked(plan: PlanNode, tables: Mapping[int, TableColumns]) -> str | None:
    """A leaf that is no table of the warehouse and may have other rows in each run."""
    for node in plan.walk_all():
        if (
            not node.children
            and node.kind not in LEAVES | {"UnionLoopRef"}
            and _table_of(node, tables) is None
        ):
            return node.kind
    return None


def used_ids(plan: PlanNode) -> frozenset[int]:
    """Attributes that the result depends on; a few too many do no harm."""
    used: set[int] = set(output_ids(plan))
    for node in plan.walk_all():
        for expression in node.expressions:
            if not node.children and expression.is_attribute:
                continue  # a leaf's own columns
            for part in expression.walk():
                used |= part.references
        by_name = node.kind in TRACED and node.kind != "Union"
        for child in () if by_name else node.children:  # columns of the others count by their positions
            used |= set(output_ids(child))
        for subquery in node.subqueries:
            used |= set(output_ids(subquery))
    return frozenset(used)


def output_ids(node: PlanNode) -> tuple[int, ...]:
    """ExprIds of the columns of a node's rows, in their order."""
    match node.kind:
        case "Project":
            return _ids(node.fields["projectList"])
        case "Aggregate":
            return _ids(node.fields["aggregateExpressions"])
        case "Window":
            return output_ids(node.children[0]) + _ids(node.fields["windowExpressions"])
        case "Generate":
            return output_ids(node.children[0]) + _ids(node.fields["generatorOutput"])
        case "Expand":
            return _ids(node.fields["output"])
        case "Join":
            return _join_output(node)
        case _ if node.children:
            return output_ids(node.children[0])
        case _:
            return _ids(node.fields.get("output", ()))


def attributes_of(plan: PlanNode) -> dict[int, Expression]:
    """ExprId → one of the expressions that have it: an attribute, else the alias that makes it."""
    found: dict[int, Expression] = {}
    for node in plan.walk():
        for expression in node.expressions:
            for part in expression.walk():
                if part.identity is not None and (part.is_attribute or part.identity not in found):
                    found[part.identity] = part
        exists = _exists(node)
        if exists is not None:
            found.setdefault(exists.identity or 0, exists)
    return found


def _occurrences(
    plan: PlanNode, tables: Mapping[int, TableColumns], used: frozenset[int], *, in_subquery: bool
) -> Iterator[Occurrence]:
    for node in plan.walk():
        source = _table_of(node, tables)
        if source is not None:
            yield Occurrence(() if in_subquery else node.path, source, _used(node, source, used), in_subquery)
        for subquery in node.subqueries:
            yield from _occurrences(subquery, tables, used, in_subquery=True)


def _used(node: PlanNode, source: TableColumns, used: frozenset[int]) -> dict[int, str]:
    """Of a leaf. If only its rows count, one column, of the primary key if there is one: an update changes no count."""
    names = {one.identity: one.name for one in node.fields["output"] if one.identity is not None}
    found = {one: name for one, name in names.items() if one in used}
    first = source.primary_key[0].lower() if source.primary_key else ""
    ordered = sorted(names.items(), key=lambda one: one[1].lower() != first)
    return found or dict(ordered[:1])


def _table_of(node: PlanNode, tables: Mapping[int, TableColumns]) -> TableColumns | None:
    if node.children or node.kind != "LocalRelation":
        return None
    ids = _ids(node.fields.get("output", ()))
    return tables.get(ids[0]) if ids else None


def _join_output(node: PlanNode) -> tuple[int, ...]:
    left, right = (output_ids(child) for child in node.children)
    if node.join_type in ("LeftSemi", "LeftAnti"):
        return left
    exists = _exists(node)
    if exists is not None:
        return (*left, exists.identity or 0)
    return left + right


def _exists(node: PlanNode) -> Expression | None:
    """The column of an ExistenceJoin."""
    found = node.fields.get("joinType.exists", ())
    return found[0] if found else None


def _ids(expressions: tuple[Expression, ...]) -> tuple[int, ...]:
    return tuple(one.identity for one in expressions if one.identity is not None)
