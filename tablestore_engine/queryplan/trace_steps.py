"""The query for the affected keys of one occurrence, as values: Spark's side builds it from Spark's own plan.

A step gives columns by their ExprIds. Paths and places are those of the traced plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.queryplan.plan_nodes import Path, Place


@dataclass(frozen=True)
class Stored:
    """A part of the plan as it is: no table in it has changed."""

    node: Path


@dataclass(frozen=True)
class OneRow:
    """A row without columns."""


@dataclass(frozen=True)
class ChangedRows:
    """Rows of an occurrence before and after its changes, without those that did not change in `columns`."""

    node: Path
    columns: tuple[int, ...]


@dataclass(frozen=True)
class RowsWithPast:
    """Rows of an occurrence as they are now, and those that they replaced: a superset of its old and new state."""

    node: Path


@dataclass(frozen=True)
class Column:
    """`source`: the attribute itself or another one, an expression, or None for NULL of the attribute's type.
    `is_normalized`: a floating-point number as Spark groups by it (0.0 for -0.0).
    """

    identity: int
    source: int | Place | None
    is_normalized: bool = False


@dataclass(frozen=True)
class Select:
    """A projection."""

    child: Step
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class RowsWhere:
    """Rows for which all conditions hold."""

    child: Step
    conditions: tuple[Place, ...]


@dataclass(frozen=True)
class SameValue:
    """`expression` <=> an attribute."""

    expression: Place
    identity: int


@dataclass(frozen=True)
class Matched:
    """An inner join."""

    left: Step
    right: Step
    conditions: tuple[Place | SameValue, ...]


@dataclass(frozen=True)
class Either:
    """Rows of all children, which give `columns` in this order."""

    children: tuple[Step, ...]


@dataclass(frozen=True)
class Expanded:
    """Some columns of the Expand node (by their numbers) over other rows."""

    child: Step
    node: Path
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class RowsOverTime:
    """Rows below the projection `node` for which one of its values that use the time is another than before."""

    child: Step
    node: Path
    values: tuple[Place, ...]


@dataclass(frozen=True)
class RowsOverValue:
    """Rows below the projection `node` for which one of its values is another over the old than over the new row of
    `changes`, a part of the plan that has one row; none, where that did not change.
    """

    child: Step
    node: Path
    values: tuple[Place, ...]
    changes: NetChanges


@dataclass(frozen=True)
class SignedChanges:
    """Changed rows of an occurrence, one for each row that is added or removed in `columns`, with the column `sign`: 1
    for added, -1 for removed rows; `is_opposite`: the reverse.
    """

    node: Path
    columns: tuple[int, ...]
    sign: int
    is_opposite: bool


@dataclass(frozen=True)
class Signed:
    """A projection with a column `sign` behind the others: the product of the columns `factors`, 1 without any;
    `is_opposite`: its opposite.
    """

    child: Step
    columns: tuple[Column, ...]
    factors: tuple[int, ...]
    sign: int
    is_opposite: bool = False


@dataclass(frozen=True)
class NetChanges:
    """Rows of `child` in which rows with both signs (its column `summed`) cancel, evaluated once for all places. The
    column `sign` of a row is 1 or -1; `is_opposite`: the reverse.
    """

    child: Step
    columns: tuple[int, ...]
    summed: int
    sign: int
    is_opposite: bool


@dataclass(frozen=True)
class RealRows:
    """Each row of `child` as often as its signs (its column `summed`) add up to, without a sign."""

    child: Step
    columns: tuple[int, ...]
    summed: int


@dataclass(frozen=True)
class InParts:
    """Rows of `child` whose `values` are those of a row of `parts`, where NULL equals NULL. `columns`: of `parts`,
    which is evaluated once for all places.
    """

    child: Step
    values: tuple[Place, ...]
    parts: Step
    columns: tuple[int, ...]


@dataclass(frozen=True)
class SignedExpand:
    """The Expand node over other rows, whose columns `signs` are kept."""

    child: Step
    node: Path
    signs: tuple[int, ...]


@dataclass(frozen=True)
class OnChildren:
    """The node over other rows; all columns of the children are kept."""

    node: Path
    children: tuple[Step, ...]


def read_paths(step: Step) -> frozenset[Path]:
    """Parts of the plan that are read whole, besides the changes."""
    match step:
        case Stored(node) | RowsWithPast(node):
            return frozenset([node])
        case ChangedRows() | OneRow() | SignedChanges():
            return frozenset()
        case Matched(left, right):
            return read_paths(left) | read_paths(right)
        case Either(children) | OnChildren(_, children):
            return frozenset[Path]().union(*map(read_paths, children))
        case InParts(child, _, parts):
            return read_paths(child) | read_paths(parts)
        case (
            Select(child) | RowsWhere(child) | Expanded(child) | Signed(child) | SignedExpand(child)
            | NetChanges(child) | RealRows(child)
        ):  # fmt: skip
            return read_paths(child)
        case RowsOverTime(child):
            return read_paths(child)
        case RowsOverValue(child, _, _, changes):
            return read_paths(child) | read_paths(changes)


Step = (
    Stored
    | OneRow
    | ChangedRows
    | RowsWithPast
    | Select
    | RowsWhere
    | Matched
    | Either
    | Expanded
    | RowsOverTime
    | RowsOverValue
    | SignedChanges
    | Signed
    | SignedExpand
    | NetChanges
    | RealRows
    | InParts
    | OnChildren
)
