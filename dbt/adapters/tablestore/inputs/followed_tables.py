"""Inputs of a changed_keys model: how far it has got in each, and whether what lies behind can be followed.

Names      digest_of       a query as a short text
           Followed        what is known of the inputs: their changes, or why all rows have to be compared
           read_followed   the tables that the model's query reads, and the model's own table → Followed
Rule       all rows are compared when the model's query is another, when it has not read an input yet, when an input's
           history is gone, when more than a share of its rows has changed. That is always right, and said.
INVARIANT  each input is read at the very state where its changes end (pins), also through views.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dbt.adapters.tablestore.config.affected_keys import Affected
from dbt.adapters.tablestore.inputs.position_steps import QUERY, forgotten
from dbt.adapters.tablestore.plan.affected_keys_sql import AffectedInput, affected_select
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import ChangesInput, Engine, PositionStep, Table, TableVersion
from tablestore_engine.errors import FixRequest, NotFound


@dataclass(frozen=True)
class Followed:
    """`affected`: SELECT of the keys, None: all rows are compared, since `reason`. `steps`: for the model's commit.

    `reached`: all positions behind it.
    """

    affected: str | None
    reason: str
    steps: Mapping[str, PositionStep]
    pins: Mapping[str, TableVersion] = field(default_factory=dict)
    inputs: tuple[tuple[str, ChangesInput], ...] = ()
    reached: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Input:
    table: str
    found: ChangesInput
    trouble: str


def read_followed(
    engine: Engine,
    model: str,
    query: str,
    tables: Sequence[str],
    affected: Affected,
    branch_of: Callable[[str], str | None],
) -> Followed:
    """`model`: its table; `tables`: what the query reads, as schema.table. Raises FixRequest TS1838, TS1470."""
    known = _positions(engine, model)
    digest = digest_of(query)
    is_other = known.get(QUERY) != digest
    steps: dict[str, PositionStep] = {}
    inputs = [_input(engine.table(name), name, known, affected, branch_of(name)) for name in tables]
    for one in inputs:
        if one.found.step is not None:
            steps[one.found.source] = one.found.step
    steps |= forgotten(known, [one.found.source for one in inputs])
    if steps or is_other:  # rows of one query behind each other: a full refresh meanwhile wins
        steps[QUERY] = PositionStep(known.get(QUERY), digest)
    reached = {source: text for source, text in known.items() if source not in steps}
    reached |= {source: step.after for source, step in steps.items() if step.after is not None}
    sources = [_expressions(engine.table(name), name, affected, model) for name in tables]
    pins = {
        one.table: TableVersion(snapshot=one.found.between.until)
        for one in inputs
        if one.found.between.branch is None and one.found.between.until
    }
    held = tuple((one.table, one.found) for one in inputs)
    reason = "its SQL is another than that of the rows" if is_other else ""
    reason = reason or next((one.trouble for one in inputs if one.trouble), "")
    if reason:
        return Followed(None, reason, steps, pins, held, reached)
    rendered = [
        AffectedInput(_render(one), expressions) for one, expressions in zip(inputs, sources, strict=True)
    ]
    return Followed(affected_select(rendered, affected.key), "", steps, pins, held, reached)


def digest_of(query: str) -> str:
    """What says that two texts are one query; spaces around it do not count."""
    return hashlib.sha256(query.strip().encode()).hexdigest()[:16]


def _positions(engine: Engine, model: str) -> Mapping[str, str]:
    """None where nobody can tell: then only what sets them anew is committed (TS1470)."""
    own = engine.find_table(model)
    try:
        return {} if own is None else own.positions()
    except FixRequest:
        return {}


def _input(
    table: Table, name: str, known: Mapping[str, str], affected: Affected, branch: str | None
) -> _Input:
    position = known.get(table.source)
    if position is None:
        return _Input(name, table.plan_changes(None, branch=branch), f"it has not read {name} yet")
    try:
        found = table.plan_changes(position, branch=branch)
        rows = table.count_changed_rows(found)
    except (FixRequest, NotFound) as gone:
        lost = table.plan_changes(None, branch=branch)
        step = None if lost.step is None else PositionStep(position, lost.step.after)
        return _Input(name, ChangesInput(lost.source, lost.between, step, lost.next_snapshot), gone.what)
    limit = affected.limit * (table.facts().rows or 0)
    if rows is None or rows > max(limit, 1):
        return _Input(
            name, found, f"{'an unknown number' if rows is None else rows} of rows of {name} changed"
        )
    return _Input(name, found, "")


def _expressions(table: Table, name: str, affected: Affected, model: str) -> tuple[str, ...]:
    schema, _, short = name.partition(".")
    said = affected.find(schema, short)
    if said is not None:
        return said
    columns = {one.lower() for one in table.schema.field_names}
    missing = [one for one in affected.key if one.lower() not in columns]
    if missing:
        raise FixRequest(
            "TS1838",
            f"model {model}: nothing says which keys a change of {name} affects",
            why=f"it has no column {missing[0]!r}, and affected_by does not name it",
            fix=f"add affected_by={{'{short}': <expression over its columns>}}",
        )
    return tuple(f"`{one}`" for one in affected.key)


def _render(one: _Input) -> str:
    schema, _, short = one.table.partition(".")
    relation = TablestoreRelation.create(schema=schema, identifier=short)
    return relation.replace(version=TableVersion(changes=one.found.between)).render()
