"""Plans of Spark made by hand, with all rows they give: the oracle of test_node_trace_laws.

Each maker puts one node on given inputs. `rows_of` evaluates a plan over tables as SQL says, `traced_rows` the steps of
a trace over two states; neither knows anything of the tracer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import prod
from typing import Any

from tablestore_engine.queryplan import trace_steps as steps
from tablestore_engine.queryplan.occurrences import output_ids
from tablestore_engine.queryplan.plan_nodes import Expression, Path, Place, PlanNode

Row = dict[int, Any]
Tables = Mapping[str, Sequence[tuple[Any, ...]]]  # by name
Item = Callable[[Place], Expression]
Spec = Callable[[Path], PlanNode]
Maker = Callable[..., Spec]
_KEEPS_LEFT = ("LeftOuter", "LeftSingle", "FullOuter")
_ids = count(1)


class Fails(Exception):
    """Spark ends the query with an error over these rows."""


# ---- expressions -------------------------------------------------------------------------------------------


def attribute(identity: int) -> Item:
    """A column."""
    return lambda place: Expression("AttributeReference", (), place, identity, f"c{identity}", "integer")


def call(kind: str, *children: Item, **facts: Any) -> Item:
    """An expression over others."""

    def made(place: Place) -> Expression:
        below = [
            Place(place.node, place.field, place.item, (*place.below, number))
            for number in range(len(children))
        ]
        parts = tuple(child(one) for child, one in zip(children, below, strict=True))
        return Expression(kind, parts, place, type="integer", facts=facts)

    return made


def literal(value: Any) -> Item:
    """A constant."""
    return call("Literal", value=value)


def alias(value: Item) -> Item:
    """Under a new id."""
    given = next(_ids)

    def made(place: Place) -> Expression:
        child = value(Place(place.node, place.field, place.item, (*place.below, 0)))
        return Expression("Alias", (child,), place, given, f"c{given}", "integer")

    return made


def number_of_rows(kind: str) -> Item:
    """Under the name of an aggregate function, by which the tracer judges whether its value is exact."""
    return call("AggregateExpression", call(kind, literal(1)))


def node(
    kind: str, specs: Sequence[Spec], make: Callable[..., Mapping[str, Sequence[Item]]], **facts: Any
) -> Spec:
    """`make`: of the output ids of each input, the expressions of each field."""

    def made(path: Path) -> PlanNode:
        children = tuple(spec((*path, number)) for number, spec in enumerate(specs))
        fields = {
            name: tuple(item(Place(path, name, at)) for at, item in enumerate(items))
            for name, items in make(*map(output_ids, children)).items()
        }
        return PlanNode(kind, children, path, fields, facts)

    return made


def new_attribute() -> Item:
    """A column of its own."""
    return attribute(next(_ids))


def table(name: str) -> Spec:
    """A leaf with two columns."""
    columns = [new_attribute(), new_attribute()]
    return node("LocalRelation", (), lambda: {"output": columns}, table=name)


# ---- rows of a plan ----------------------------------------------------------------------------------------


def value_of(expression: Expression, row: Row, group: Sequence[Row] = ()) -> Any:
    """Over one row, or over a group."""
    kind, children = expression.kind, expression.children
    if kind == "AttributeReference":
        return row[expression.identity or 0]
    if kind == "Literal":
        return expression.facts["value"]
    if kind == "AggregateExpression" or kind == "WindowExpression":
        return len(group)
    values = [value_of(one, row, group) for one in children]
    if kind == "Alias":
        return values[0]
    if kind == "EqualTo":
        return None if None in values else values[0] == values[1]
    if kind == "IsNull":
        return values[0] is None
    assert kind == "Explode", kind
    return values[0]


def rows_of(plan: PlanNode, tables: Tables) -> list[Row]:
    """What SQL says that the plan gives."""
    if plan.kind == "LocalRelation":
        ids = output_ids(plan)
        return [dict(zip(ids, row, strict=True)) for row in tables[plan.facts["table"]]]
    return rows_over(plan, [rows_of(child, tables) for child in plan.children])


def rows_over(plan: PlanNode, inputs: Sequence[Sequence[Row]]) -> list[Row]:
    """Of a node over these rows of its children."""
    match plan.kind:
        case "OneRowRelation":
            return [{}]
        case "Union":
            ids = output_ids(plan)
            return [
                {one: row[inner] for one, inner in zip(ids, output_ids(child), strict=True)}
                for child, rows in zip(plan.children, inputs, strict=True)
                for row in rows
            ]
        case "Join":
            return list(_joined(plan, *inputs))
        case "Aggregate":
            return list(_grouped(plan, inputs[0]))
        case "Window":
            return [
                row | _made(plan.fields["windowExpressions"], row, _partition(plan, row, inputs[0]))
                for row in inputs[0]
            ]
        case _:
            return [found for row in inputs[0] for found in over_row(plan, row)]


def over_row(plan: PlanNode, row: Row, numbers: Sequence[int] | None = None) -> list[Row]:
    """Of a node that works on each row alone."""
    match plan.kind:
        case "Project":
            return [_made(plan.fields["projectList"], row)]
        case "Filter":
            return [row] if value_of(plan.fields["condition"][0], row) is True else []
        case "Generate":  # explode(array(x, 7)), of NULL nothing
            value = value_of(plan.fields["generator"][0], row)
            made = plan.fields["generatorOutput"][0].identity or 0
            return [] if value is None else [{**row, made: one} for one in (value, 7)]
        case "Expand":
            output = output_ids(plan)
            width, items = len(output), plan.fields["projections"]
            kept = range(width) if numbers is None else numbers
            return [
                {output[at]: value_of(items[start + at], row) for at in kept}
                for start in range(0, len(items), width)
            ]
        case _:
            return [row]


def _made(items: Sequence[Expression], row: Row, group: Sequence[Row] = ()) -> Row:
    return {one.identity or 0: value_of(one, row, group) for one in items}


def _partition(plan: PlanNode, row: Row, rows: Sequence[Row]) -> list[Row]:
    by = plan.fields["partitionSpec"]
    return [one for one in rows if all(value_of(key, one) == value_of(key, row) for key in by)]


def _grouped(plan: PlanNode, rows: Sequence[Row]) -> Iterator[Row]:
    by = plan.fields["groupingExpressions"]
    groups: dict[tuple[Any, ...], list[Row]] = {} if by else {(): []}
    for row in rows:
        groups.setdefault(tuple(value_of(one, row) for one in by), []).append(row)
    for group in groups.values():
        yield _made(plan.fields["aggregateExpressions"], group[0] if group else {}, group)


def _joined(plan: PlanNode, left: Sequence[Row], right: Sequence[Row]) -> Iterator[Row]:
    condition, kind = plan.fields.get("condition", ()), plan.join_type
    nulls = [dict.fromkeys(output_ids(child)) for child in plan.children]
    taken: set[int] = set()
    for one in left:
        found = [
            (at, other) for at, other in enumerate(right)
            if all(value_of(part, {**one, **other}) is True for part in condition)
        ]  # fmt: skip
        taken |= {at for at, _ in found}
        match kind:
            case "LeftSemi" | "LeftAnti":
                yield from [one] if bool(found) == (kind == "LeftSemi") else []
            case "ExistenceJoin":
                yield {**one, plan.fields["joinType.exists"][0].identity or 0: bool(found)}
            case "LeftSingle" if len(found) > 1:
                raise Fails
            case _:
                yield from ({**one, **other} for _, other in found)
                yield from [{**one, **nulls[1]}] if not found and kind in _KEEPS_LEFT else []
    if kind in ("RightOuter", "FullOuter"):
        yield from ({**nulls[0], **other} for at, other in enumerate(right) if at not in taken)


# ---- rows of a trace ---------------------------------------------------------------------------------------


def traced_rows(root: PlanNode, step: steps.Step, before: Tables, after: Tables) -> list[Row]:
    """What the query for affected keys gives."""

    def run(one: steps.Step) -> list[Row]:
        return traced_rows(root, one, before, after)

    match step:
        case steps.OneRow():
            return [{}]
        case steps.Stored(path):
            return rows_of(node_at(root, path), after)
        case steps.ChangedRows(path, columns):
            old, new = (_counted(rows_of(node_at(root, path), state), columns) for state in (before, after))
            return [dict(zip(columns, row, strict=True)) for row in ((old - new) + (new - old))]
        case steps.RowsWithPast(path):
            whole = output_ids(node_at(root, path))
            old, new = (_counted(rows_of(node_at(root, path), state), whole) for state in (before, after))
            return [dict(zip(whole, row, strict=True)) for row in (new + (old - new)).elements()]
        case steps.Select(child, columns):
            return [{one.identity: _source(root, one.source, row) for one in columns} for row in run(child)]
        case steps.RowsWhere(child, conditions):
            return [row for row in run(child) if all(_holds(root, one, row) for one in conditions)]
        case steps.RowsOverValue(child, path, values, changes):
            return _over_value(root, run(child), (path, values), run(changes), changes.sign)
        case steps.Matched(left, right, conditions):
            pairs = ({**one, **other} for one in run(left) for other in run(right))
            return [row for row in pairs if all(_holds(root, one, row) for one in conditions)]
        case steps.Either(children):
            return [row for child in children for row in run(child)]
        case steps.Expanded(child, path, numbers):
            return [made for row in run(child) for made in over_row(node_at(root, path), row, numbers)]
        case _:
            return _signed_rows(root, step, before, after)


def _over_value(
    root: PlanNode,
    rows: Sequence[Row],
    places: tuple[Path, Sequence[Place]],
    states: Sequence[Row],
    sign: int,
) -> list[Row]:
    """Rows for which a value is another over the old than over the new row of a part with one row."""
    if not states:
        return []
    assert sorted(one[sign] for one in states) == [-1, 1], "a part with other than one row"
    old, new = sorted(states, key=lambda one: int(one[sign]))
    values = [_expression(root, one) for one in places[1]]
    return [
        row for row in rows if any(value_of(one, row | old) != value_of(one, row | new) for one in values)
    ]


def _signed_rows(root: PlanNode, step: steps.Step, before: Tables, after: Tables) -> list[Row]:
    """Of the steps that signed rows have besides, those of nodes with a key too."""
    match step:
        case steps.SignedChanges(path, columns, sign, is_opposite):
            old, new = (_counted(rows_of(node_at(root, path), state), columns) for state in (before, after))
            added = -1 if is_opposite else 1
            return [
                {**dict(zip(columns, row, strict=True)), sign: value}
                for rows, value in ((new - old, added), (old - new, -added))
                for row in rows.elements()
            ]
        case steps.Signed(child, columns, factors, sign, is_opposite):
            start = -1 if is_opposite else 1
            return [
                {
                    **{one.identity: _source(root, one.source, row) for one in columns},
                    sign: prod((row[one] for one in factors), start=start),
                }
                for row in traced_rows(root, child, before, after)
            ]
        case steps.SignedExpand(child, path, signs):
            return [
                {**made, **{one: row[one] for one in signs}}
                for row in traced_rows(root, child, before, after)
                for made in over_row(node_at(root, path), row)
            ]
        case steps.OnChildren(path, children):
            return rows_over(node_at(root, path), [traced_rows(root, one, before, after) for one in children])
    return _rows_in_parts(root, step, before, after)


def _rows_in_parts(root: PlanNode, step: steps.Step, before: Tables, after: Tables) -> list[Row]:
    """Of the steps that nodes with a key have besides."""
    match step:
        case steps.NetChanges(child, columns, summed, sign, is_opposite):
            net = _net(traced_rows(root, child, before, after), columns, summed)
            factor = -1 if is_opposite else 1
            return [
                {**dict(zip(columns, row, strict=True)), sign: factor if count > 0 else -factor}
                for row, count in net.items()
                for _ in range(abs(count))
            ]
        case steps.RealRows(child, columns, summed):
            net = _net(traced_rows(root, child, before, after), columns, summed)
            assert all(count >= 0 for count in net.values()), "a row that was there less than never"
            return [dict(zip(columns, row, strict=True)) for row in net.elements()]
        case steps.InParts(child, values, parts, columns):
            keys = part_keys(
                tuple(row[one] for one in columns) for row in traced_rows(root, parts, before, after)
            )
            return [
                row
                for row in traced_rows(root, child, before, after)
                if tuple(_source(root, one, row) for one in values) in keys
            ]
    raise AssertionError(step)


def part_keys(rows: Iterable[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Keys of changed parts; NULL equals NULL."""
    return set(rows)


def _net(rows: Sequence[Row], columns: Sequence[int], sign: int) -> Counter[tuple[Any, ...]]:
    found = Counter[tuple[Any, ...]]()
    for row in rows:
        found[tuple(row[one] for one in columns)] += row[sign]
    return found


def node_at(root: PlanNode, path: Path) -> PlanNode:
    """By the indexes of children."""
    for number in path:
        root = root.children[number]
    return root


def _counted(rows: Sequence[Row], columns: Sequence[int]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[one] for one in columns) for row in rows)


def _source(root: PlanNode, source: int | Place | None, row: Row) -> Any:
    if source is None or isinstance(source, int):
        return None if source is None else row[source]
    return value_of(_expression(root, source), row)


def _holds(root: PlanNode, condition: Place | steps.SameValue, row: Row) -> bool:
    if isinstance(condition, steps.SameValue):
        return bool(value_of(_expression(root, condition.expression), row) == row[condition.identity])
    return value_of(_expression(root, condition), row) is True


def _expression(root: PlanNode, place: Place) -> Expression:
    found = node_at(root, place.node).fields[place.field][place.item or 0]
    for number in place.below:
        found = found.children[number]
    return found
