"""What `dbt compile` reports of a changed_keys model: how each input is followed, what that reads, and what would help.

A query that cannot be analyzed yet (an input does not exist) compiles; `dbt run` checks it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dbt.adapters.tablestore.inputs.changed_keys_inputs import check_query, moment_of, unproven
from dbt.adapters.tablestore.inputs.changed_keys_strategy import ModelQuery, no_deltas
from dbt.adapters.tablestore.inputs.changed_keys_tips import COUNT, find_tip
from dbt.adapters.tablestore.inputs.query_errors import ModelQueryError
from tablestore_engine.api import Engine, TablestoreError
from tablestore_engine.spi import FollowedDeltas, FollowedInput

_UNITS = ("B", "KB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Line:
    """Of the log; `is_warning`: a run is slower than the strategy promises, or not proven."""

    text: str
    is_warning: bool = False


def explain_changed_keys(engine: Engine, query: ModelQuery) -> tuple[Line, ...]:
    """Raises FixRequest TS1870, TS1871, TS1872, as a run would."""
    name = query.model
    try:
        with engine.changed_keys.trace(query.sql, versions=moment_of(engine, query)) as traced:
            check_query(query, traced, traced.tables)
            clauses, tables = unproven(query, traced), traced.tables
            inputs = traced.followed_inputs(query.affected.key)
            general = no_deltas(query, None)
            deltas = {} if clauses or general else traced.followed_deltas(query.affected.primary_key)
        said = _Explanation(query, sizes_of(engine, tables), general, deltas)
        return tuple(said.whole(clauses) if clauses else said.lines(inputs))
    except ModelQueryError:
        raise
    except TablestoreError as error:
        return (Line(f"{name}: its inputs are analyzed when it runs: {error.what} ({error.code})"),)


def sizes_of(engine: Engine, tables: Iterable[str]) -> Mapping[str, str]:
    """table → its size by metadata: `4 rows, 1 file, 2 KB`."""
    found = {}
    for name in tables:
        facts = engine.seen_table(name).facts()
        files = "1 file" if facts.files == 1 else f"{facts.files:,} files"
        rows = "1 row" if facts.rows == 1 else f"{facts.rows:,} rows"
        found[name] = f"{rows}, {files}, {_size(facts.bytes)}"
    return found


def _size(count: float) -> str:
    unit = 0
    while count >= 1000 and unit + 1 < len(_UNITS):
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if count >= 10 or not unit else f"{count:.1f} {_UNITS[unit]}"


@dataclass(frozen=True)
class _Explanation:
    """Of one query. `general`: why a model has no deltas whatever its query is; `deltas`: by table, else."""

    query: ModelQuery
    sizes: Mapping[str, str]
    general: str
    deltas: Mapping[str, FollowedDeltas]

    def whole(self, clauses: Iterable[str]) -> Iterator[Line]:
        """Of a query that is not restricted."""
        name = self.query.model
        for clause in clauses:
            yield Line(f"{name}: each run that finds changes compares all rows: {clause}", is_warning=True)
            yield from self._tip(clause)
        yield Line(f"{name}: such a run reads {self._named(self.sizes)}")

    def lines(self, inputs: Iterable[FollowedInput]) -> Iterator[Line]:
        """Of each input."""
        evaluates = False
        for one in inputs:
            yield from self._deltas(one.table)
            yield from self._keys(one)
            evaluates |= bool(self.general or self.deltas[one.table].clause)
        if evaluates:
            yield Line(f"{self.query.model}: the query for affected keys reads {self._named(self.sizes)}")

    def _deltas(self, table: str) -> Iterator[Line]:
        begin = f"{self.query.model}: changes of {table}"
        found = self.deltas.get(table, FollowedDeltas(self.general))
        if found.clause:
            yield Line(f"{begin}: affected keys: {found.clause}")
            yield from self._tip(found.clause)
            return
        reads = f"each run reads {self._named(found.joined)}" if found.joined else "no other table is read"
        yield Line(f"{begin}: deltas; {reads}")
        if found.lacks_count:
            yield Line(f"{self.query.model}: tip: {COUNT}")

    def _keys(self, one: FollowedInput) -> Iterator[Line]:
        name = self.query.model
        if one.clause is not None:
            yield Line(
                f"{name}: affected_by leads from {one.table} to the key, which the query does not prove "
                f"({one.clause}); test the model with equals_full_refresh",
                is_warning=True,
            )
        elif one.joined:
            joined = self._named(one.joined)
            yield Line(f"{name}: changes of {one.table} find their keys by a join with {joined}")
        else:
            yield Line(f"{name}: changes of {one.table} give their keys without reading another table")

    def _tip(self, clause: str) -> Iterator[Line]:
        tip = find_tip(clause)
        if tip is not None:
            yield Line(f"{self.query.model}: tip: {tip}")

    def _named(self, tables: Iterable[str]) -> str:
        return ", ".join(f"{table} ({self.sizes[table]})" for table in tables) or "no table"
