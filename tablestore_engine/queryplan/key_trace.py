"""Which keys of a query's result a change of one table can touch: the proof, and the query that computes them.

For each occurrence of a changed table the keys are those of the query with that occurrence replaced by its changed
rows (before and after), the other occurrences by all rows that they had or have, aggregates and windows reduced to
their groups, and outer joins extended by the rows in which the other side is NULL.

CHANGE     the proof of a `changed_keys` query
PROOF   Change the occurrences one after the other. A step changes one occurrence; every other one is in its old or its
        new state. By induction over the nodes: if a row of a node differs in a step, then its known columns
        (known_columns) are those of a row of the trace. Filters, joins and projections map changed rows to changed
        rows; a group or partition differs only if a row of it does; the other side of a join lies in "all rows".
        So each key whose rows differ is a row of the trace of an occurrence, and the union over all occurrences has
        every affected key. A few more keys do no harm.
        A part of the plan whose changed rows are known exactly (signed_rows) counts as such a table: all tables in it
        change in one step.
INVARIANT  what has no proof raises Unproven with the clause; the caller compares all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from tablestore_engine.queryplan.known_columns import KnownColumns, conjuncts, expand_column, side_of
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Path, PlanNode
from tablestore_engine.queryplan.plan_rules import KEEPS_LEFT, LIMITS, PASSED, PRESERVING, rows_of_nothing
from tablestore_engine.queryplan.run_time import is_time, row_references, values_of
from tablestore_engine.queryplan.split_nodes import find_projection, has_one_row
from tablestore_engine.queryplan.trace_steps import (
    ChangedRows,
    Column,
    Either,
    Expanded,
    Matched,
    NetChanges,
    OnChildren,
    OneRow,
    RowsOverTime,
    RowsOverValue,
    RowsWhere,
    RowsWithPast,
    SameValue,
    Select,
    Step,
    Stored,
)


class Unproven(Exception):
    """`clause`: what in the query prevents the proof, in SQL's words."""

    def __init__(self, clause: str) -> None:
        super().__init__(clause)
        self.clause = clause


@dataclass(frozen=True)
class TracedPart:
    """Rows with columns; each changed row of the node agrees with one of them on all of `columns`."""

    step: Step
    columns: frozenset[int]


Take = Callable[[PlanNode, frozenset[int]], TracedPart]  # part() or rows() of a node
Blocks = Mapping[Path, NetChanges | None]  # parts that count as tables → their changes, None: none


def trace_keys(
    known: KnownColumns,
    occurrence: Occurrence,
    key: Sequence[int],
    blocks: Blocks | None = None,
    next_identity: Callable[[], int] | None = None,
) -> Step:
    """Rows whose columns are exactly `key` (ExprIds of the root's columns). `next_identity`: of a column that steps
    make, if `blocks` have some. Raises Unproven.
    """
    clause = known.clause(occurrence, key)
    if clause is not None:
        raise Unproven(clause)
    builder = _Builder(known, occurrence, blocks or {}, next_identity or count(-1, -1).__next__)
    part = builder.part(known.root, frozenset(key))
    return Select(part.step, tuple(Column(one, one) for one in key))


