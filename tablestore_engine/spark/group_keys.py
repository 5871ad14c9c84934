"""Whether the key of a stateful query identifies its groups: a proof over the analyzed plan.

find_loose_key   a streaming frame, its texts and the key of its table → the clause that is not proven, or None
Rule    For each aggregate or DISTINCT of a stream, with the key's columns written over its input:
        1. The group determines the key: each column is made of grouping expressions alone, without totals, subqueries
           and functions that change from run to run. Otherwise the row under the key's earlier value would stay.
        2. The key determines the group: each grouping expression is a column of the key as it is, by a cast that keeps
           every value apart, by start or end of a `window(…)`, or a function of grouping expressions that are.
           Otherwise groups would overwrite each other.
        3. Branches of a UNION over aggregates differ in a constant column of the key.
REQUIRES   find_stale has nothing to say in update mode: only projections and unions stand above an aggregate.
INVARIANT  what is not known to be injective counts as not: lower(c), concat(a, b) and a date of a timestamp are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from pyspark.sql import DataFrame

from tablestore_engine.spark.moving_times import find_moving_time
from tablestore_engine.spark.plan_expressions import (
    Composer,
    Jvm,
    each,
    expr_id,
    is_window,
    keeps_value,
    used_ids,
    window_of,
)

_GROUPS = ("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark")
_TAGS = ("string", "tinyint", "smallint", "int", "bigint", "boolean")
_PASSES = ("SubqueryAlias", "View", "Filter", "EventTimeWatermark", "Repartition", "RepartitionByExpression")


def find_loose_key(frame: DataFrame, texts: Iterable[str], key: Sequence[str]) -> str | None:
    """`texts`: the frame's SQL, and of functions in it. A name of the key that is no column is not looked at."""
    plan = frame._jdf.queryExecution().analyzed()
    columns = {str(one.name()).lower(): one for one in each(plan.output())}
    names = [name for name in key if name.lower() in columns]
    moving = find_moving_time(frame.sparkSession, plan, texts)
    proof = _Proof(Composer(frame.sparkSession), names, is_dated=moving is not None)
    return proof.look(plan, [columns[name.lower()] for name in names])


