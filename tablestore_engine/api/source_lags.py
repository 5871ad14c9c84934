"""Which tables follow which sources, and how far each lags. No broker is asked, and no rows are read.

CHANGE     the lags of all streaming tables
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.stream.changes_input import TABLE_SOURCE
from tablestore_engine.stream.stream_lag import StreamLag, measure_lag
from tablestore_engine.warehouse.relations.relation_list import DAMAGED

if TYPE_CHECKING:
    from tablestore_engine.api.engine import Engine


@dataclass(frozen=True)
class SourceLag:
    """One source of one table. `follows`: a table's name, or the source's name among positions.

    `position`: of a topic or of files, `lag`: of a table of this warehouse. `committed_ms`: when the table was written
    last. `trouble`: why it cannot resume by itself, None when it can.

    >>> [(lag.table, lag.follows) for lag in stream_lags(engine)]
    []
    """

    table: str
    follows: str
    committed_ms: int | None
    position: str | None = None
    lag: StreamLag | None = None
    trouble: str | None = None


def stream_lags(engine: Engine, names: Iterable[str] | None = None) -> tuple[SourceLag, ...]:
    """Every source of these tables, or of all tables of the warehouse. Raises NotFound TS1414.

    >>> stream_lags(engine, ["demo.orders"])
    ()
    """
    every = [
        str(info.identifier)
        for database in engine.databases()
        for info in engine.relations(database, with_unpublished=True)
        if info.kind == "table"
    ]
    wanted = tuple(every if names is None else names)
    tables = dict(_sources(engine, every))
    return tuple(one for name in wanted for one in _lags_of(engine, name, tables))


def _sources(engine: Engine, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(name among positions, table); a damaged table is a source of nothing that can be measured."""
    for name in names:
        with suppress(*DAMAGED):
            yield engine.table(name).source, name


def _lags_of(engine: Engine, name: str, tables: Mapping[str, str]) -> list[SourceLag]:
    """`tables`: name among positions → table."""
    committed_ms: int | None = None
    try:
        table = engine.table(name)
        committed_ms = table.facts().committed_at_ms
        positions = table.positions()
    except TablestoreError as error:
        if isinstance(error, NotFound) and engine.find_relation(name) is None:
            raise
        return [SourceLag(name, "unknown", committed_ms, trouble=str(error))]
    lags = []
    for source, position in sorted(positions.items()):
        if source.startswith(TABLE_SOURCE):
            lags.append(_of_table(engine, name, source, position, committed_ms, tables.get(source)))
        elif ":" in source:
            lags.append(SourceLag(name, source, committed_ms, position=position))
    return lags


def _of_table(
    engine: Engine, name: str, source: str, position: str, committed_ms: int | None, followed: str | None
) -> SourceLag:
    if followed is None:
        gone = "the table that it followed was dropped or created again: run --full-refresh to follow the new one"
        return SourceLag(name, source, committed_ms, trouble=gone)
    try:
        return SourceLag(
            name, followed, committed_ms, lag=measure_lag(engine.table(followed).store, position)
        )
    except TablestoreError as error:
        return SourceLag(name, followed, committed_ms, trouble=str(error))
