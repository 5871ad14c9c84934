"""New nodes and expressions of Spark's plans, of which queries over changed rows are built.

INVARIANT  made of attributes and expressions that Spark has analyzed; Spark analyzes what is built with them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

from pyspark.sql import SparkSession

from tablestore_engine.spark.spark_internals import Jvm, SparkInner, single


class PlanBuilderNodes(SparkInner):
    """Of one session."""

    def one_row(self) -> Jvm:
        """A leaf with one row and no columns."""
        return self._logical.OneRowRelation()

    def sequence(self, items: Sequence[Jvm]) -> Jvm:
        """As Scala has it."""
        return self._to_seq(list(items))

    def in_one_task(self, child: Jvm) -> Jvm:
        """The same rows, which no operation above them shuffles."""
        return self._logical.Repartition(1, False, child)

    def union(self, children: Sequence[Jvm]) -> Jvm:
        """UNION ALL by position."""
        return self._logical.Union(self._to_seq(list(children)), False, False)

    def in_one_partition(self, plan: Jvm, nodes: Sequence[Jvm]) -> Jvm:
        """The plan with each of these nodes in one partition, in subqueries too. REQUIRES that none is in another."""
        pairs = [(one, self.in_one_task(one)) for one in nodes]
        return plan.transformUpWithSubqueries(self._partial(pairs))

    def on_children(self, node: Jvm, children: Sequence[Jvm]) -> Jvm:
        """The node over other children."""
        return node.withNewChildren(self._to_seq(list(children)))

    def over(self, expression: Jvm, children: Sequence[Jvm]) -> Jvm:
        """The expression over other values."""
        return expression.withNewChildren(self._to_seq(list(children)))

    def evaluated(self, function: Jvm, buffers: Sequence[Jvm]) -> Jvm:
        """The result of an aggregate function over these values of its buffers."""
        names, pairs = function.aggBufferAttributes(), self._hash_map()
        for at, value in enumerate(buffers):
            pairs.put(names.apply(at), value)
        return function.evaluateExpression().transformDown(self._to_scala_map(pairs))

    def expand_with(self, node: Jvm, kept: Sequence[Jvm], child: Jvm) -> Jvm:
        """The Expand node over another child, of which it keeps some columns."""
        rows, output = node.projections(), node.output()
        wider = [
            self._to_seq([*(rows.apply(row).apply(at) for at in range(output.size())), *kept])
            for row in range(rows.size())
        ]
        columns = [*(output.apply(at) for at in range(output.size())), *kept]
        return self._logical.Expand(self._to_seq(wider), self._to_seq(columns), child)

    def product_of_signs(self, signs: Sequence[Jvm], *, is_opposite: bool = False) -> Jvm:
        """Of columns that are 1 or -1; 1 of none. `is_opposite`: its opposite."""
        found = self._sign(-1) if is_opposite else None
        for one in signs:
            if found is None:
                found = one
                continue
            is_same = self._expressions.EqualTo(found, one)
            found = self._expressions.If(is_same, self._sign(1), self._sign(-1))
        return self._sign(1) if found is None else found

    def semi_join(self, left: Jvm, right: Jvm, condition: Jvm) -> Jvm:
        """Rows of the left side that have a partner."""
        return self._logical.Join(left, right, self._semi_join, self._option(condition), self._no_hint)

    def is_one_of(self, value: Jvm, texts: Sequence[str], *, or_null: bool) -> Jvm:
        """`value IN (texts)`, which are SQL; `or_null`: or NULL. REQUIRES one of both."""
        is_null = self._expressions.IsNull(value)
        if not texts:
            assert or_null
            return is_null
        listed = self.parsed_value(f"v in ({', '.join(texts)})").list()
        found = self._expressions.In(value, listed)
        return self._expressions.Or(is_null, found) if or_null else found

    def constant(self, text: str | None, attribute: Jvm) -> Jvm:
        """Of SQL; None: NULL of the attribute's type."""
        return self.null_of(attribute) if text is None else self.parsed_value(text)

    def parsed_value(self, text: str) -> Jvm:
        """A constant, of SQL."""
        return self._session._jsparkSession.sessionState().sqlParser().parseExpression(text)

    def _sign(self, value: int) -> Jvm:
        return self._to_literal(value)

    @cached_property
    def _to_literal(self) -> Jvm:
        return single(self._expressions, "Literal").apply

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
        return reduce(self._expressions.And, conditions)

    def any_of(self, conditions: Sequence[Jvm]) -> Jvm:
        """One of them, by OR."""
        return reduce(self._expressions.Or, conditions)

    def negated(self, condition: Jvm) -> Jvm:
        """NOT condition."""
        return self._expressions.Not(condition)

    def false(self) -> Jvm:
        """A condition that no row has."""
        return single(self._expressions, "Literal").apply(False)

    def number(self, value: int) -> Jvm:
        """A literal."""
        return self._sign(value)

    def conjuncts(self, condition: Jvm) -> list[Jvm]:
        """Parts that are joined by AND."""
        if condition.nodeName() != "And":
            return [condition]
        return [*self.conjuncts(condition.left()), *self.conjuncts(condition.right())]

    def aggregate(self, node: Jvm, items: Sequence[Jvm]) -> Jvm:
        """The Aggregate node with other items."""
        return self._logical.Aggregate(
            node.groupingExpressions(), self._to_seq(list(items)), node.child(), node.hint()
        )

    # ---- expressions in place of others ----------------------------------------------------------------------

    def with_parts(self, expression: Jvm, pairs: Sequence[tuple[Jvm, Jvm]]) -> Jvm:
        """The expression with others in place of some of its parts, or of itself."""
        return expression.transform(self._partial(pairs))

    def with_own_expressions(self, node: Jvm, pairs: Sequence[tuple[Jvm, Jvm]]) -> Jvm:
        """The node with others in place of some of its own expressions."""
        return node.transformExpressions(self._partial(pairs))

    def with_expressions(self, plan: Jvm, pairs: Sequence[tuple[Jvm, Jvm]]) -> Jvm:
        """The plan with others in place of some expressions, in subqueries too."""
        return plan.transformAllExpressionsWithSubqueries(self._partial(pairs))

    def _partial(self, pairs: Sequence[tuple[Jvm, Jvm]]) -> Jvm:
        """A Scala map is a partial function."""
        found = self._hash_map()
        for old, new in pairs:
            found.put(old, new)
        return self._to_scala_map(found)

    # ---- the time ------------------------------------------------------------------------------------------

    def has_moving_like(self, plan: Jvm) -> bool:
        """Whether something in it is like current_timestamp(); the zone and the user of the session are, too."""
        return bool(plan.containsPattern(self._current_like))

    def time_function(self, kind: str, zone: str | None) -> Jvm:
        """A function of the time by Catalyst's class name; `zone`: of a date or a TIMESTAMP_NTZ."""
        made = getattr(self._expressions, kind)
        return made() if zone is None else made(self._option(zone))

    def moment(self, function: Jvm, moment_ms: int) -> Jvm:
        """The value of a function of the time at a moment (epoch milliseconds), as a literal."""
        times, literal = self._jvm.java.time, single(self._expressions, "Literal")
        value = times.Instant.ofEpochMilli(moment_ms)
        match str(function.nodeName()):
            case "CurrentDate":
                value = times.LocalDateTime.ofInstant(value, function.zoneId()).toLocalDate()
            case "LocalTimestamp":
                value = times.LocalDateTime.ofInstant(value, function.zoneId())
        return literal.apply(value)

    def with_session_zone(self, plan: Jvm) -> Jvm:
        """The plan with the session's zone for current_timezone()."""
        zone = single(self._expressions, "Literal").apply(
            self._session.conf.get("spark.sql.session.timeZone")
        )
        return self.with_expressions(plan, [(self._expressions.CurrentTimeZone(), zone)])

    def without_time(self, plan: Jvm) -> Jvm:
        """What Spark's rule makes of the time in a plan."""
        return self._compute_time(plan)

    def copied_map(self, pairs: Jvm) -> Jvm:
        """A map of Java as it is now."""
        return self._hash_map(pairs)

    def has_user_functions(self, plan: Jvm) -> bool:
        """Whether functions in Python or Java are in it, or one like current_database(), which asks the session."""
        return bool(plan.containsAnyPattern(self._user_functions))

    def is_orderable(self, expression: Jvm) -> bool:
        """Whether its values can be compared."""
        return bool(single(self._catalyst.expressions, "RowOrdering").isOrderable(expression.dataType()))

    def between(self, row: Jvm, one: Jvm, other: Jvm) -> Jvm:
        """`row` lies between two values in some order, or one of these is NULL."""
        values, known = self._to_seq([one, other]), self._expressions
        inside = self.all_of(
            [
                known.GreaterThanOrEqual(row, known.Least(values)),
                known.LessThanOrEqual(row, known.Greatest(values)),
            ]
        )
        return self.any_of([known.IsNull(one), known.IsNull(other), inside])

    @property
    def session(self) -> SparkSession:
        """Whose plans they are."""
        return self._session

    @cached_property
    def _user_functions(self) -> Jvm:
        known = single(self._catalyst.trees, "TreePattern")
        return self._to_seq([known.PYTHON_UDF(), known.SCALA_UDF(), self._current_like])

    @cached_property
    def _semi_join(self) -> Jvm:
        return single(self._catalyst.plans, "LeftSemi")
