"""What `dbt compile` reports of a changed_keys model: how each input is followed, and what forces a full comparison.

A query that cannot be analyzed yet (an input does not exist) compiles; `dbt run` checks it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dbt.adapters.tablestore.inputs.changed_keys_inputs import check_query, unproven
from dbt.adapters.tablestore.inputs.changed_keys_strategy import ModelQuery, no_deltas
from dbt.adapters.tablestore.inputs.query_errors import ModelQueryError
from tablestore_engine.api import Engine, TablestoreError
from tablestore_engine.spi import FollowedInput


@dataclass(frozen=True)
class Line:
    """Of the log; `is_warning`: a run is slower than the strategy promises, or not proven."""

    text: str
    is_warning: bool = False


def explain_changed_keys(engine: Engine, query: ModelQuery) -> tuple[Line, ...]:
    """Raises FixRequest TS1870, TS1871, TS1872, as a run would."""
    name = query.model
    try:
        with engine.changed_keys.trace(query.sql, versions={}) as traced:
            check_query(query, traced, traced.tables)
            clauses = unproven(query, traced)
            inputs = traced.followed_inputs(query.affected.key)
            general = no_deltas(query, None)
            deltas = {} if clauses or general else traced.delta_clauses(query.affected.primary_key)
    except ModelQueryError:
        raise
    except TablestoreError as error:
        return (Line(f"{name}: its inputs are analyzed when it runs: {error.what} ({error.code})"),)
    if clauses:
        return tuple(
            Line(f"{name}: each run that finds changes compares all rows: {clause}", is_warning=True)
            for clause in clauses
        )
    return tuple(_lines(query, inputs, deltas, general))


def _lines(
    query: ModelQuery, inputs: tuple[FollowedInput, ...], deltas: Mapping[str, str], general: str
) -> Iterator[Line]:
    for one in inputs:
        reason = general or deltas.get(one.table, "")
        if not reason:
            yield Line(f"{query.model}: changes of {one.table}: deltas")
        else:
            yield Line(f"{query.model}: changes of {one.table}: affected keys: {reason}")
        if one.clause is not None:
            yield Line(
                f"{query.model}: affected_by leads from {one.table} to the key, which the query does not prove "
                f"({one.clause}); test the model with equals_full_refresh",
                is_warning=True,
            )
        elif one.joined:
            yield Line(
                f"{query.model}: changes of {one.table} find their keys by a join with {', '.join(one.joined)}"
            )
        else:
            yield Line(f"{query.model}: changes of {one.table} give their keys without reading another table")