class _Builder:
    """Of one occurrence. `needed` are known columns, always."""

    def __init__(
        self, known: KnownColumns, occurrence: Occurrence, blocks: Blocks, next_identity: Callable[[], int]
    ) -> None:
        self._known, self._occurrence, self._blocks = known, occurrence, blocks
        self._next_identity = next_identity

    # ---- the node of the occurrence and those above it -----------------------------------------------------

    def part(self, node: PlanNode, needed: frozenset[int]) -> TracedPart:
        """Rows of the node that differ."""
        if node.path == self._occurrence.path:
            columns = tuple(sorted(self._occurrence.columns))
            changes = self._blocks.get(node.path)
            changed = ChangedRows(node.path, columns) if changes is None else _unsigned(changes)
            return TracedPart(changed, frozenset(columns))
        side = side_of(node, self._occurrence)
        if node.kind == "Window":
            return self._partitions(node, needed)
        if node.kind == "Union":
            return self._renamed(node, side, needed, self.part)
        if node.kind == "Join":
            return self._joined(node, needed, side)
        return self._row_by_row(node, needed, self.part(side, self._below(node, needed)))

    def _partitions(self, node: PlanNode, needed: frozenset[int]) -> TracedPart:
        """Rows of the partitions that have a changed row."""
        partition, child = node.fields["partitionSpec"], node.children[0]
        if not partition:
            return self.part(child, needed)  # nothing is needed: a constant key
        references = _references(partition)
        changed = self.part(child, references)
        sources = self._known.partition_columns(node)
        if needed <= sources.keys() and self._known.is_exact(partition):
            return _renamed_columns(changed, frozenset(), {one: sources[one] for one in needed})
        # Names for columns of PARTITION BY are added behind the join: Spark's RemoveRedundantAliases makes an invalid
        # plan of a projection over a union that has a column and an alias of it with the same name.
        renamed = {one: sources[one] for one in needed if sources.get(one, one) != one}
        below = (needed - renamed.keys()) | references
        rows = _only(self.rows(child, below), below)
        fresh = [self._next_identity() for _ in partition]
        values = Select(
            changed.step, tuple(Column(new, one.place) for new, one in zip(fresh, partition, strict=True))
        )
        same = tuple(SameValue(one.place, new) for new, one in zip(fresh, partition, strict=True))
        matched = TracedPart(Matched(rows.step, values, same), rows.columns)
        return _renamed_columns(matched, rows.columns, renamed) if renamed else matched

    # ---- rows of the old and the new state -----------------------------------------------------------------

    def rows(self, node: PlanNode, needed: frozenset[int]) -> TracedPart:
        """All rows that the node had or has; a few more do no harm."""
        known = self._known
        if node.path in self._blocks:
            return _with_past(node, self._blocks[node.path])
        if node.path in {one.path for one in known.changed if not one.in_subquery}:
            return TracedPart(RowsWithPast(node.path), frozenset(output_ids(node)))
        if known.is_steady(node):
            return TracedPart(Stored(node.path), frozenset(output_ids(node)))
        if node.kind == "Union":
            parts = [self._renamed(node, child, needed, self.rows) for child in node.children]
            return _either(parts, needed)
        if node.kind == "Join":
            return self._joined(node, needed, None)
        if not node.children:
            raise Unproven(f"{node.kind} in Spark's plan")
        if rows_of_nothing(node):  # its row is there whether there are rows below or not
            return self._row_by_row(node, needed, TracedPart(OneRow(), frozenset()))
        return self._row_by_row(node, needed, self.rows(node.children[0], self._below(node, needed)))

    # ---- joins ---------------------------------------------------------------------------------------------

    def _joined(self, node: PlanNode, needed: frozenset[int], side: PlanNode | None) -> TracedPart:
        """`side`: in which the occurrence lies; None: all rows of the join."""
        left, right = node.children
        if node.join_type in KEEPS_LEFT and side is not right:
            return self._of(left, side)(left, needed)
        if node.join_type in KEEPS_LEFT:
            found = self._matched(node, needed, side)
            return _only(found, frozenset(output_ids(left)))
        inner = self._matched(node, needed, side)
        keeps_left, keeps_right = PRESERVING.get(node.join_type, (False, False))
        parts = [inner]
        for keeps, kept, lost in ((keeps_left, left, right), (keeps_right, right, left)):
            if keeps and needed & set(output_ids(lost)):
                parts.append(self._extended(needed, inner, side, kept=kept, lost=lost))
            elif keeps:
                # a changed row may differ by NULL in these columns: a filter above must not ask matched rows for them
                parts[0] = _without(parts[0], frozenset(output_ids(lost)))
        return _either(parts, needed)

    def _extended(
        self,
        needed: frozenset[int],
        inner: TracedPart,
        side: PlanNode | None,
        *,
        kept: PlanNode,
        lost: PlanNode,
    ) -> TracedPart:
        """Rows of the side that the join keeps, with NULL for the other side."""
        own = needed & set(output_ids(kept))
        is_own = side is None or side is kept
        part = self._of(kept, side)(kept, own) if is_own else _only(inner, frozenset(output_ids(kept)))
        nulls = tuple(Column(one, None) for one in output_ids(lost))
        return TracedPart(
            Select(part.step, _kept(part.columns) + nulls), part.columns | frozenset(output_ids(lost))
        )

    def _matched(self, node: PlanNode, needed: frozenset[int], side: PlanNode | None) -> TracedPart:
        """Pairs of rows. One side is enough where nothing is needed of the other."""
        left, right = node.children
        first, second = (right, left) if side is right else (left, right)
        own, others = needed & set(output_ids(first)), needed & set(output_ids(second))
        if side is None and not own and others:
            return self.rows(second, others)
        if not others:
            return self._of(first, side)(first, own)
        known = self._known
        if side is not None:
            partners = known.partners(node, known.trace(first, self._occurrence))
            if others <= partners.keys():
                part = self.part(first, own | {partners[one] for one in others})
                same = tuple(Column(one, partners[one]) for one in sorted(others))
                return TracedPart(Select(part.step, _kept(part.columns) + same), part.columns | others)
        sides = {
            child.path: known.rows(child) if side is not child else known.trace(child, self._occurrence)
            for child in node.children
        }
        conditions = known.conditions(node, sides[left.path], sides[right.path])
        asked = _references(conditions)
        one = self._of(first, side)(first, own | (asked & set(output_ids(first))))
        if side is not None:
            other = self._over_value(second, others | (asked & set(output_ids(second))))
        else:
            other = self.rows(second, others | (asked & set(output_ids(second))))
        return TracedPart(
            Matched(one.step, other.step, tuple(part.place for part in conditions)),
            one.columns | other.columns,
        )

    def _over_value(self, node: PlanNode, needed: frozenset[int]) -> TracedPart:
        """Rows beside a changed table: if that has one row, such as the time, those for which it makes a difference,
        where that can be asked.
        """
        projection = find_projection(self._known.root, self._occurrence.path)
        if projection is None or node is not projection.children[0].children[0]:
            return self.rows(node, needed)
        asked, known = row_references(projection), self._known.rows(node)
        if any(known.get(one, "") is not None for one in asked):
            return self.rows(node, needed)
        rows = self.rows(node, needed | asked)
        places = tuple(one.place for one in values_of(projection))
        if is_time(self._occurrence):
            return TracedPart(RowsOverTime(rows.step, projection.path, places), rows.columns)
        changes = self._blocks.get(self._occurrence.path)
        is_single = changes is not None and has_one_row(self._known.at(self._occurrence.path))
        if changes is None or not is_single or not all(map(self._known.is_usable, values_of(projection))):
            return rows
        return TracedPart(RowsOverValue(rows.step, projection.path, places, changes), rows.columns)

    def _of(self, child: PlanNode, side: PlanNode | None) -> Take:
        return self.part if child is side else self.rows

    # ---- nodes that work on one row or one group -----------------------------------------------------------

    def _below(self, node: PlanNode, needed: frozenset[int]) -> frozenset[int]:
        """What is needed of the child."""
        match node.kind:
            case "Project":
                return _references(_items(node.fields["projectList"], needed))
            case "Aggregate":
                return _references(_items(node.fields["aggregateExpressions"], needed))
            case "Generate":
                below = set(output_ids(node.children[0]))
                made = needed - below
                return (needed & below) | (_references(node.fields["generator"]) if made else frozenset())
            case "Expand":
                return _references(
                    part for number in _numbers(node, needed) for part in expand_column(node, number)
                )
            case _:
                return needed

    def _row_by_row(self, node: PlanNode, needed: frozenset[int], below: TracedPart) -> TracedPart:
        match node.kind:
            case "Filter":
                return self._filtered(node, below)
            case kind if kind in PASSED or kind in LIMITS or kind == "Window":
                return below
            case "Project":
                return self._projected(node, node.fields["projectList"], below)
            case "Aggregate":
                return self._projected(node, _items(node.fields["aggregateExpressions"], needed), below)
            case "Generate" if needed <= set(output_ids(node.children[0])):
                return below
            case "Generate":
                made = frozenset(output_ids(node)) - frozenset(output_ids(node.children[0]))
                return TracedPart(OnChildren(node.path, (below.step,)), below.columns | made)
            case "Expand":
                numbers = _numbers(node, needed)
                output = node.fields["output"]
                ids = frozenset(output[number].identity or 0 for number in numbers)
                return TracedPart(Expanded(below.step, node.path, numbers), ids)
            case kind:
                raise Unproven(f"{kind} in Spark's plan")

    def _filtered(self, node: PlanNode, below: TracedPart) -> TracedPart:
        """Conditions that cannot be asked are left out: then there are more rows."""
        conditions = tuple(
            part.place
            for part in conjuncts(node.fields["condition"])
            if self._known.is_usable(part) and part.references <= below.columns
        )
        return TracedPart(RowsWhere(below.step, conditions), below.columns) if conditions else below

    def _projected(self, node: PlanNode, items: Iterable[Expression], below: TracedPart) -> TracedPart:
        made = [
            one
            for one in items
            if one.identity is not None and self._known.is_usable(one) and one.references <= below.columns
        ]
        is_grouping = node.kind == "Aggregate"
        columns = tuple(
            Column(
                one.identity or 0,
                one.identity if one.is_attribute else one.place,
                is_normalized=is_grouping and self._known.is_normalized(node, one),
            )
            for one in made
        )
        return TracedPart(Select(below.step, columns), frozenset(one.identity for one in columns))

    def _renamed(self, node: PlanNode, child: PlanNode, needed: frozenset[int], take: Take) -> TracedPart:
        """A child of a UNION under the names of the union."""
        below = dict(zip(output_ids(node), output_ids(child), strict=True))
        part = take(child, frozenset(below[one] for one in needed))
        columns = tuple(Column(one, below[one]) for one in sorted(needed))
        return TracedPart(Select(part.step, columns), needed)


