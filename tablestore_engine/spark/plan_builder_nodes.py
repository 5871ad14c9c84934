"""New nodes and expressions of Spark's plans, of which queries over changed rows are built.

INVARIANT  made of attributes and expressions that Spark has analyzed; Spark analyzes what is built with them again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.spark.spark_internals import Jvm, SparkInner, single


class PlanBuilderNodes(SparkInner):
    """Of one session."""

    def one_row(self) -> Jvm:
        """A leaf with one row and no columns."""
        return self._logical.OneRowRelation()

    def filter(self, condition: Jvm, child: Jvm) -> Jvm:
        """WHERE condition."""
        return self._logical.Filter(condition, child)

    def union(self, children: Sequence[Jvm]) -> Jvm:
        """UNION ALL by position."""
        return self._logical.Union(self._to_seq(list(children)), False, False)

    def on_children(self, node: Jvm, children: Sequence[Jvm]) -> Jvm:
        """The node over other children."""
        return node.withNewChildren(self._to_seq(list(children)))

    def expand_with(self, node: Jvm, kept: Sequence[Jvm], child: Jvm) -> Jvm:
        """The Expand node over another child, of which it keeps some columns."""
        rows, output = node.projections(), node.output()
        wider = [
            self._to_seq([*(rows.apply(row).apply(at) for at in range(output.size())), *kept])
            for row in range(rows.size())
        ]
        columns = [*(output.apply(at) for at in range(output.size())), *kept]
        return self._logical.Expand(self._to_seq(wider), self._to_seq(columns), child)

    def product_of_signs(self, signs: Sequence[Jvm]) -> Jvm:
        """Of columns that are 1 or -1; 1 of none."""
        if not signs:
            return self._sign(1)
        found = signs[0]
        for one in signs[1:]:
            is_same = self._expressions.EqualTo(found, one)
            found = self._expressions.If(is_same, self._sign(1), self._sign(-1))
        return found

    def _sign(self, value: int) -> Jvm:
        return single(self._expressions, "Literal").apply(value)

    def expand(self, node: Jvm, numbers: Sequence[int], child: Jvm) -> Jvm:
        """Some columns of an Expand, by their numbers."""
        rows = node.projections()
        fewer = [
            self._to_seq([rows.apply(row).apply(number) for number in numbers]) for row in range(rows.size())
        ]
        output = [node.output().apply(number) for number in numbers]
        return self._logical.Expand(self._to_seq(fewer), self._to_seq(output), child)

    def null_of(self, attribute: Jvm) -> Jvm:
        """NULL of the attribute's type."""
        return self._literal(None, attribute.dataType())

    def normalized(self, number: Jvm) -> Jvm:
        """A floating-point number as Spark groups by it: 0.0 for -0.0."""
        return self._optimizer.NormalizeNaNAndZero(number)

    def same_value(self, left: Jvm, right: Jvm) -> Jvm:
        """`left <=> right`."""
        return self._expressions.EqualNullSafe(left, right)

    def all_of(self, conditions: Sequence[Jvm]) -> Jvm:
        """All of them, by AND."""
        found = conditions[0]
        for one in conditions[1:]:
            found = self._expressions.And(found, one)
        return found
