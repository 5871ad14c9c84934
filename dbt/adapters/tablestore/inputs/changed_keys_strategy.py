"""What a run of a changed_keys model evaluates when its inputs changed: deltas, or its query for the affected keys.

CHANGE     when a `changed_keys` model follows deltas
Rule       deltas, where the plan proves them for every changed occurrence and the stored rows are those of the query
           before: the key is the primary key, no `affected_by`, no function that differs between runs, no partitions
           that expire. Else the affected keys.
INVARIANT  rows that follow from stored rows are committed on these rows alone (ROWS_READ).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.tablestore.config.changed_keys_config import Affected
from dbt.adapters.tablestore.inputs.query_errors import FixModelQuery
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from tablestore_engine.api import Engine, Table, TableVersion
from tablestore_engine.spi import AffectedKeys, Deltas, KnownRows, TracedQuery

_EXPIRES = "partition.expiration-time"


@dataclass(frozen=True)
class ModelQuery:
    """`sql`: as Spark has it; `text`: what the rows are made by, with functions of the header. `view`: the name of a
    temporary view for affected keys; None: a new one. `is_asked`: the config asks for it, so that what no run can make
    right is an error; else all rows are compared then, and there are no deltas.
    """

    model: str
    sql: str
    text: str
    affected: Affected
    node: str = ""
    view: str | None = None
    is_asked: bool = True


@dataclass(frozen=True)
class Evaluation:
    """`select`: None: nothing changed, or `clause` prevents the proof. `views`: temporary ones, to be dropped.

    `keys`: of rows that deltas put or delete, and of those that are evaluated; `evaluated`: the latter. `no_deltas`:
    why there are none. `is_merged`: the rows follow from stored ones. `rows`: of deltas that are all there is to write.
    `state`: of all groups behind the run, an Arrow table, of a model that keeps one.
    """

    clause: str = ""
    select: KeysSelect | None = None
    views: tuple[str, ...] = ()
    keys: int = 0
    evaluated: int = 0
    has_deltas: bool = False
    no_deltas: str = ""
    is_merged: bool = False
    rows: KnownRows | None = None
    state: Any = None

    @property
    def has_effect(self) -> bool:
        """Whether rows may change."""
        return self.select is not None or bool(self.clause)


def evaluate(
    engine: Engine,
    query: ModelQuery,
    traced: TracedQuery,
    changes: Mapping[str, TableVersion],
    own: Table | None,
    state: Any = None,  # noqa: ANN401 - an Arrow table or None
) -> Evaluation:
    """`changes`: of each input that changed, the range. `own`: the model's table as this run sees it. `state`: of its
    groups, if it keeps one.

    Raises FixRequest TS1870.
    """
    affected = query.affected
    general = traced.general_clause(affected.key, affected.primary_key)
    if general is not None:
        return Evaluation(general)
    if not changes:
        return Evaluation()
    reason = no_deltas(query, own)
    if own is not None and {one.name.lower() for one in own.schema.fields} != set(traced.columns):
        reason, state = "its columns changed", None
    if not reason and own is not None:
        new, find = engine.changed_keys.new_view, engine.changed_keys.stored_rows(own)
        deltas = traced.deltas(affected.primary_key, changes, find, (new(), new()), state)
        if not deltas.clause:
            return _of_deltas(deltas, state)
        reason = deltas.clause
    by = {one: found for one in changes if (found := affected.find(one)) is not None}
    keys = traced.affected_keys(affected.key, changes, by, query.view or engine.changed_keys.new_view())
    if keys.clause and affected.is_strict:
        raise not_restricted(query.model, keys.clause)
    if keys.view is None:
        return Evaluation(keys.clause, no_deltas=reason, state=state)
    if state is not None and own is not None:
        return _with_state(engine, query, traced, own, state, keys, reason)
    return Evaluation("", _select(keys), (keys.view,), keys.count, keys.count, no_deltas=reason)


def _with_state(
    engine: Engine,
    query: ModelQuery,
    traced: TracedQuery,
    own: Table,
    state: Any,  # noqa: ANN401 - an Arrow table
    keys: AffectedKeys,
    reason: str,
) -> Evaluation:
    """The state of affected groups is computed again, and their rows from it; else the next run builds the state."""
    assert keys.view is not None
    new, find = engine.changed_keys.new_view, engine.changed_keys.stored_rows(own)
    found = traced.evaluate_groups(query.affected.primary_key, keys.view, find, (new(), new()), state)
    if found.clause:
        return Evaluation("", _select(keys), (keys.view,), keys.count, keys.count, no_deltas=reason)
    made = _of_deltas(found, state)
    views = (*made.views, keys.view)
    return replace(
        made, views=views, keys=keys.count, evaluated=keys.count, has_deltas=False, no_deltas=reason
    )


def no_deltas(query: ModelQuery, own: Table | None) -> str:
    """Why a model has no deltas whatever its query is. `own`: its table; None: not known."""
    affected = query.affected
    if not query.is_asked or not affected.has_deltas:
        return "strategy='affected_keys'"
    if set(map(str.lower, affected.key)) != set(map(str.lower, affected.primary_key)):
        return "affected_key is another key"
    if affected.by or affected.allows_volatile:
        return "affected_by" if affected.by else "volatile='allowed'"
    if own is not None and own.schema.options.get(_EXPIRES):
        return f"partitions of its table expire ({_EXPIRES})"
    return ""


def _of_deltas(deltas: Deltas, state: Any) -> Evaluation:  # noqa: ANN401 - an Arrow table or None
    """`state`: of the groups before, which stays where no change is one of the query's rows."""
    again = deltas.again
    views = tuple(one for one in (deltas.view, again.view) if one is not None)
    known = None if deltas.table is None else KnownRows(deltas.fields, deltas.table)
    rows = "" if deltas.rows == 0 else f"`{deltas.view or 'rows of deltas'}`"
    select = KeysSelect("", frozenset(), rows) if again.view is None else _select(again, rows)
    return Evaluation(
        "",
        select if views or known is not None else None,
        views,
        deltas.rows + again.count,
        again.count,
        has_deltas=True,
        is_merged=deltas.is_merged,
        rows=known,
        state=state if deltas.state is None else deltas.state,
    )


def _select(keys: AffectedKeys, rows: str = "") -> KeysSelect:
    return KeysSelect(f"select * from `{keys.view}`", keys.nullable, rows)


def not_restricted(model: str, clause: str) -> FixModelQuery:
    """TS1870: the config refuses to compare all rows."""
    return FixModelQuery(
        "TS1870",
        f"model {model} cannot be restricted to affected keys",
        why=f"its query has {clause}",
        fix="rewrite the query, or set changed_keys={'fallback': 'warn'}: then such runs compare all rows",
    )
