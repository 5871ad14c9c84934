"""When a plan gives no rows: what is proven of a filter on an interval, and which nodes above it prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tablestore_engine.queryplan.empty_result import NoValues, find_empty_condition, holds, parse_bound
from tablestore_engine.queryplan.occurrences import TableColumns
from tablestore_engine.queryplan.plan_nodes import Expression, Place, PlanNode

PLACE = Place((), "", None)
LOW, HIGH = "2026-01-01 00:00:00+00:00", "2026-01-02 00:00:00+00:00"


def expression(kind: str, *children: Expression, **more: Any) -> Expression:
    """Of no place."""
    return Expression(kind, children, PLACE, **more)


def column(identity: int = 1, kind: str = "timestamp") -> Expression:
    """The event time."""
    return expression("AttributeReference", identity=identity, name="at", type=kind)


def node(kind: str, *children: PlanNode, facts: dict[str, Any] | None = None, **fields: Any) -> PlanNode:
    """Fields are tuples of expressions."""
    return PlanNode(kind, children, (), fields, facts or {})


def bound(comparison: str, text: str, of: Expression, kind: str = "timestamp") -> Expression:
    """`column >= cast(text)`."""
    literal = expression("Literal", type="string", facts={"value": text})
    return expression(comparison, of, expression("Cast", literal, type=kind))


def filtered(
    child: PlanNode | None = None, of: Expression | None = None, kind: str = "timestamp"
) -> PlanNode:
    """The filter that dbt writes."""
    of = of or column()
    both = (bound("GreaterThanOrEqual", LOW, of, kind), bound("LessThan", HIGH, of, kind))
    return node("Filter", child or node("LocalRelation", output=(column(),)), condition=both)


def found(root: PlanNode, *, is_fixed: bool = False) -> object:
    """The condition over one table."""
    condition = find_empty_condition(root, {1: TableColumns("demo.feed", is_fixed)})
    asked: list[NoValues] = []
    if condition is None:
        return None
    assert holds(condition, lambda one: bool(asked.append(one)) or True)
    assert not holds(condition, lambda _: False)
    return asked[0]


WANTED = NoValues("demo.feed", "at", "timestamp", LOW, HIGH)


def test_filter_on_a_table_is_proven() -> None:
    """Also through a projection that renames the column, and a view."""
    assert found(filtered()) == WANTED
    alias = expression("Alias", column(), identity=2, name="happened")
    renamed = node("Project", node("LocalRelation", output=(column(),)), projectList=(alias,))
    view = node("View", renamed, facts={"isTempView": False})
    assert found(filtered(view, column(2))) == WANTED


@pytest.mark.parametrize(
    "root",
    [
        filtered(kind="date"),
        filtered(node("View", node("LocalRelation", output=(column(),)), facts={"isTempView": True})),
        node("View", filtered(), facts={"isTempView": True}),
        node("Generate", filtered(), generator=(expression("PythonUDTF"),)),
        node("ScriptTransformation", filtered()),
        node("Aggregate", filtered(), groupingExpressions=(), aggregateExpressions=()),
        node("Union", filtered(), node("OneRowRelation")),
        node("Join", node("OneRowRelation"), filtered(), facts={"joinType": {"object": "LeftOuter$"}}),
        node("Join", filtered(), filtered(), facts={"joinType": {"object": "Unheard$"}}),
        node(
            "Filter",
            node("LocalRelation", output=(column(),)),
            condition=(bound("LessThan", HIGH, column()),),
        ),
        filtered(of=expression("Cast", column(), type="timestamp")),
    ],
)
def test_other_plans_prove_nothing(root: PlanNode) -> None:
    """Other types, temporary views, generators of users, unknown nodes, aggregates of all rows, outer joins."""
    assert found(root) is None


def test_table_at_a_version_proves_nothing() -> None:
    """Its rows are not those of the plain name."""
    assert found(filtered(), is_fixed=True) is None


@pytest.mark.parametrize(
    "text", ["2026-01-01", "2026-01-01 00:00:00", "2026-01-01 00:00:00+01:00", "1582-01-01 00:00:00+00:00"]
)
def test_bound_of_another_form_is_unknown(text: str) -> None:
    """What dbt does not write is not interpreted."""
    assert parse_bound(text, "timestamp") is None