def _unsigned(changes: NetChanges) -> Step:
    return Select(changes, _kept(changes.columns))


def _with_past(node: PlanNode, changes: NetChanges | None) -> TracedPart:
    """Rows of a part of the plan that counts as a table."""
    now = Stored(node.path)
    if changes is None:
        return TracedPart(now, frozenset(output_ids(node)))
    rows = Either((Select(now, _kept(changes.columns)), _unsigned(changes)))
    return TracedPart(rows, frozenset(changes.columns))


def _either(parts: Sequence[TracedPart], needed: frozenset[int]) -> TracedPart:
    """Rows of all parts, in the columns that all have."""
    if len(parts) == 1:
        return parts[0]
    common = parts[0].columns.intersection(*(part.columns for part in parts[1:]))
    assert needed <= common, "a needed column is missing in one part"
    return TracedPart(Either(tuple(Select(part.step, _kept(common)) for part in parts)), common)


def _only(part: TracedPart, allowed: frozenset[int]) -> TracedPart:
    kept = part.columns & allowed
    return TracedPart(Select(part.step, _kept(kept)), kept)


def _without(part: TracedPart, lost: frozenset[int]) -> TracedPart:
    return _only(part, part.columns - lost) if part.columns & lost else part


def _renamed_columns(part: TracedPart, kept: frozenset[int], sources: Mapping[int, int]) -> TracedPart:
    """`sources`: column → the column of the part that it is under another name."""
    named = tuple(Column(one, source) for one, source in sorted(sources.items()))
    return TracedPart(Select(part.step, _kept(kept) + named), kept | sources.keys())


def _kept(columns: Collection[int]) -> tuple[Column, ...]:
    return tuple(Column(one, one) for one in sorted(columns))


def _items(expressions: Iterable[Expression], needed: frozenset[int]) -> list[Expression]:
    return [one for one in expressions if one.identity in needed]


def _references(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset[int]().union(*(one.references for one in expressions))


def _numbers(node: PlanNode, needed: frozenset[int]) -> tuple[int, ...]:
    return tuple(number for number, one in enumerate(node.fields["output"]) if one.identity in needed)
