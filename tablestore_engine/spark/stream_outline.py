"""Whether a query over changes can be asked of each range of them alone, from the text of its analysed plan.

CHANGE     which queries may use `stream()`
Rule       the rows of a stream may be filtered, projected, unfolded, joined with tables that keep each of them, and
           united with other streams: then the query over all changes is the queries over their ranges, one after the
           other. Whatever else stands above a stream would have to know earlier ranges.
INVARIANT  what is not known to be right is refused: a new kind of node in a new Spark too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

_LINE = re.compile(r"(\d+) ((?:[: ]  )*(?:[:+]- )?)(.*)", re.DOTALL)
_VIEW = re.compile(r"View \(`[^`]+`\.`([^`]+)`\.`([^`]+)`")
_DEFINED = re.compile(r"CTERelationDef (\d+)")
_REFERRED = re.compile(r"CTERelationRef (\d+)")
_JOINED = re.compile(r"(?:Lateral)?Join (?:lateral-subquery#\d+ \[[^\]]*\], )?(\w+)")
_KEEPS_LEFT = frozenset({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin"})
_KEEPS_RIGHT = frozenset({"Inner", "Cross", "RightOuter"})
_ROW_BY_ROW = frozenset({
    "Project", "Filter", "SubqueryAlias", "View", "WithCTE", "CTERelationDef", "PipeOperator", "Generate",
    "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "UnresolvedHint", "Sample",
})  # fmt: skip
CLAUSES = {
    "Aggregate": "an aggregate (GROUP BY, count, sum, …)",
    "Distinct": "DISTINCT (or UNION without ALL)",
    "Deduplicate": "DISTINCT",
    "Window": "a window function",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Tail": "LIMIT",
    "Sort": "ORDER BY",
    "Intersect": "INTERSECT",
    "Except": "EXCEPT",
    "Expand": "GROUPING SETS",
    "Pivot": "PIVOT",
    "Sample": "TABLESAMPLE",
    "UnionLoop": "a recursive CTE",
}
_SAFE_OVER_TOTALS = frozenset({
    "Project", "SubqueryAlias", "View", "WithCTE", "CTERelationDef", "PipeOperator", "Union", "Repartition",
    "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "UnresolvedHint",
})  # fmt: skip


@dataclass(frozen=True)
class StreamOutline:
    """`clause`: what needs more than one range at a time; None: nothing does."""

    clause: str | None


@dataclass
class _OutlineNode:
    """`is_subquery`: it stands in an expression of the node above."""

    depth: int
    text: str
    is_subquery: bool = False
    children: list[_OutlineNode] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The word that the text begins with."""
        found = re.match(r"\w+", self.text)
        return found[0] if found else self.text


class _Refused(Exception):
    def __init__(self, clause: str) -> None:
        super().__init__(clause)
        self.clause = clause


def outline_streams(frame: DataFrame, streams: Collection[tuple[str, str]]) -> StreamOutline:
    """`streams`: (database, name) of what the query follows, as Spark knows it; names have no case."""
    text = str(frame._jdf.queryExecution().analyzed().numberedTreeString())
    return read_streams(text, streams)


def find_stale(frame: DataFrame) -> str | None:
    """A query whose rows are put whenever they change says nothing of a row that it gives no more: its clause."""
    text = str(frame._jdf.queryExecution().analyzed().numberedTreeString())
    return read_stale(text)


def read_stale(numbered: str) -> str | None:
    """Of `numberedTreeString` of the analysed plan of a streaming frame, in which `~` marks what streams."""
    try:
        _TotalsWalk().follow(_read_tree(numbered))
    except _Refused as refused:
        return refused.clause
    return None


def read_streams(numbered: str, streams: Collection[tuple[str, str]]) -> StreamOutline:
    """Of `numberedTreeString` of an analysed plan."""
    names = frozenset((database.lower(), name.lower()) for database, name in streams)
    try:
        if not _OutlineWalk(names).follow(_read_tree(numbered)):
            raise _Refused("its result, which has no row of a stream: no selected column reads a stream")
    except _Refused as refused:
        return StreamOutline(refused.clause)
    return StreamOutline(None)