class _Proof:
    """Down the plan, to the first aggregates. `is_dated`: the query has a time of the run."""

    def __init__(self, composer: Composer, names: Sequence[str], *, is_dated: bool) -> None:
        self._composer, self._names, self._is_dated = composer, names, is_dated
        self._definitions: dict[int, Jvm] = {}  # of CTEs

    def look(self, plan: Jvm, key: Sequence[Jvm]) -> str | None:
        """`key`: the key's columns over the output of `plan`."""
        kind = plan.nodeName()
        if kind == "Aggregate":
            made = self._composer.below(key, plan.aggregateExpressions())
            return self._check(plan, each(plan.groupingExpressions()), made)
        if kind in _GROUPS:
            return self._check(plan, each(plan.output() if kind == "Distinct" else plan.keys()), key)
        if kind == "WithCTE":
            self._definitions |= {one.id(): one.child() for one in each(plan.cteDefs())}
            return self.look(plan.plan(), key)
        if kind == "Union":
            return self._in_union(plan, key)
        if not self._has_groups(plan):
            return None
        if len(each(plan.children())) > 1:
            return "a join over an aggregate: nothing proves that unique_key has one row"
        child, below = self._step(plan, key)
        return self.look(child, below)

    def _step(self, plan: Jvm, key: Sequence[Jvm]) -> tuple[Jvm, list[Jvm]]:
        """The only child, and the expressions over it."""
        kind = plan.nodeName()
        if kind == "CTERelationRef":
            child = self._definitions[plan.cteId()]
            return child, self._composer.placed(key, each(plan.output()), each(child.output()))
        child = each(plan.children())[0]
        if kind == "Project":
            return child, self._composer.below(key, plan.projectList())
        if kind == "Aggregate":
            return child, self._composer.below(key, plan.aggregateExpressions())
        return child, list(key)

    def _check(self, plan: Jvm, groups: Sequence[Jvm], made: Sequence[Jvm]) -> str | None:
        for name, one in zip(self._names, made, strict=True):
            if self._composer.is_total(one):
                return f"{name} of unique_key is a total: when it changes, the row of the value before would stay"
            if self._composer.moves(one) or (self._is_dated and one.foldable()):
                return f"{name} of unique_key is another in each run"
        kept = [one for one in groups if self._is_kept(plan, one, made)]
        ids = frozenset(expr_id(one) for one in kept if one.nodeName() == "AttributeReference")
        for one in groups:
            is_constant = one.foldable() and not self._is_dated and not self._composer.moves(one)
            is_derived = bool(used_ids(one)) and used_ids(one) <= ids and not self._composer.moves(one)
            if not (is_constant or is_derived or any(one is each for each in kept)):
                return (
                    f"{one.sql()} is grouped by, and no column of unique_key has it as it is: rows of several groups "
                    "would take each other's place"
                )
        return None

    def _is_kept(self, plan: Jvm, group: Jvm, made: Sequence[Jvm]) -> bool:
        """Whether a column of the key has another value for each value of the grouping expression."""
        for one in made:
            if keeps_value(one, group):
                return True
            window = window_of(one)
            if window is not None and window.semanticEquals(group) and _is_time_window(plan.child(), group):
                return True
        return False

    def _in_union(self, plan: Jvm, key: Sequence[Jvm]) -> str | None:
        branches = [
            (one, self._composer.placed(key, each(plan.output()), each(one.output())))
            for one in each(plan.children())
        ]
        if not any(self._has_groups(one) for one, _ in branches):
            return None
        found = next(filter(None, (self.look(one, made) for one, made in branches)), None)
        if found is not None:
            return found
        tags = [self._tags(one, made) for one, made in branches]
        if all(any(a is not None and b is not None and a != b for a, b in zip(*two, strict=True))
               for two in combinations(tags, 2)):  # fmt: skip
            return None
        return "a UNION over an aggregate, whose branches can give the same unique_key"

    def _tags(self, plan: Jvm, made: Sequence[Jvm]) -> list[str | None]:
        """Constants among the key's columns of a branch."""
        current = list(made)
        while plan.nodeName() in (*_PASSES, "Project", "Aggregate", "CTERelationRef"):
            plan, current = self._step(plan, current)
        return [self._constant(one) for one in current]

    def _constant(self, expression: Jvm) -> str | None:
        if not expression.foldable() or self._composer.moves(expression) or self._is_dated:
            return None
        value = expression.eval(None)
        return (
            str(value) if value is not None and str(expression.dataType().simpleString()) in _TAGS else None
        )

    def _has_groups(self, plan: Jvm) -> bool:
        kind = plan.nodeName()
        if kind == "WithCTE":
            self._definitions |= {one.id(): one.child() for one in each(plan.cteDefs())}
        if kind == "CTERelationRef":
            return self._has_groups(self._definitions[plan.cteId()])
        if kind in _GROUPS and plan.isStreaming():
            return True
        return any(map(self._has_groups, each(plan.children())))


def _is_time_window(plan: Jvm, attribute: Jvm) -> bool:
    """Whether `window(…)` makes the attribute below `plan`, through nodes that pass it on."""
    if attribute.nodeName() != "AttributeReference":
        return False
    wanted = expr_id(attribute)
    while True:
        kind = plan.nodeName()
        if kind == "Project":
            found = next((one for one in each(plan.projectList()) if expr_id(one) == wanted), None)
            if found is None:
                return False
            if found.nodeName() == "Alias":
                if (
                    found.child().nodeName() != "AttributeReference"
                ):  # a field of a struct has its metadata too
                    return found.child().nodeName() != "GetStructField" and is_window(found)
                wanted = expr_id(found.child())
        elif kind == "Expand":
            child = {expr_id(one) for one in each(plan.child().output())}
            if wanted not in child:
                found = next((one for one in each(plan.output()) if expr_id(one) == wanted), None)
                return found is not None and is_window(found)
        elif kind not in _PASSES:
            return False
        plan = plan.child()
