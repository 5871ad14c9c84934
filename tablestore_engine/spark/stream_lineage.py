"""Which expressions over the columns of a stream the columns of a query's result are, for each occurrence of a stream.

Occurrence       one place of the plan where a stream is read, and what stands between it and the result
trace_streams    a frame and the names that are streams → its occurrences
REQUIRES         stream_outline accepts the query: rows of a stream go through row by row.
INVARIANT        an attribute that does not come from the occurrence (of a joined table, of a generator) stays in the
                 expression as it is: who reads `items` compares the ids with those of `columns`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from tablestore_engine.spark.plan_expressions import Composer, Jvm, each, expr_id

Name = tuple[str, str]


@dataclass(frozen=True)
class StreamOccurrence:
    """`items`: expressions of the result's columns; `conditions`: of filters, generators; all over `columns`, the
    stream's attributes, and over `generated` ones. `is_alone`: no join and no sample stands above.
    """

    stream: Name
    columns: tuple[Jvm, ...]
    items: tuple[Jvm, ...]
    conditions: tuple[Jvm, ...]
    generated: frozenset[int]
    is_alone: bool


@dataclass(frozen=True)
class _Above:
    items: tuple[Jvm, ...]
    conditions: tuple[Jvm, ...] = ()
    generated: frozenset[int] = frozenset()
    is_alone: bool = True


def trace_streams(frame: DataFrame, streams: Collection[Name]) -> tuple[StreamOccurrence, ...]:
    """`streams`: (database, name), compared without case. The items are in the order of the result's columns."""
    walk = _Walk(Composer(frame.sparkSession), frozenset((d.lower(), n.lower()) for d, n in streams))
    plan = frame._jdf.queryExecution().analyzed()
    return tuple(walk.follow(plan, _Above(tuple(each(plan.output())))))


class _Walk:
    def __init__(self, composer: Composer, streams: frozenset[Name]) -> None:
        self._composer, self._streams = composer, streams
        self._definitions: dict[int, Jvm] = {}  # of CTEs

    def follow(self, plan: Jvm, above: _Above) -> list[StreamOccurrence]:
        """Occurrences in `plan`; `above` is over its output."""
        kind = plan.nodeName()
        if kind == "View" and (name := self._stream_of(plan)) is not None:
            columns = tuple(each(plan.output()))
            return [
                StreamOccurrence(
                    name, columns, above.items, above.conditions, above.generated, above.is_alone
                )
            ]
        if kind == "WithCTE":
            self._definitions |= {one.id(): one.child() for one in each(plan.cteDefs())}
            return self.follow(plan.plan(), above)
        if kind == "CTERelationRef":
            return self._into(self._definitions[plan.cteId()], plan, above)
        if kind == "Union":
            return [found for one in each(plan.children()) for found in self._into(one, plan, above)]
        if kind == "Project":
            return self.follow(plan.child(), self._below(above, plan.projectList()))
        if kind == "Filter":
            above = replace(above, conditions=(*above.conditions, plan.condition()))
        elif kind == "Generate":
            made = frozenset(map(expr_id, each(plan.generatorOutput())))
            above = replace(
                above,
                conditions=(*above.conditions, plan.generator()),
                generated=above.generated | made,
            )
        children = each(plan.children())
        if kind == "Sample" or len(children) > 1 or kind == "LateralJoin":
            above = replace(above, is_alone=False)
        return [found for one in children for found in self.follow(one, above) if self._has_stream(one)]

    def _into(self, child: Jvm, plan: Jvm, above: _Above) -> list[StreamOccurrence]:
        """Into a child whose columns have ids of their own."""
        if not self._has_stream(child):
            return []
        old, new = each(plan.output()), each(child.output())
        placed = self._composer.placed([*above.items, *above.conditions], old, new)
        return self.follow(child, _split(above, placed))

    def _below(self, above: _Above, definitions: Jvm) -> _Above:
        return _split(above, self._composer.below([*above.items, *above.conditions], definitions))

    def _stream_of(self, view: Jvm) -> Name | None:
        parts = [str(one) for one in each(view.desc().identifier().nameParts())]
        name = (parts[-2].lower(), parts[-1].lower()) if len(parts) > 1 else None
        return name if name in self._streams else None

    def _has_stream(self, plan: Jvm) -> bool:
        kind = plan.nodeName()
        if kind == "View" and self._stream_of(plan) is not None:
            return True
        if kind == "WithCTE":
            self._definitions |= {one.id(): one.child() for one in each(plan.cteDefs())}
            return self._has_stream(plan.plan())
        if kind == "CTERelationRef":
            return self._has_stream(self._definitions[plan.cteId()])
        return any(map(self._has_stream, each(plan.children())))


def _split(above: _Above, expressions: list[Jvm]) -> _Above:
    count = len(above.items)
    return replace(above, items=tuple(expressions[:count]), conditions=tuple(expressions[count:]))
