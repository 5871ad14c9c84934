"""Where the trace of affected keys begins: at tables that changed, or at parts of the plan that stand for them.

The result of an aggregate or window function is no known column (known_columns): it may differ between the old and the
new state. Where a key or a join needs it, the part of the plan that makes it counts as a table. Its changed rows are
its new rows minus its old rows, evaluated over the groups or partitions that have a changed row (signed_rows), or over
all rows of a total. All of their columns are known.

CHANGE     which queries are restricted to keys although these follow from aggregates or windows
INVARIANT  a part counts as a table only if its changed rows are exact: `SignedRows.changes_in` raises NoDelta else.
INVARIANT  a window in a part whose rows may be equal in ORDER BY gives one of several results. So the run looks at
           these rows (`Ties`), and compares all rows if two are equal.
INVARIANT  no part lies in another one, and each changed table lies in one part or is traced by itself. Only the search
           for parts is a heuristic: what it finds is proven by key_trace, as for tables.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tablestore_engine.queryplan.key_trace import trace_keys
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import Occurrence, TableColumns, output_ids
from tablestore_engine.queryplan.plan_nodes import Path, PlanNode, is_within
from tablestore_engine.queryplan.run_time import row_references
from tablestore_engine.queryplan.signed_rows import SignedRows
from tablestore_engine.queryplan.split_nodes import find_projection, has_one_row
from tablestore_engine.queryplan.trace_steps import NetChanges, Step

_Paths = tuple[Path, ...]


@dataclass(frozen=True)
class TracedSource:
    """`occurrences`: one that is traced by itself, or those in a part of the plan. `step`: the keys that they affect;
    None: `clause` says why they are not known.
    """

    occurrences: tuple[Occurrence, ...]
    step: Step | None
    clause: str = ""


@dataclass(frozen=True)
class Ties:
    """`rows` of the window at a path, no two of which may be equal in its PARTITION BY and ORDER BY."""

    window: Path
    rows: Step


@dataclass(frozen=True)
class Sources:
    """`parts`: those that count as tables. `ties`: what has to be looked at before `all` are used."""

    all: tuple[TracedSource, ...]
    parts: tuple[Path, ...]
    ties: tuple[Ties, ...]

    def unproven(self, stated: Container[str]) -> str:
        """The first clause, in the words of a message; empty: all keys are known, or the tables are among `stated`."""
        found = (one for one in self.all if one.step is None)
        unknown = next((one for one in found if one.occurrences[0].table.lower() not in stated), None)
        return "" if unknown is None else f"{unknown.clause} (over {unknown.occurrences[0].table})"


def find_sources(known: KnownColumns, occurrences: Sequence[Occurrence], key: Sequence[int]) -> Sources:
    """Of all occurrences that changed (`known.changed`). `occurrences`: all of the plan."""
    return _Search(known, occurrences, key).sources()


class _Search:
    def __init__(self, known: KnownColumns, occurrences: Sequence[Occurrence], key: Sequence[int]) -> None:
        self._known, self._key = known, key
        self._signed = SignedRows(known, occurrences, of_parts=True)
        self._changes: dict[Path, NetChanges | NoDelta | None] = {}

    def sources(self) -> Sources:
        """By the parts that are found to be of use."""
        chosen: _Paths = ()
        for one in self._known.changed:
            if not any(_is_inside(one, path) for path in chosen):
                chosen = self._proven(one, chosen) or chosen
        chosen = self._with_asked(chosen)
        known = self._known_of(chosen)
        found = (self._source(known, one, chosen) for one in known.changed if self._is_changed(one, chosen))
        ties = (Ties(*one) for path in chosen for one in self._signed.unordered_rows(path))
        return Sources(tuple(found), chosen, tuple(ties))

    def _is_changed(self, source: Occurrence, chosen: _Paths) -> bool:
        is_part = source.path in chosen and not source.in_subquery
        return not is_part or self._changes_of(source.path) is not None

    def _source(self, known: KnownColumns, source: Occurrence, chosen: _Paths) -> TracedSource:
        changed = self._known.changed
        is_part = source.path in chosen and not source.in_subquery
        inside = tuple(one for one in changed if _is_inside(one, source.path)) if is_part else (source,)
        clause = known.clause(source, self._key)
        if clause is not None:
            return TracedSource(inside, None, clause)
        blocks = {path: self._changes_of(path) for path in chosen}
        return TracedSource(inside, trace_keys(known, source, self._key, blocks, self._signed.next_identity))

    # ---- the search ----------------------------------------------------------------------------------------

    def _proven(self, source: Occurrence, chosen: _Paths) -> _Paths | None:
        """Parts with which the keys of a table's changes are known; None: there are none."""
        if source.in_subquery:
            return None
        for path in (*self._values(source.path), source.path, *self._around(source.path)):
            at = chosen if path == source.path else self._with(chosen, [path])
            for beside in self._beside(path, at) if at is not None else ():
                known = self._known_of(beside)
                traced = next(one for one in known.changed if one.path == path and not one.in_subquery)
                if known.clause(traced, self._key) is None:
                    return beside
        return None

    def _values(self, path: Path) -> Iterator[Path]:
        """Parts of one row beside other rows, which affect some of these or none; the largest first."""
        for depth in range(1, len(path)):
            is_single = has_one_row(self._known.at(path[:depth]))
            if is_single and find_projection(self._known.root, path[:depth]) is not None:
                yield path[:depth]

    def _around(self, path: Path) -> Iterator[Path]:
        """Parts that a table lies in, the smallest first; a total with the projections of it."""
        for depth in range(len(path) - 1, -1, -1):
            if _makes_columns(self._known.at(path[:depth])):
                while depth and has_one_row(self._known.at(path[: depth - 1])):
                    depth -= 1
                yield path[:depth]

    def _beside(self, path: Path, chosen: _Paths) -> Iterator[_Paths]:
        """With more and more parts of the other sides of joins, the nearest first."""
        yield chosen
        for depth in range(len(path) - 1, -1, -1):
            for at, child in enumerate(self._known.at(path[:depth]).children):
                if at != path[depth]:
                    more = self._with_largest(chosen, child)
                    if more != chosen:
                        yield (chosen := more)

    def _with_asked(self, chosen: _Paths) -> _Paths:
        """With parts whose columns a condition asks beside a value that changed: then fewer keys are affected."""
        for path in chosen:
            known = self._known_of(chosen)
            projection = find_projection(known.root, path)
            if projection is None:
                continue
            rows = projection.children[0].children[0]
            columns = known.rows(rows)
            if any(columns.get(one, "") is not None for one in row_references(projection)):
                chosen = self._with_largest(chosen, rows)
        return chosen

    def _with_largest(self, chosen: _Paths, node: PlanNode) -> _Paths:
        """With the largest parts in a node that can be one."""
        if any(is_within(node.path, path) for path in chosen):
            return chosen
        if _makes_columns(node) and (more := self._with(chosen, [node.path])) is not None:
            return more
        for child in node.children:
            chosen = self._with_largest(chosen, child)
        return chosen

    def _with(self, chosen: _Paths, more: Iterable[Path]) -> _Paths | None:
        """None: the changed rows of one are not known exactly."""
        for path in more:
            if isinstance(self._changes_or_none(path), NoDelta):
                return None
            chosen = (*(one for one in chosen if not is_within(one, path)), path)
        return chosen

    # ---- parts that count as tables ------------------------------------------------------------------------

    def _changes_or_none(self, path: Path) -> NetChanges | NoDelta | None:
        if path not in self._changes:
            try:
                self._changes[path] = self._signed.changes_in(self._known.at(path))
            except NoDelta as unknown:
                self._changes[path] = unknown
        return self._changes[path]

    def _changes_of(self, path: Path) -> NetChanges | None:
        found = self._changes_or_none(path)
        assert not isinstance(found, NoDelta)
        return found

    def _known_of(self, chosen: _Paths) -> KnownColumns:
        if not chosen:
            return self._known
        alone = [one for one in self._known.changed if not any(_is_inside(one, path) for path in chosen)]
        return self._known.with_changed([*alone, *map(self._as_table, chosen)])

    def _as_table(self, path: Path) -> Occurrence:
        changes = self._changes_of(path)
        columns = output_ids(self._known.at(path)) if changes is None else changes.columns
        return Occurrence(
            path, TableColumns("", is_fixed=False), dict.fromkeys(columns, ""), in_subquery=False
        )


def _makes_columns(node: PlanNode) -> bool:
    """Whether a node has columns that are not known of its changed rows."""
    return node.kind in ("Aggregate", "Window") or node.join_type == "ExistenceJoin"


def _is_inside(occurrence: Occurrence, path: Path) -> bool:
    return not occurrence.in_subquery and is_within(occurrence.path, path)
