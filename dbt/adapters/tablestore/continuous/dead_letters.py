"""A round whose rows a red test has held back, put aside: they go into a table of their own, and the model goes on.

    <model>__dead_letter   columns of the model · dead_letter_kind · dead_letter_tests · dead_letter_at

Names      put_red_aside   of all streaming models of a round; Aside: what to tell, tests that are answered by it
Steps      the red staged snapshot → its changes and what was read, one commit of the dead letters → an empty commit of
           the model, which moves it behind what was read → the staged snapshot goes, with what was built from it
INVARIANT  a range is put aside once: the letters' own position says which range of which table uuid it was. Killed
           between both commits, the next one finds that and only moves the model.
INVARIANT  what a query remembers stays as it was before: rows that are put aside are not in its totals either.
Not for    a first build (there is nothing to go on from), and other materializations (decision 0047).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.config.streaming_keys import STREAMING
from dbt.adapters.tablestore.inputs.stateful_models import STATE
from tablestore_engine.api import (
    ChangesBetween,
    Engine,
    OnSchemaChange,
    PositionStep,
    Staged,
    Table,
    TableVersion,
    WriteMode,
    WriteSpec,
    encode_steps,
    short_name,
    steps_of,
)

SUFFIX = "__dead_letter"
KIND, TESTS, AT = "dead_letter_kind", "dead_letter_tests", "dead_letter_at"
Steps = Mapping[str, PositionStep]


@dataclass(frozen=True)
class Aside:
    """`tests`: unique ids."""

    lines: tuple[str, ...] = ()
    tests: frozenset[str] = frozenset()


def put_red_aside(engine: Engine, results: Sequence[Any]) -> Aside:
    """`results`: dbt's, of every node of a round. Raises what writes raise; then the next round begins here again."""
    done = Aside()
    for one in results:
        node = one.node
        if str(node.resource_type) != "model" or node.config.materialized != STREAMING:
            continue
        name = f"{node.schema}.{node.alias}"
        for item in engine.gate.read_book(name).of_table(name):
            if item.owner == node.unique_id and item.red_gates and not item.is_out and not item.is_beside:
                done = _joined(done, _put_aside(engine, item))
    return done


def _joined(first: Aside, then: Aside) -> Aside:
    return Aside((*first.lines, *then.lines), first.tests | then.tests)


def _put_aside(engine: Engine, item: Staged) -> Aside:
    table = engine.table(item.table)
    info = next((one for one in table.staged() if one.name == item.name), None)
    steps = {} if info is None else _moves(steps_of(info.properties))
    if info is None or info.base_snapshot_id is None or any(step.is_reset for step in steps.values()):
        return Aside()
    letters = f"{item.table}{SUFFIX}"
    rows, final = _write_letters(engine, table, item, info.base_snapshot_id, steps)
    empty = f"select * from {item.table} where false"
    engine.write(item.table, empty, WriteSpec(mode=_mode(table), positions=final, always=True))
    gone = engine.gate.read_book(*engine.databases()).with_children(item)
    for one in reversed(gone):
        engine.gate.drop(one)
    tests = frozenset(test for one in gone for test in one.red_gates)
    red = ", ".join(sorted(map(short_name, item.red_gates)))
    what = "what an earlier run put aside stays" if rows is None else f"{rows} changes are put aside"
    return Aside((f"{item.table}: {what} in {letters} (red: {red}); it goes on behind that",), tests)


def _write_letters(
    engine: Engine, table: Table, item: Staged, base: int, steps: Steps
) -> tuple[int | None, Steps]:
    """Number of rows, and how the model has to move; None: they are there, and it moves as far as they went."""
    letters = f"{item.table}{SUFFIX}"
    found = engine.find_table(letters)
    known = None if found is None else found.positions().get(table.source)
    if known is not None and _begin(_decoded(known)) == _begin(steps):
        return None, _decoded(known)
    database, name = item.table.split(".", maxsplit=1)
    changed = f"{database}__changes_start_to_now.{name}"
    columns = ", ".join(f"`{one.name}`" for one in engine.columns(item.table))
    red = ", ".join(sorted(map(short_name, item.red_gates))).replace("'", "")
    rows = (
        f"select {columns}, _row_kind as {KIND}, '{red}' as {TESTS}, current_timestamp() as {AT} "
        f"from {changed}"
    )
    spec = WriteSpec(
        mode=WriteMode.APPEND,
        on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS,
        always=True,
        positions={table.source: PositionStep(known, _encoded(steps))},
    )
    versions = {changed: TableVersion(changes=ChangesBetween(base, branch=item.name))}
    report = engine.write(letters, rows, spec, versions=versions)
    return report.inserted, steps


def _moves(steps: Steps) -> Steps:
    """Without what the query remembers."""
    return {source: step for source, step in steps.items() if source != STATE}


def _mode(table: Table) -> WriteMode:
    return WriteMode.UPSERT if table.schema.primary_keys else WriteMode.APPEND


def _begin(steps: Steps) -> Mapping[str, str | None]:
    return {source: step.before for source, step in steps.items()}


def _encoded(steps: Steps) -> str:
    return json.dumps(encode_steps(steps), sort_keys=True)


def _decoded(text: str) -> Steps:
    return steps_of(json.loads(text))
