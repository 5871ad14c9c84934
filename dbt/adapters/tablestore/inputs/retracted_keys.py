"""Updates and deletes of a stream in a model whose result has `_row_kind`: applied by key, or refused.

RetractedKeys      what a model's plan says of them
plan_retractions   proves it from the analyzed plan (tablestore_engine/spark/retractions.py)
Rule    A model with unique_key needs the proof. An input without a primary key, and a model without unique_key whose
        query is not row-local, take additions only: a run checks it (TS1866). `row_kinds='all'` applies the query's
        own kinds as written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.tablestore.config.row_choices import RETRACTIONS
from dbt.adapters.tablestore.inputs.query_errors import FixModelQuery
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from tablestore_engine.api import Engine, FixRequest, Table, TableVersion


@dataclass(frozen=True)
class RetractedKeys:
    """`select`: SQL of the keys to delete, None: the query's own retractions. `append_only`: tables of which a run
    accepts +I alone.
    """

    select: str | None = None
    append_only: frozenset[str] = field(default_factory=frozenset)


def plan_retractions(
    engine: Engine,
    settings: ModelSettings,
    query: str,
    streams: Mapping[str, str],
    versions: Mapping[str, TableVersion],
) -> RetractedKeys:
    """`streams`: name in the query → table. Raises FixRequest TS1867."""
    name, key = settings.node.rsplit(".", maxsplit=1)[-1], settings.table.primary_key
    _check_settings(name, settings)
    assert settings.table.streaming is not None
    if settings.table.streaming.row_kinds == "all":
        return RetractedKeys()
    primary = {one: engine.table(table).schema.primary_keys for one, table in streams.items()}
    keyless = frozenset(streams[one] for one, keys in primary.items() if not keys)
    if keyless and key:
        return RetractedKeys(append_only=keyless)
    proof = engine.stateful.retractions(query, primary, key=key, versions=versions)
    if not key:
        return RetractedKeys(append_only=frozenset() if proof.is_local else frozenset(streams.values()))
    if proof.clause is not None:
        raise _refused(name, proof.clause)
    return RetractedKeys(proof.select)


def _check_settings(name: str, settings: ModelSettings) -> None:
    """Settings by which the newest upsert of a key would not be its row."""
    found = settings.table.find_refused(RETRACTIONS)
    if found is not None:
        raise FixModelQuery(
            "TS1867",
            f"model {name} cannot apply updates and deletes of its stream: it sets {found}",
            why="its result has _row_kind and _snapshot_id, which say for each key which row is the newest; "
            f"{found} says otherwise",
            fix=f"remove {found}, or select neither _row_kind nor _snapshot_id",
        )


def _refused(name: str, clause: str) -> FixModelQuery:
    return FixModelQuery(
        "TS1867",
        f"model {name} cannot apply updates and deletes of its stream: over it, it has {clause}",
        why="a -U or -D of the stream has to delete the row that it takes back, whatever joins and filters give today; "
        "the plan does not prove which unique_key that is",
        fix="put the primary key of the stream into unique_key as it is, and compute other key columns from columns of "
        "the stream alone; or use incremental_strategy='changed_keys'; or select no _row_kind, so that rows are added "
        "and an update is an error; row_kinds='all' applies the kinds that the query gives, as written",
    )


def not_added(node: str, table: Table, row: Sequence[Any], *, has_kinds: bool) -> FixRequest:
    """`row`: a kind and its first snapshot, of a range of which the model takes +I alone: TS1845, TS1866."""
    kind, snapshot = row
    found = f"snapshot {snapshot} of {table.identifier} has a row of kind {kind}, which model"
    name = node.rsplit(".", maxsplit=1)[-1]
    if not has_kinds:
        return FixRequest(
            "TS1845",
            f"{found} {name} would count as a new one",
            why="its query gives no _row_kind, so each row of the stream is added as it comes; nothing was written",
            fix="select _row_kind and _snapshot_id as well (with unique_key changes are then upserted and deleted), or "
            "set row_kinds='all' where the query itself says what a kind means",
        )
    return FixRequest(
        "TS1866",
        f"{found} {name} cannot apply",
        why="the input has no primary key, or the model has no unique_key and joins or filters by more than the "
        "stream's own row: which row of the model it takes back is not known; nothing was written",
        fix="give the input a primary key and the model a unique_key that contains it, use "
        "incremental_strategy='changed_keys', or set row_kinds='all' where the query itself says what a kind means",
    )
