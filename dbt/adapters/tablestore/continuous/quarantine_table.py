"""Quarantine the rows of a failed iteration: they go into a table of their own, and the model continues after them.

    <model>__dead_letter   columns of the rows · dead_letter_kind · dead_letter_tests · dead_letter_at

Steps      which ones (continuous/quarantine_rule.py) → changes of the staged snapshot and what was read, one commit of
           the quarantine table → an empty commit of the model, which moves it after what was read → the staged snapshot
           is dropped, with what was built from it
INVARIANT  a range is quarantined once: the table's own position, under the model's table uuid, says where the model
           stood with everything it remembers, and how far the rows reach. A round that finds it there still (the one
           before was killed between both commits, or it was rolled back) only moves it, whatever else it has read.
INVARIANT  what a query remembers stays as it was before: quarantined rows are not in its totals either.
Not for    a first build (there is nothing to go on from), and other materializations (decision 0047).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.config.streaming_keys import STREAMING
from dbt.adapters.tablestore.continuous.quarantine_rule import (
    QuarantineRange,
    list_going,
    pick_answered,
    pick_quarantined,
    read_range,
    reds,
)
from dbt.adapters.tablestore.inputs.changed_rows_sql import ROW_KIND, SNAPSHOT_ID
from tablestore_engine.api import (
    ChangesBetween,
    Engine,
    OnSchemaChange,
    Table,
    TableVersion,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.spi import PositionStep, Staged, encode_steps, short_name, steps_of

SUFFIX = "__dead_letter"
KIND, TESTS, AT = "dead_letter_kind", "dead_letter_tests", "dead_letter_at"
Steps = Mapping[str, PositionStep]


@dataclass(frozen=True)
class Quarantined:
    """`tests`: unique ids."""

    lines: tuple[str, ...] = ()
    tests: frozenset[str] = frozenset()


def quarantine_failed(engine: Engine, results: Sequence[Any]) -> Quarantined:
    """`results`: dbt's, of every node of a round. Raises what writes raise; then the next round begins here again."""
    built = {
        (one.node.unique_id, f"{one.node.schema}.{one.node.alias}")
        for one in results
        if str(one.node.resource_type) == "model" and one.node.config.materialized == STREAMING
        if str(one.status) == "success"
    }
    book = engine.gate.read_book(*engine.databases())
    ranges = {
        item.key: found
        for item in book.staged
        if (item.owner, item.table) in built
        if (found := _find_range(engine, item)) is not None
    }
    wanted = [item for item in book.staged if item.key in ranges]
    picked = pick_quarantined(book, engine.gate.see(book), wanted)
    lines = tuple(_quarantine(engine, item, ranges[item.key]) for item in picked)
    for one in reversed(list_going(book, picked)):
        engine.gate.drop(one)
    return Quarantined(lines, pick_answered(book, picked))


def _find_range(engine: Engine, item: Staged) -> QuarantineRange | None:
    table = engine.table(item.table)
    info = next((one for one in table.staged() if one.name == item.name), None)
    if info is None or info.base_snapshot_id is None:
        return None
    return read_range(info.base_snapshot_id, table.positions(), steps_of(info.properties))


def _quarantine(engine: Engine, item: Staged, found: QuarantineRange) -> str:
    """What to tell."""
    table, quarantine = engine.table(item.table), f"{item.table}{SUFFIX}"
    own = engine.find_table(quarantine)
    known = None if own is None else own.positions().get(table.source)
    earlier = {} if known is None else _decoded(known)
    if found.begins_with(earlier):
        what, moves = "the rows of an earlier run stay", QuarantineRange(found.base, earlier).moves
    else:
        position = PositionStep(known, _encoded(found.steps))
        count = _write_rows(engine, quarantine, item, found.base, {table.source: position})
        what, moves = f"{count} changes are quarantined", found.moves
    empty = f"select * from {item.table} where false"
    engine.write(item.table, empty, WriteSpec(mode=_mode(table), positions=moves, always=True))
    return f"{item.table}: {what} in {quarantine} (failed: {_names(item)}); the model continues after them"


def _write_rows(engine: Engine, quarantine: str, item: Staged, base: int, positions: Steps) -> int:
    """Number of rows; their columns are those of the staged snapshot."""
    database, name = item.table.split(".", maxsplit=1)
    changed = f"{database}__changes_start_to_now.{name}"
    versions = {changed: TableVersion(changes=ChangesBetween(base, branch=item.name))}
    found = engine.query_columns(f"select * from {changed}", versions=versions)
    columns = ", ".join(f"`{one.name}`" for one in found if one.name not in (ROW_KIND, SNAPSHOT_ID))
    rows = (
        f"select {columns}, {ROW_KIND} as {KIND}, '{_names(item)}' as {TESTS}, current_timestamp() as {AT} "
        f"from {changed}"
    )
    spec = WriteSpec(
        mode=WriteMode.APPEND,
        on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS,
        always=True,
        positions=positions,
    )
    return engine.write(quarantine, rows, spec, versions=versions).inserted


def _names(item: Staged) -> str:
    return ", ".join(sorted(map(short_name, reds(item)))).replace("'", "")


def _mode(table: Table) -> WriteMode:
    return WriteMode.UPSERT if table.schema.primary_keys else WriteMode.APPEND


def _encoded(steps: Steps) -> str:
    return json.dumps(encode_steps(steps), sort_keys=True)


def _decoded(text: str) -> Steps:
    return steps_of(json.loads(text))
