"""Expressions of an analyzed plan, read through py4j: substitution, identity, determinism.

each          elements of a Scala sequence
expr_id       id of a named expression
used_ids      ids of the attributes that an expression reads
Composer      rewrites expressions over a node into expressions over its child
moves         whether an expression may have another value in another run, for the same input row
keeps_value   whether an expression has different values for different values of another one
DANGER        replaceAlias does not look into subqueries: an expression that has one is never proven (`moves`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from tablestore_engine.queryplan.plan_nodes import Path, Place

Jvm = Any  # an object of the JVM
_CATALYST = "org.apache.spark.sql.catalyst"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_WINDOW = "spark.timeWindow"


class PlanParts:
    """Nodes and expressions of a plan, each looked up once: a call to the JVM costs 0.1 ms."""

    def __init__(self, plan: Jvm) -> None:
        self._nodes: dict[Path, Jvm] = {(): plan}
        self._expressions: dict[Place, Jvm] = {}
        self._fields: dict[tuple[Path, str], Jvm] = {}

    def node(self, path: Path) -> Jvm:
        """By the indexes of children."""
        if path not in self._nodes:
            above = self.node(path[:-1])
            self._nodes[path] = above.children().apply(path[-1])
        return self._nodes[path]

    def expression(self, place: Place) -> Jvm:
        """By its node, field, item and the indexes of children."""
        if place not in self._expressions:
            self._expressions[place] = self._fetched(place)
        return self._expressions[place]

    def _fetched(self, place: Place) -> Jvm:
        if place.below:
            above = self.expression(replace(place, below=place.below[:-1]))
            return above.children().apply(place.below[-1])
        node, field = self.node(place.node), (place.node, place.field)
        if field not in self._fields:
            self._fields[field] = getattr(node, place.field)()
        found = self._fields[field]
        if place.field == "projections":
            row, column = divmod(place.item or 0, node.output().size())
            found = found.apply(row).apply(column)
        elif place.item is not None:
            found = found.apply(place.item)
        elif place.field == "condition" and node.nodeName() == "Join":
            found = found.get()
        elif place.field == "joinType":
            found = found.exists()  # the column of an ExistenceJoin
        return found


def each(items: Jvm) -> list[Jvm]:
    """Elements of a Scala sequence."""
    return [items.apply(n) for n in range(items.size())]


def expr_id(named: Jvm) -> int:
    """Id of an attribute or alias."""
    return int(named.exprId().id())


def used_ids(expression: Jvm) -> frozenset[int]:
    """Ids of the attributes that the expression reads, outer references of its subqueries included."""
    return frozenset(expr_id(one) for one in each(expression.references().toSeq()))


class Composer:
    """Substitution of attributes, by Catalyst's own replaceAlias. `session`: any of the JVM."""

    def __init__(self, session: SparkSession) -> None:
        self._jvm: Any = session._jvm
        rules = getattr(self._jvm, f"{_CATALYST}.optimizer.CollapseProject$")
        self._rule = getattr(rules, "MODULE$")
        patterns = getattr(self._jvm, f"{_CATALYST}.trees.TreePattern")
        self._now, self._subquery = patterns.CURRENT_LIKE(), patterns.PLAN_EXPRESSION()
        self._total = patterns.AGGREGATE_EXPRESSION()

    def below(self, expressions: Sequence[Jvm], definitions: Jvm) -> list[Jvm]:
        """The expressions with each attribute that `definitions` (a Scala sequence) names replaced by its meaning."""
        meanings = self._rule.getAliasMap(definitions)
        return [self._rule.replaceAlias(one, meanings) for one in expressions]

    def placed(self, expressions: Sequence[Jvm], above: Iterable[Jvm], below: Iterable[Jvm]) -> list[Jvm]:
        """The expressions with attributes `above` replaced by those `below`, by their positions."""
        pairs = zip(above, below, strict=True)
        return self.below(expressions, self._seq([self._alias(old, new) for old, new in pairs]))

    def bare(self, expressions: Sequence[Jvm], attributes: Sequence[Jvm]) -> list[Jvm]:
        """The expressions with `attributes` written without a qualifier."""
        return self.placed(expressions, attributes, [one.withQualifier(self._seq([])) for one in attributes])

    def moves(self, expression: Jvm) -> bool:
        """Whether the expression may have another value in another run, for the same input row."""
        return (
            not expression.deterministic()
            or bool(expression.containsPattern(self._now))
            or bool(expression.containsPattern(self._subquery))
        )

    def is_total(self, expression: Jvm) -> bool:
        """Whether the expression has an aggregate function in it."""
        return bool(expression.containsPattern(self._total))

    def _alias(self, old: Jvm, new: Jvm) -> Jvm:
        kind = getattr(self._jvm, f"{_CATALYST}.expressions.Alias")
        nothing = self._jvm.scala.Option.empty()
        return kind(new, old.name(), old.exprId(), self._seq([]), nothing, self._seq([]))

    def _seq(self, items: list[Jvm]) -> Jvm:
        return self._jvm.PythonUtils.toSeq(items)


def plain(expression: Jvm) -> Jvm:
    """Without aliases and without casts that keep every value apart."""
    while True:
        kind = expression.nodeName()
        if kind == "Alias" or (kind == "Cast" and _is_lossless(expression)):
            expression = expression.child()
        else:
            return expression


def keeps_value(expression: Jvm, wanted: Jvm) -> bool:
    """Whether two values of `wanted` that differ give two values of `expression` that differ, by its form alone."""
    return bool(plain(expression).semanticEquals(plain(wanted))) and is_exact(wanted)


def is_exact(expression: Jvm) -> bool:
    """Whether equal values of its type are the same bytes: not with a collation that equates several texts."""
    return "COLLATE" not in str(expression.dataType().sql()).upper()


def window_of(expression: Jvm) -> Jvm | None:
    """The struct of a window of time whose start or end the expression is."""
    expression = plain(expression)
    if expression.nodeName() != "GetStructField":
        return None
    return expression.child() if str(expression.extractFieldName()) in ("start", "end") else None


def is_window(named: Jvm) -> bool:
    """Whether its metadata marks a window of `window(…)`: the duration is a constant, so start determines it."""
    return bool(named.metadata().contains(_WINDOW))


def _is_lossless(cast: Jvm) -> bool:
    given, made = str(cast.child().dataType().simpleString()), str(cast.dataType().simpleString())
    if given == made:
        return True
    if given not in _WHOLE:
        return False
    return made == "string" or (made in _WHOLE and _WHOLE.index(made) > _WHOLE.index(given))
