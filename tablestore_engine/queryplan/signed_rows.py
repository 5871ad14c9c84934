"""The rows that a change adds to a node and removes from it.

A node is linear in a child if its rows over the union of two inputs are the union of its rows over each. Then its rows
over the changed rows of a table alone, with their signs (+1 added, -1 removed), are its own changed rows. A node that
is not linear, but falls into parts by a key (keyed_parts), is evaluated over the parts that have a changed row below
it: its new rows with the sign +1, its old rows with the sign -1.

CHANGE     for which nodes a `changed_keys` run follows signed rows instead of keys
PROOF   Changed rows enter the linear part of the plan at sources: tables that changed, and nodes with a key. The
        sources change one after another. For each one: its changed rows are given, every source before it has its new
        rows, every one after it its old rows: the new ones (+1) and its changed rows under the opposite sign. A join
        multiplies signs. The sum over all sources is the difference between the new and the old rows of the node; a
        row may come with both signs, which then cancel.
PROOF   An outer, semi or anti join changes in its optional side first: over the old rows of the kept side, new minus
        old rows of the join in the parts of the changed rows. Then it is linear in the kept side.
INVARIANT  what is not listed in LINEAR, LINEAR_SIDES or KEYED raises NoDelta. No kind of node is linear by default.
INVARIANT  a part of the plan without a changed occurrence has the same rows before and after: it is reproducible.
INVARIANT  a node that is not linear never gets signed rows: RealRows are those of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tablestore_engine.queryplan.keyed_parts import Key, KeyedParts
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids, used_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Path, PlanNode, is_within
from tablestore_engine.queryplan.plan_rules import INNER, KEEPS_LEFT, LIMITS, PASSED
from tablestore_engine.queryplan.run_time import is_time, projection_path, values_of
from tablestore_engine.queryplan.signed_parts import Changes, SignedPart, Source
from tablestore_engine.queryplan.trace_steps import (
    Column,
    Either,
    InParts,
    NetChanges,
    OnChildren,
    RealRows,
    RowsOverTime,
    Select,
    Signed,
    SignedChanges,
    SignedExpand,
    Step,
    Stored,
)

LINEAR = PASSED | {"Project", "Generate", "Expand", "Union"}
# join type → the children in which it is linear, the other one being the same before and after
LINEAR_SIDES = {
    **dict.fromkeys(INNER, (0, 1)), **dict.fromkeys(KEEPS_LEFT, (0,)), "LeftOuter": (0,), "LeftSingle": (0,),
    "RightOuter": (1,), "FullOuter": (),
}  # fmt: skip
KEYED = frozenset({"Aggregate", "Window"})  # and joins whose other sides change
CLAUSES = LIMITS
_FIRST = -1  # the turn before that of all sources


class SignedRows:
    """Of one plan. `known.changed`: the occurrences that changed. `occurrences`: all of them. `of_parts`: of parts of
    the plan alone, in which totals and windows without PARTITION BY are evaluated over all rows.

    `netted`: nodes whose changed rows are compared by value, with the columns.
    """

    def __init__(
        self, known: KnownColumns, occurrences: Sequence[Occurrence] = (), *, of_parts: bool = False
    ) -> None:
        self._known = known
        changed = (one for one in known.changed if not (of_parts and one.in_subquery))  # those have no path
        self._changed = sorted(changed, key=lambda one: one.path)
        self._used = used_ids(known.root).union(*(one.columns for one in known.changed))
        self._keys = KeyedParts(known, occurrences or known.changed, has_whole=of_parts)
        self._keyed: dict[Path, Changes] = {}
        self._below: dict[Path, Changes] = {}
        self.netted: dict[Path, tuple[int, ...]] = {}
        self._fresh = 0
        if of_parts:
            return
        for one in self._changed:
            if one.in_subquery:
                raise NoDelta(
                    "a subquery as a value (scalar, IN, EXISTS) that is not correlated by an equality"
                )
        self._check(known.root)

    def changes_in(self, node: PlanNode) -> NetChanges | None:
        """Changed rows of a part of the plan, with all of its columns that the plan uses; None: no table in it changed.
        Raises NoDelta.
        """
        self._check(node)
        if not self.has_change(node):
            return None
        sources = list(self.entries(node))
        is_own = len(sources) == 1 and sources[0][0] == node.path and node.children
        step = (sources[0][1] if is_own else self._changes_of(node)).rows.step
        assert isinstance(step, NetChanges), step
        return step

    def unordered_rows(self, path: Path) -> Iterator[tuple[Path, Step]]:
        """(a window in a part of the plan, its new or changed old rows) that must not be equal in PARTITION BY and
        ORDER BY, since the rows of the window would depend on their order. REQUIRES changes_in() of the part.
        """
        for one in sorted(self._keys.unordered):
            if is_within(one, path):
                child = self._known.at(one).children[0]
                yield one, Stored(child.path)
                if self.has_change(child):
                    keys = self._keys.find_key(self._known.at(one))
                    parts = self._parts(self._known.at(one), keys, ())
                    yield one, self._own_rows(child, keys[0], parts, is_old=True).step

    def _check(self, node: PlanNode) -> None:
        if any(part.kind == "OuterReference" for part in _parts_of(node)):
            raise NoDelta("a correlated subquery inside of another one, which is not a join in Spark's plan")
        self._check_steady(node)

    def _check_steady(self, node: PlanNode) -> None:
        if self.has_change(node):
            for child in node.children:
                self._check_steady(child)
        elif not self._is_steady(node):
            raise NoDelta(
                "a part that can give other rows each time (LIMIT, a window, a sum of FLOAT or DOUBLE)"
            )

    def _is_steady(self, node: PlanNode) -> bool:
        if self._known.is_steady(node):
            return True
        if node.kind == "Window":
            self._keys.check_window(node)
        elif node.kind == "Aggregate":
            self._keys.check_group(node)
        elif not node.children or not self._known.is_reproducible(node):
            return False
        return all(map(self._is_steady, node.children))

    def of(self, node: PlanNode) -> tuple[SignedPart, ...]:
        """One part for each source in the node; together its rows after minus its rows before."""
        turns = Turns(self, node)
        return tuple(turns.delta(node, one) for one in turns.sources)

    def next_identity(self) -> int:
        """Of a new column; those of the plan are positive."""
        self._fresh -= 1
        return self._fresh

    def has_change(self, node: PlanNode) -> bool:
        """Whether a table in it changed."""
        return any(is_within(one.path, node.path) for one in self._changed)

    # ---- where changed rows enter --------------------------------------------------------------------------

    def entries(self, node: PlanNode) -> Iterator[tuple[Path, Changes]]:
        """Sources in a node, in their turns."""
        leaf = next((one for one in self._changed if one.path == node.path), None)
        if leaf is not None:
            yield node.path, self._of_table(leaf)
            return
        changed = {at for at, child in enumerate(node.children) if self.has_change(child)}
        linear = LINEAR_SIDES.get(node.join_type, ()) if node.kind == "Join" else tuple(changed)
        if node.kind in KEYED or not changed <= set(linear):
            if node.path not in self._keyed:
                self._keyed[node.path] = self._of_parts(node, linear if node.kind == "Join" else ())
            yield node.path, self._keyed[node.path]
            linear = linear if node.kind == "Join" else ()
        for at in sorted(changed & set(linear)):
            yield from self.entries(node.children[at])

    def _of_table(self, occurrence: Occurrence) -> Changes:
        columns, found = tuple(sorted(occurrence.columns)), list[SignedPart]()
        for is_opposite in (False, True):
            sign = self.next_identity()
            step = SignedChanges(occurrence.path, columns, sign, is_opposite)
            found.append(SignedPart(step, frozenset(columns), (sign,)))
        return Changes(*found)

    def over_time(self, rows: SignedPart, path: Path) -> SignedPart:
        """Rows for which the time makes a difference, if `path` is that of the time; all others would cancel."""
        occurrence = next((one for one in self._changed if one.path == path and is_time(one)), None)
        if occurrence is None:
            return rows
        projection = self._known.at(projection_path(occurrence))
        values = tuple(one.place for one in values_of(projection))
        return SignedPart(RowsOverTime(rows.step, projection.path, values), rows.columns, rows.signs)

    # ---- nodes with a key ----------------------------------------------------------------------------------

    def _of_parts(self, node: PlanNode, kept: Sequence[int]) -> Changes:
        """Its rows after minus its rows before, in the changed parts. `kept`: the child of an outer, semi or anti join
        that has its old rows in both, as it changes afterwards.
        """
        keys = self._keys.find_key(node)
        parts = self._parts(node, keys, kept)
        states = []
        for is_old in (False, True):
            children = [
                self._kept_rows(child, keys[at], parts)
                if at in kept
                else self._own_rows(child, keys[at], parts, is_old=is_old)
                for at, child in enumerate(node.children)
            ]
            states.append((OnChildren(node.path, tuple(one.step for one in children)), children))
        columns, sign = self._columns(node), self.next_identity()
        signed = [
            Signed(step, _kept(columns), _signs(children), sign, is_opposite=is_old)
            for is_old, (step, children) in zip((False, True), states, strict=True)
        ]
        return self._net(node, Either(tuple(signed)), columns, sign)

    def _parts(self, node: PlanNode, keys: Sequence[Key], kept: Sequence[int]) -> _Parts:
        """Keys of the changed rows of the other children."""
        columns = tuple(self.next_identity() for _ in keys[0])
        found = []
        for at, child in enumerate(node.children):
            if at not in kept and self.has_change(child):
                values = tuple(
                    Column(one, each.identity if each.is_attribute else each.place)
                    for one, each in zip(columns, keys[at], strict=True)
                )
                found.append(Select(self._changes_of(child).rows.step, values))
        return _Parts(Either(tuple(found)), columns)

    def _kept_rows(self, child: PlanNode, key: Key, parts: _Parts) -> SignedPart:
        old = Turns(self, child).state(child, _FIRST)
        return SignedPart(parts.of(old.step, key), old.columns, old.signs)

    def _own_rows(self, child: PlanNode, key: Key, parts: _Parts, *, is_old: bool) -> SignedPart:
        """New or old rows of a child."""
        if not is_old or not self.has_change(child):
            return SignedPart(parts.of(Stored(child.path), key), frozenset(output_ids(child)))
        back, sign, columns = self._changes_of(child).opposite, self.next_identity(), self._columns(child)
        now = Signed(Stored(child.path), _kept(columns), (), sign)  # signed: added rows cancel
        both = Either((now, Signed(back.step, _kept(columns), back.signs, sign)))
        return SignedPart(RealRows(parts.of(both, key), columns, sign), frozenset(columns))

    def _changes_of(self, child: PlanNode) -> Changes:
        """Of a child of a node with a key."""
        if child.path not in self._below:
            columns, sign = self._columns(child), self.next_identity()
            parts = [Signed(one.step, _kept(columns), one.signs, sign) for one in self.of(child)]
            self._below[child.path] = self._net(child, Either(tuple(parts)), columns, sign)
        return self._below[child.path]

    def _net(self, node: PlanNode, rows: Step, columns: tuple[int, ...], summed: int) -> Changes:
        self.netted[node.path] = columns
        found = []
        for is_opposite in (False, True):
            sign = self.next_identity()
            step = NetChanges(rows, columns, summed, sign, is_opposite)
            found.append(SignedPart(step, frozenset(columns), (sign,)))
        return Changes(*found)

    def _columns(self, node: PlanNode) -> tuple[int, ...]:
        """Those that the plan uses, each once, or any one, if only rows count."""
        output = output_ids(node)
        return tuple(sorted(self._used & set(output))) or output[:1]

    # ---- a linear node over its children -------------------------------------------------------------------

    def through(self, node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
        """`parts`: rows of its children. Raises NoDelta."""
        self._check_expressions(node)
        first = parts[0]
        match node.kind:
            case "Project":
                items = [one for one in node.fields["projectList"] if one.identity is not None]
                columns = tuple(
                    Column(one.identity or 0, one.identity if one.is_attribute else one.place)
                    for one in items
                )
                ids = frozenset(one.identity for one in columns)
                return SignedPart(Select(first.step, columns + _kept(first.signs)), ids, first.signs)
            case "Filter":
                return SignedPart(OnChildren(node.path, (first.step,)), first.columns, first.signs)
            case "Generate":
                made = frozenset(output_ids(node)) - frozenset(output_ids(node.children[0]))
                step = OnChildren(node.path, (first.step,))
                return SignedPart(step, first.columns | made, first.signs)
            case "Expand":
                wider = SignedExpand(first.step, node.path, first.signs)
                return SignedPart(wider, frozenset(output_ids(node)), first.signs)
            case "Join":
                return _joined(node, parts)
            case kind if kind in PASSED:
                return first
            case kind:
                raise NoDelta(CLAUSES.get(kind, f"{kind} in Spark's plan"))

    def _check_expressions(self, node: PlanNode) -> None:
        """An expression with a subquery is never usable here."""
        for one in node.expressions:
            if not self._known.is_usable(one):
                raise NoDelta(f"{one.name or one.kind}, whose value does not follow from one row")


class Turns:
    """Sources in a node, which change one after another."""

    def __init__(self, signed: SignedRows, node: PlanNode) -> None:
        self._signed = signed
        self.sources = tuple(Source(path, at, one) for at, (path, one) in enumerate(signed.entries(node)))

    def delta(self, node: PlanNode, source: Source) -> SignedPart:
        """Changed rows of a node in the turn of one source in it."""
        if node.path == source.path:
            return source.changes.rows
        side = node.children[source.path[len(node.path)]]
        below = self.delta(side, source)
        if node.kind == "Union":  # the other children differ in parts of their own
            return _renamed(node, side, below)
        parts = [below if child is side else self.state(child, source.turn) for child in node.children]
        if node.path == source.path[:-1]:
            parts[0] = self._signed.over_time(parts[0], source.path)
        return self._signed.through(node, parts)

    def state(self, node: PlanNode, turn: int) -> SignedPart:
        """Rows of a node without that source: new rows of the sources before this turn, old rows of those after it."""
        later = [one for one in self.sources if one.turn > turn and is_within(one.path, node.path)]
        own = later[0] if later and later[0].path == node.path else None
        if len(later) == (0 if own is None else 1):
            now = SignedPart(Stored(node.path), frozenset(output_ids(node)))
        else:
            now = self._over(node, [self.state(child, turn) for child in node.children])
        return (
            now
            if own is None
            else self._either([now, own.changes.opposite], tuple(sorted(own.changes.rows.columns)))
        )

    def _over(self, node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
        if node.kind != "Union":
            return self._signed.through(node, parts)
        named = [_renamed(node, child, part) for child, part in zip(node.children, parts, strict=True)]
        return self._either(named, output_ids(node))

    def _either(self, parts: Sequence[SignedPart], columns: tuple[int, ...]) -> SignedPart:
        sign = self._signed.next_identity()
        steps = tuple(Signed(one.step, _kept(columns), one.signs, sign) for one in parts)
        return SignedPart(Either(steps), frozenset(columns), (sign,))


@dataclass(frozen=True)
class _Parts:
    """Keys of changed parts, in these columns."""

    step: Step
    columns: tuple[int, ...]

    def of(self, rows: Step, key: Key) -> Step:
        """Rows of these parts alone."""
        return InParts(rows, tuple(one.place for one in key), self.step, self.columns)


def _joined(node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
    left, right = parts
    columns = left.columns | frozenset(output_ids(node)) - frozenset(output_ids(node.children[0]))
    if node.join_type not in KEEPS_LEFT:
        columns = left.columns | right.columns
    return SignedPart(OnChildren(node.path, (left.step, right.step)), columns, _signs(parts))


def _renamed(node: PlanNode, child: PlanNode, part: SignedPart) -> SignedPart:
    """Rows of a child of a UNION under the names of the union."""
    names = output_ids(node)
    columns = tuple(Column(one, below) for one, below in zip(names, output_ids(child), strict=True))
    return SignedPart(Select(part.step, columns + _kept(part.signs)), frozenset(names), part.signs)


def _parts_of(root: PlanNode) -> Iterator[Expression]:
    for node in root.walk():
        for one in node.expressions:
            yield from one.walk()


def _signs(parts: Sequence[SignedPart]) -> tuple[int, ...]:
    return tuple(sign for one in parts for sign in one.signs)


def _kept(columns: Sequence[int]) -> tuple[Column, ...]:
    return tuple(Column(one, one) for one in columns)
