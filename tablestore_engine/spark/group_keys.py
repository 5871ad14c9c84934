"""Whether rows that are put whenever a total changes always come back to the key that they were put on.

Names      find_loose_key   a streaming frame and the key of its table → what makes a group change its key, or None
Rule       of each aggregate or DISTINCT of a stream: every column of the key is made of columns that are grouped by,
           and of nothing else (a total in it changes, and the row under the old value would stay); every column that
           is grouped by is in the key (else several groups would take each other's place).
REQUIRES   find_stale has nothing to say: only projections and unions stand over an aggregate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

Jvm = Any  # an object of the JVM
Parts = dict[str, set[int]]  # column of the key → ids of what it is made of
_PATTERNS = "org.apache.spark.sql.catalyst.trees.TreePattern"


def find_loose_key(frame: DataFrame, key: Sequence[str]) -> str | None:
    """A sentence; None: a group keeps its key. A name of the key that is no column is not looked at."""
    plan = frame._jdf.queryExecution().analyzed()
    ids = {str(one.name()).lower(): _id(one) for one in _each(plan.output())}
    parts = {name: {ids[name.lower()]} for name in key if name.lower() in ids}
    jvm: Any = frame.sparkSession._jvm
    return _Walk(getattr(jvm, _PATTERNS)).look(plan, parts)


class _Walk:
    """Down the plan, to the first aggregates."""

    def __init__(self, patterns: Jvm) -> None:
        self._total, self._now = patterns.AGGREGATE_EXPRESSION(), patterns.CURRENT_LIKE()
        self._definitions: dict[int, Jvm] = {}  # of CTEs

    def look(self, plan: Jvm, parts: Parts) -> str | None:
        kind = plan.nodeName()
        if kind == "Aggregate":
            return self._in_aggregate(plan, parts)
        if kind in ("Distinct", "Deduplicate"):
            return _uncovered(_each(plan.output() if kind == "Distinct" else plan.keys()), _own(plan, parts))
        if kind == "Project":
            return self._in_project(plan, parts)
        if kind == "CTERelationRef":
            inside = self._definitions.get(plan.cteId())
            return None if inside is None else self.look(inside, _placed(plan, inside, parts))
        children = _each(plan.children())
        if kind == "WithCTE":
            for one in _each(plan.cteDefs()):
                self._definitions[one.id()] = one.child()
            return self.look(plan.plan(), parts)
        if kind == "Union":
            found = (self.look(one, _placed(plan, one, parts)) for one in children)
            return next((one for one in found if one is not None), None)
        return self.look(children[0], parts) if len(children) == 1 else None

    def _in_project(self, plan: Jvm, parts: Parts) -> str | None:
        items = {_id(one): one for one in _each(plan.projectList())}
        below: Parts = {}
        for name, ids in parts.items():
            below[name] = set()
            for one in (items[number] for number in ids if number in items):
                if self._moves(one):
                    return f"{name} of unique_key is another in each run"
                below[name] |= {_id(each) for each in _each(one.references().toSeq())}
        return self.look(plan.child(), below)

    def _in_aggregate(self, plan: Jvm, parts: Parts) -> str | None:
        items = {_id(one): one for one in _each(plan.aggregateExpressions())}
        made = []
        for name, ids in parts.items():
            for one in (items[number] for number in ids if number in items):
                if one.containsPattern(self._total):
                    return f"{name} of unique_key is a total: when it changes, the row of the value before would stay"
                if self._moves(one):
                    return f"{name} of unique_key is another in each run"
                made.append(one)
        return _uncovered(_each(plan.groupingExpressions()), made)

    def _moves(self, expression: Jvm) -> bool:
        return not expression.deterministic() or bool(expression.containsPattern(self._now))


def _uncovered(groups: Sequence[Jvm], made: Sequence[Jvm]) -> str | None:
    for one in groups:
        if not one.foldable() and not any(_contains(each, one) for each in made):
            return (
                f"{one.sql()} is grouped by, and no column of unique_key has it: rows of several groups would take "
                "each other's place"
            )
    return None


def _contains(expression: Jvm, wanted: Jvm) -> bool:
    return bool(expression.semanticEquals(wanted)) or any(
        _contains(one, wanted) for one in _each(expression.children())
    )


def _own(plan: Jvm, parts: Parts) -> list[Jvm]:
    """Columns of a node that the key is made of."""
    ids = set().union(*parts.values())
    return [one for one in _each(plan.output()) if _id(one) in ids]


def _placed(plan: Jvm, other: Jvm, parts: Parts) -> Parts:
    """The same columns of another node, by their places."""
    places = {_id(one): n for n, one in enumerate(_each(plan.output()))}
    below = [_id(one) for one in _each(other.output())]
    return {
        name: {below[places[number]] for number in ids if number in places} for name, ids in parts.items()
    }


def _id(named: Jvm) -> int:
    return int(named.exprId().id())


def _each(items: Jvm) -> list[Jvm]:
    """Of a sequence of Scala."""
    return [items.apply(n) for n in range(items.size())]