def _read_tree(numbered: str) -> _OutlineNode:
    """Every line has a number; one without a place in the tree belongs to a literal of the one before."""
    path: list[_OutlineNode] = []
    root: _OutlineNode | None = None
    for line in numbered.split("\n"):
        found = _LINE.fullmatch(line)
        if found is None or (root is not None and not found[2]):
            continue
        node = _OutlineNode(len(found[2]) // 3, found[3])
        while path and path[-1].depth >= node.depth:
            path.pop()
        if path:
            node.is_subquery = node.depth > path[-1].depth + 1
            path[-1].children.append(node)
        root = root or node
        path.append(node)
    if root is None:
        raise _Refused("a plan that cannot be read")
    return root


class _OutlineWalk:
    """Definitions stand before what refers to them, so one pass in the order of the text is enough."""

    def __init__(self, streams: frozenset[tuple[str, str]]) -> None:
        self._streams = streams
        self._defined: set[str] = set()

    def follow(self, node: _OutlineNode) -> bool:
        """Whether rows of a stream come out of it. Raises _Refused."""
        view = _VIEW.match(node.text)
        if view is not None and (view[1].lower(), view[2].lower()) in self._streams:
            return True
        if not node.children and node.kind in CLAUSES:
            raise _Refused("a text literal whose line breaks look like a plan")
        referred = _REFERRED.match(node.text)
        if referred is not None:
            return referred[1] in self._defined
        carried = [self.follow(child) for child in node.children]
        inside = [child.is_subquery for child in node.children]
        if any(rows and hidden for rows, hidden in zip(carried, inside, strict=True)):
            raise _Refused("a subquery in an expression (IN, EXISTS, a scalar) over a stream")
        sides = [rows for rows, hidden in zip(carried, inside, strict=True) if not hidden]
        if not any(sides):
            return False
        _check(node, sides)
        defined = _DEFINED.match(node.text)
        if defined is not None:
            self._defined.add(defined[1])
            return False  # rows come out where it is referred to
        if node.kind == "WithCTE":
            return sides[-1]
        return True


class _TotalsWalk:
    """Looks for what stands over an aggregate of a stream."""

    def __init__(self) -> None:
        self._totals: set[str] = set()  # definitions that give totals

    def follow(self, node: _OutlineNode) -> bool:
        """Whether totals of a stream come out of it. Raises _Refused."""
        text = node.text.removeprefix("~")
        referred = _REFERRED.match(text)
        if referred is not None:
            return referred[1] in self._totals
        has_totals = any(list(map(self.follow, node.children)))  # definitions stand in all of them
        kind = re.match(r"\w+", text)
        name = kind[0] if kind else text
        if has_totals and name not in _SAFE_OVER_TOTALS:
            clause = "HAVING, or WHERE" if name == "Filter" else CLAUSES.get(name, name)
            raise _Refused(f"{clause} over an aggregate")
        defined = _DEFINED.match(text)
        if defined is not None and has_totals:
            self._totals.add(defined[1])
        return has_totals or (name in ("Aggregate", "Distinct", "Deduplicate") and node.text.startswith("~"))


def _check(node: _OutlineNode, sides: Sequence[bool]) -> None:
    """A node above a stream; `sides`: which children bring its rows."""
    kind = node.kind
    if kind == "Union":
        if not all(sides):
            raise _Refused("UNION with rows of a table, which would come again with each range")
    elif kind in ("Join", "LateralJoin"):
        _check_join(node, sides)
    elif kind == "Sort" and node.text.endswith("false"):  # SORT BY, CLUSTER BY: within a partition
        return
    elif kind not in _ROW_BY_ROW:
        raise _Refused(CLAUSES.get(kind, f"{kind} in Spark's plan"))


def _check_join(node: _OutlineNode, sides: Sequence[bool]) -> None:
    if all(sides) and len(sides) > 1:
        raise _Refused("a join of two streams")
    found = _JOINED.match(node.text)
    how = "unknown" if found is None else found[1]
    kept = _KEEPS_LEFT if sides[0] else _KEEPS_RIGHT
    if how not in kept:
        side = "right" if sides[0] else "left"
        raise _Refused(f"a join ({how}) that also keeps or gives rows of the table on its {side} side")
