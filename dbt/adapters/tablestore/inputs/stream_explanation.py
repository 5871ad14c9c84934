"""What `dbt compile` says of a streaming model: who runs its query, and what is refused before anything runs.

CHANGE     what `dbt compile` reports of a streaming query
Rule       a query that cannot be analysed yet (an input is not there, an ephemeral model's text comes later) compiles;
           `dbt run` plans it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dbt.adapters.tablestore.inputs.query_errors import ModelQueryError
from dbt.adapters.tablestore.inputs.stream_inputs import StreamInputs
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from tablestore_engine.api import TablestoreError

_EPHEMERAL = "__dbt__cte__"


class NamedType(Protocol):
    """A column, as dbt has it."""

    column: str
    dtype: str


def explain_streams(
    streams: StreamInputs, settings: ModelSettings, sql: str, columns_of: Callable[[str], Sequence[NamedType]]
) -> str:
    """Raises FixRequest TS1836, TS1843, TS1867, Unsupported TS1844, as a run would."""
    name = settings.node.rsplit(".", maxsplit=1)[-1]
    missing = streams.missing(settings.node)
    if missing or _EPHEMERAL in sql:
        why = f"{missing[0]} is not there" if missing else "it reads an ephemeral model"
        return f"{name}: who runs its query is known when it runs: {why}"
    try:
        columns = tuple((one.column, one.dtype) for one in columns_of(sql))
        stateful = streams.plan(settings, sql, sql, columns)
    except ModelQueryError:
        raise
    except TablestoreError as error:
        return f"{name}: who runs its query is known when it runs: {error.what} ({error.code})"
    if stateful is None:
        by_key = "; updates and deletes of the stream are applied by key, before joins and filters"
        is_by_key = streams.retracted(settings.node) is not None
        return f"{name}: its query runs over each range of changes separately, without state" + (
            by_key if is_by_key else ""
        )
    return (
        f"{name}: Spark's own streaming runs its query and remembers rows: over a stream it has {stateful.clause}; "
        f"rows come out in {stateful.mode} mode"
    )
