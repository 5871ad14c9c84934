"""Queries whose changes add up, which deltas follow: counts, sums and extremes over joins, unions and filters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from integration_tests.soak.query_attack.expressions import Expr, condition
from integration_tests.soak.query_attack.froms import Scope, exploded
from integration_tests.soak.query_attack.heads import (
    Out,
    add_item,
    distinct,
    grouping_columns,
    projection,
    rel_of,
)
from integration_tests.soak.query_attack.joins import join, pick_pairs, start
from integration_tests.soak.query_attack.relation import From, Ref, Rel

BY_KEY = "join by a key"
_KINDS = ("inner", "inner", "inner", "inner", "left", "semi")


def linear(scope: Scope) -> Rel:
    """One SELECT over joins, or over a union of a table with itself."""
    rng = scope.rng
    found = start(scope.names, _doubled(scope) if rng.random() < 0.15 else scope.base())
    is_exploded = rng.random() < 0.06  # LATERAL VIEW stands behind joins
    found = exploded(scope) if is_exploded else found
    for _ in () if is_exploded else range(rng.choice((0, 0, 1, 1, 1, 2))):
        rel = scope.base()
        pairs = pick_pairs(rng, found, rel)
        found = join(scope.names, found, rel, rng.choice(_KINDS), pairs) if pairs else found
        if any(key <= {col.name for _, col in pairs} for key in rel.keys):
            found = replace(found, traits=found.traits.add(BY_KEY))
    for _ in range(rng.choice((0, 0, 1, 2))):
        found = replace(found, where=(*found.where, condition(rng, found.refs)[0]))
    makers: tuple[Callable[[Scope, From], Rel], ...] = (
        projection,
        added,
        added,
        added,
        total_added,
        distinct,
    )
    made = rng.choices(makers, (25, 20, 20, 10, 15, 10))[0](scope, found)
    return replace(made, traits=made.traits.add("linear"))


def _doubled(scope: Scope) -> Rel:
    """UNION ALL of two parts of one relation."""
    rel = scope.base()
    sides = []
    for _ in range(2):
        alias = scope.names.alias()
        where = condition(scope.rng, [Ref(f"{alias}.{one.name}", one) for one in rel.cols])[0]
        items = ", ".join(f"{alias}.{one.name}" for one in rel.cols)
        sides.append(
            f"select {items} from {rel.item} {alias}"
            + (f" where {where}" if scope.rng.random() < 0.6 else "")
        )
    traits = rel.traits.add("union all of one table")
    return Rel(f"({' union all '.join(sides)})", rel.cols, (), traits)


def _aggregate(scope: Scope, found: From) -> Expr:
    """What deltas add up, and now and then what they do not."""
    rng, ref = scope.rng, scope.rng.choice(found.refs)
    numbers = [one for one in found.refs if one.col.type in ("int", "bigint", "decimal")]
    if numbers and rng.random() < 0.6:
        ref = rng.choice(numbers)
    x, kind, deps = ref.sql, ref.col.type, ref.col.deps | {ref.col.ident}
    forms = [("count(*)", "bigint", False), ("count(*)", "bigint", False), (f"count({x})", "bigint", False)]
    if kind in ("int", "bigint", "decimal"):
        most = "decimal" if kind == "decimal" else "bigint"
        zero = "0.00" if kind == "decimal" else "0"
        forms += [(f"sum({x})", most, True)] * 4 + [(f"coalesce(sum({x}), {zero})", most, False)]
    if kind not in ("boolean", "double", "real", "real_group"):
        forms += [(f"{rng.choice(('max', 'min'))}({x})", ref.col.grouped().type, True)] * 3
    if kind not in ("double", "real", "real_group"):
        forms += [(f"count(distinct {x})", "bigint", False)]
    if kind == "boolean":
        forms += [(f"{rng.choice(('bool_and', 'bool_or'))}({x})", kind, True)] * 2
    text, result, null = rng.choice(forms)
    if rng.random() < 0.2 and not text.startswith("coalesce"):
        text, null = f"{text} filter (where {condition(rng, found.refs)[0]})", not text.startswith("count")
    return Expr(text, result, null, deps, True)


def added(scope: Scope, found: From) -> Rel:
    """GROUP BY columns without NULL."""
    rng, outs = scope.rng, list[Out]()
    columns = grouping_columns(rng, found, rng.choice((1, 1, 2)), computed=0.15)
    terms = tuple(f"{one.text} is not null" for one in columns if one.null)
    found = replace(found, where=(*found.where, *terms))
    groups = [add_item(rng, outs, replace(one, null=False)) for one in columns]
    for _ in range(rng.randint(1, 4)):
        add_item(rng, outs, _aggregate(scope, found))
    traits = found.traits.add("group by")
    if any(one.expr.derived for one in groups):
        traits = traits.add(reason="group by a derived column")
    rest = f"{found.clause()} group by {', '.join(one.expr.text for one in groups)}"
    return rel_of(scope, outs, rest, [frozenset(one.name for one in groups)], traits)


def total_added(scope: Scope, found: From) -> Rel:
    """One row over everything."""
    rng, outs = scope.rng, [Out("one", Expr("1", "int", False, frozenset(), False))]
    for _ in range(rng.randint(1, 4)):
        add_item(rng, outs, _aggregate(scope, found))
    traits = found.traits.add("total", reason="total over all rows")
    return rel_of(scope, outs, found.clause(), [frozenset({"one"})], traits)
