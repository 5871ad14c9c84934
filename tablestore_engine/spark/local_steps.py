"""Steps of a `changed_keys` run in the driver: few changed rows, joined with rows that are read by their keys.

CHANGE     which steps of a `changed_keys` run need no Spark job
Steps      changed rows as Arrow → expressions and conditions by Spark's optimizer, over these rows as values of a plan
           → the other side of a join: its rows with the key values of this side, by the store's look-up → equal values
           side by side
INVARIANT  every expression is evaluated by Spark, as it analyzed it. Here columns are chosen, and rows are joined by
           equality of types whose equal values are the same value.
INVARIANT  what is not listed here is NotLocal: Spark computes the step as a plan of its own, with the same rows.
WHY        a hundred changed rows cost a job with shuffles, and a reading of all rows of each table that they join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.queryplan.known_columns import KnownColumns, conjuncts
from tablestore_engine.queryplan.occurrences import Occurrence, output_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode, is_within
from tablestore_engine.queryplan.plan_rules import INNER, PASSED
from tablestore_engine.queryplan.run_time import is_time
from tablestore_engine.queryplan.trace_steps import (
    ChangedRows,
    Column,
    Either,
    NetChanges,
    OnChildren,
    RowsWhere,
    Select,
    Signed,
    SignedChanges,
    Step,
    Stored,
    read_paths,
)
from tablestore_engine.spark.changed_rows_text import ChangedKind
from tablestore_engine.spark.collected_parts import NetTable
from tablestore_engine.spark.plan_rows import Numbers, PlanRows, TypedValues, Values, equal_rows, rows_of_all

ROWS_MAX = 2_000_000  # of one step
# types whose equal values are the same value, to Arrow and to Spark
_EQUAL = (
    "byte",
    "short",
    "integer",
    "long",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "string",
    "binary",
)
# join type → the side whose rows are given, while the other one is looked up
_GIVEN = {"LeftOuter": 0, "LeftSemi": 0, "LeftAnti": 0, "RightOuter": 1}
# table, names of columns, which changed rows → these columns, and behind them the signs of signed rows
ChangedTables = Callable[[str, Sequence[str], ChangedKind], pa.Table | None]
# table, values of its primary key by the names of its columns, names of columns → its rows with such keys
FindByKey = Callable[[str, Mapping[str, Values], Sequence[str]], pa.Table | None]
# the same of values of any columns, and the most rows; None: also if they are more
FindListed = Callable[[str, Mapping[str, Values], Sequence[str], int], pa.Table | None]
Evaluate = Callable[[PlanRows, Sequence[Expression]], Sequence[TypedValues] | None]


class NotLocal(Exception):
    """Spark has to compute a step."""


@dataclass(frozen=True)
class LocalInputs:
    """Where rows come from. `occurrences`: all readings of tables of the plan. `has_changes`: whether the driver has
    all changed rows. `find_listed`: rows by columns that are no primary key.
    """

    occurrences: Sequence[Occurrence]
    changed: ChangedTables
    find: FindByKey
    has_changes: Callable[[], bool] = lambda: True
    find_listed: FindListed = lambda *_: None


@dataclass(frozen=True)
class _Wanted:
    """Rows of one leaf: those with these values of its primary key."""

    path: Path
    keys: Mapping[str, Values]


class LocalSteps:
    """Of one plan. `evaluate`: expressions over rows; `net`: changed rows of a part of it, if they may be asked."""

    def __init__(
        self,
        known: KnownColumns,
        inputs: LocalInputs,
        evaluate: Evaluate,
        net: Callable[[Step], NetTable] | None = None,
    ) -> None:
        self._known, self._inputs, self._evaluate, self._net = known, inputs, evaluate, net
        self._leaves = {one.path: one for one in inputs.occurrences if not one.in_subquery}

    def rows(self, step: Step, wanted: _Wanted | None = None) -> PlanRows:
        """Raises NotLocal, and what Spark raises."""
        found = self._rows(step, wanted)
        if found.count > ROWS_MAX:
            raise NotLocal
        return found

    def _rows(self, step: Step, wanted: _Wanted | None) -> PlanRows:
        match step:
            case SignedChanges(path, columns, sign, is_opposite):
                kind = ChangedKind.OPPOSITE if is_opposite else ChangedKind.SIGNED
                return self._changed(path, (*columns, sign), kind)
            case ChangedRows(path, columns) if columns:
                return self._changed(path, columns, ChangedKind.BOTH)
            case NetChanges(child, columns, _, sign, is_opposite) if self._net is not None:
                return _net_rows(self._net(child), (*columns, sign), -1 if is_opposite else 1)
            case Stored(path):
                return self._node(self._known.at(path), wanted)
            case Select(child, columns):
                return self._selected(self.rows(child, wanted), columns)
            case Signed(child, columns, factors, sign, is_opposite):
                below = self.rows(child, wanted)
                chosen = self._selected(below, columns)
                signs = _product(below, factors, -1 if is_opposite else 1)
                return chosen.of({**chosen.columns, sign: signs})
            case RowsWhere(child, conditions):
                return self.where(self.rows(child, wanted), [self._expression(one) for one in conditions])
            case Either(children) if children:
                return rows_of_all([self.rows(child, wanted) for child in children])
            case OnChildren(path, children):
                return self._on(self._known.at(path), children, wanted)
        raise NotLocal

    # ---- leaves and nodes ----------------------------------------------------------------------------------

    def _changed(self, path: Path, ids: Sequence[int], kind: ChangedKind) -> PlanRows:
        leaf = self._leaf(path)
        is_signed = kind is not ChangedKind.BOTH
        columns = ids[:-1] if is_signed else ids
        found = self._inputs.changed(leaf.table, [leaf.columns[one] for one in columns], kind)
        if found is None:
            raise NotLocal
        types = [*(self._known.attributes[one].type for one in columns), *(["integer"] if is_signed else [])]
        values = (TypedValues(one, type_) for one, type_ in zip(found.columns, types, strict=True))
        return PlanRows(dict(zip(ids, values, strict=True)), found.num_rows)

    def _leaf(self, path: Path) -> Occurrence:
        found = self._leaves.get(path)
        if found is None or is_time(found):
            raise NotLocal
        return found

    def _node(self, node: PlanNode, wanted: _Wanted | None) -> PlanRows:
        """Rows of a part of the plan, as far as its leaf has the wanted keys."""
        if not node.children:
            leaf = self._leaf(node.path)
            if wanted is None or wanted.path != node.path or not leaf.columns:
                raise NotLocal
            found = self._inputs.find(leaf.table, wanted.keys, list(leaf.columns.values()))
            if found is None:
                raise NotLocal
            columns = {
                one: TypedValues(values, self._known.attributes[one].type)
                for one, values in zip(leaf.columns, found.columns, strict=True)
            }
            return PlanRows(columns, found.num_rows)
        return self._on(node, tuple(Stored(child.path) for child in node.children), wanted)

    def _on(self, node: PlanNode, children: Sequence[Step], wanted: _Wanted | None) -> PlanRows:
        match node.kind:
            case "Join":
                return _Join(self, node, children, wanted).rows()
            case "Filter":
                return self.where(self.rows(children[0], wanted), node.fields["condition"])
            case "Project":
                items = node.fields["projectList"]
                columns = [Column(one.identity or 0, one.place) for one in items]
                return self._selected(self.rows(children[0], wanted), columns)
            case kind if kind in PASSED:
                return self.rows(children[0], wanted)
        raise NotLocal

    # ---- expressions ---------------------------------------------------------------------------------------

    def values(self, rows: PlanRows, expressions: Sequence[Expression]) -> list[TypedValues]:
        """Of expressions over rows; a column is as it is."""
        inner = [one.children[0] if one.kind == "Alias" else one for one in expressions]
        asked = [one for one in inner if not one.is_attribute]
        for one in inner:
            if not one.references <= rows.columns.keys():
                raise NotLocal
        made: list[TypedValues] = []
        if asked:
            found = self._evaluate(rows, asked)
            if found is None:
                raise NotLocal
            made = list(found)
        computed = iter(made)
        return [rows.columns[one.identity or 0] if one.is_attribute else next(computed) for one in inner]

    def where(self, rows: PlanRows, conditions: Sequence[Expression]) -> PlanRows:
        """Rows for which all conditions are TRUE."""
        if not conditions or not rows.count:
            return rows
        mask = np.ones(rows.count, bool)
        for one in self.values(rows, conditions):
            mask &= np.asarray(pc.fill_null(one.values, False), dtype=bool)
        return rows.filter(mask)

    def _selected(self, rows: PlanRows, columns: Sequence[Column]) -> PlanRows:
        if len({one.identity for one in columns}) < len(columns):
            raise NotLocal
        places = [one.source for one in columns if isinstance(one.source, Place)]
        made = iter(self.values(rows, [self._expression(one) for one in places]))
        found: dict[int, TypedValues] = {}
        for one in columns:
            if one.is_normalized or one.source is None:
                raise NotLocal
            if isinstance(one.source, Place):
                found[one.identity] = next(made)
            elif one.source in rows.columns:
                found[one.identity] = rows.columns[one.source]
            else:
                raise NotLocal
        return rows.of(found)

    def _expression(self, place: Place) -> Expression:
        listed = self._known.at(place.node).fields.get(place.field, ())
        found = next((one for one in listed if one.place.item == place.item), None)
        for number in place.below:
            found = None if found is None else found.children[number]
        if found is None:
            raise NotLocal
        return found

    def find_leaf(self, node: PlanNode, ids: Mapping[int, Values]) -> _Wanted | None:
        """The leaf in a part of the plan whose whole primary key is among columns with known values."""
        for leaf in self._leaves.values():
            if not is_within(leaf.path, node.path) or is_time(leaf) or not leaf.source.primary_key:
                continue
            if leaf.source.is_fixed:  # its name means the state of now
                continue
            named = {leaf.columns[one].lower(): values for one, values in ids.items() if one in leaf.columns}
            key = [name.lower() for name in leaf.source.primary_key]
            if all(name in named for name in key):
                return _Wanted(leaf.path, {name: named[name] for name in key})
        return None


class _Join:
    """Of a node and what its children are. The side that needs no look-up comes first."""

    def __init__(
        self, steps: LocalSteps, node: PlanNode, children: Sequence[Step], wanted: _Wanted | None
    ) -> None:
        self._steps, self._node, self._children, self._wanted = steps, node, children, wanted
        known = [_is_known(one, wanted) for one in children]
        self._first = _GIVEN.get(node.join_type, 0 if known[0] else 1)
        if not known[self._first] or not (node.join_type in INNER or node.join_type in _GIVEN):
            raise NotLocal
        self._is_known_other = known[1 - self._first]

    def rows(self) -> PlanRows:
        first, other = self._first, 1 - self._first
        given = self._steps.rows(self._children[first], self._wanted)
        equal, rest = self._equalities()
        mine = self._steps.values(given, [one[first] for one in equal])
        pairs = [
            (values, one[other], one)
            for values, one in zip(mine, equal, strict=True)
            if _has_equal(values.type)
        ]
        kept = [one for _, _, one in pairs]
        rest += [one[2] for one in equal if one not in kept]
        if not pairs:
            raise NotLocal
        wanted = self._wanted if self._is_known_other else self._look_up(pairs)
        found = self._steps.rows(self._children[other], wanted)
        if self._node.join_type not in INNER and any(one < 0 for one in found.columns):
            raise NotLocal  # signs of an optional side
        theirs = self._steps.values(found, [one for _, one, _ in pairs])
        numbers = equal_rows([one.values for one, _, _ in pairs], [one.values for one in theirs])
        return self._joined(given, found, numbers, rest)

    def _look_up(self, pairs: Sequence[tuple[TypedValues, Expression, object]]) -> _Wanted:
        ids = {one.identity or 0: values.values for values, one, _ in pairs if one.is_attribute}
        wanted = self._steps.find_leaf(self._node.children[1 - self._first], ids)
        if wanted is None:
            raise NotLocal
        return wanted

    def _joined(
        self, given: PlanRows, found: PlanRows, numbers: tuple[Numbers, Numbers], rest: Sequence[Expression]
    ) -> PlanRows:
        at = self._steps.where(
            _numbered(given.take(pa.array(numbers[0])), numbers[0]).beside(found.take(pa.array(numbers[1]))),
            rest,
        )
        matched = np.asarray(at.columns[_NUMBER].values, np.int64)
        kind = self._node.join_type
        if kind in ("LeftSemi", "LeftAnti"):
            mask = np.zeros(given.count, bool)
            mask[matched] = True
            return given.filter(mask if kind == "LeftSemi" else ~mask)
        inner = at.of({one: values for one, values in at.columns.items() if one != _NUMBER})
        if kind in INNER:
            return inner
        alone = np.setdiff1d(np.arange(given.count), matched)
        nobody = pa.nulls(len(alone), pa.int64())
        return rows_of_all([inner, given.take(pa.array(alone)).beside(found.take(nobody))])

    def _equalities(self) -> tuple[list[tuple[Expression, Expression, Expression]], list[Expression]]:
        """(sides of equalities of both children with the whole, other conditions)."""
        ids = [frozenset(output_ids(child)) for child in self._node.children]
        equal, rest = [], []
        for one in conjuncts(self._node.fields.get("condition", ())):
            sides = one.children if one.kind == "EqualTo" else ()
            if len(sides) == 2 and all(side.references and not side.plans for side in sides):
                if sides[0].references <= ids[0] and sides[1].references <= ids[1]:
                    equal.append((sides[0], sides[1], one))
                    continue
                if sides[0].references <= ids[1] and sides[1].references <= ids[0]:
                    equal.append((sides[1], sides[0], one))
                    continue
            rest.append(one)
        return equal, rest


def _is_known(step: Step, wanted: _Wanted | None) -> bool:
    """Whether its rows follow from changed rows and the wanted keys."""
    match step:
        case Stored(path):
            return wanted is not None and is_within(wanted.path, path)
        case OnChildren(_, (left, right)):  # one side is looked up by the other
            return _is_known(left, wanted) or _is_known(right, wanted)
        case Either(children) | OnChildren(_, children):
            return all(_is_known(one, wanted) for one in children)
        case Select(child) | RowsWhere(child) | Signed(child):
            return _is_known(child, wanted)
    return isinstance(step, NetChanges) or not read_paths(step)


_NUMBER = 0  # no ExprId: rows of the given side, while they are joined


def _numbered(rows: PlanRows, numbers: Numbers) -> PlanRows:
    return rows.of({**rows.columns, _NUMBER: TypedValues(pa.chunked_array([numbers]), "long")})


def _net_rows(found: NetTable, ids: Sequence[int], factor: int) -> PlanRows:
    """Columns by these ids, and the sign."""
    rows = found.signed(factor)
    types = [*(one.dataType.jsonValue() for one in found.schema.fields), "integer"]
    values = map(TypedValues, rows.columns, types)
    return PlanRows(dict(zip(ids, values, strict=True)), rows.num_rows)


def _has_equal(type_: object) -> bool:
    return isinstance(type_, str) and (type_ in _EQUAL or type_.startswith("decimal"))


def _product(rows: PlanRows, factors: Sequence[int], sign: int) -> TypedValues:
    found = np.full(rows.count, sign, np.int32)
    for one in factors:
        if one not in rows.columns:
            raise NotLocal
        found *= np.asarray(rows.columns[one].values, np.int32)
    return TypedValues(pa.chunked_array([found]), "integer")
