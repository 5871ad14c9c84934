"""Quarantine the rows of a failed iteration: they go into a table of their own, and the model continues after them.

    <model>__dead_letter   columns of the rows · dead_letter_kind · dead_letter_tests · dead_letter_at

Steps      which ones (Rule) → changes of the staged snapshot and what was read, one commit of
           the quarantine table → an empty commit of the model, which moves it after what was read → the staged snapshot
           is dropped, with what was built from it
INVARIANT  a range is quarantined once: the table's own position, under the model's table uuid, says where the model
           stood with everything it remembers, and how far the rows reach. A round that finds it there still (the one
           before was killed between both commits, or it was rolled back) only moves it, whatever else it has read.
INVARIANT  what a query remembers stays as it was before: quarantined rows are not in its totals either.
Not for    a first build (there is nothing to go on from), and other materializations (decision 0047).
CHANGE     which rows of a failed iteration may be quarantined
Rule       1 a test that ran and failed said no to it; one that could not run says nothing
           2 everything that it was built from is out: who reads a parent that never goes out cannot go on there
           3 all that its red tests gate goes as well: else the test still holds back the rest; nothing is quarantined
           4 no batch of a microbatch goes with it: nobody would build that again
           5 its model has rows that it can go on from: never a first build (decision 0047)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.config.streaming_keys import STREAMING
from dbt.adapters.tablestore.inputs.changed_rows_sql import ROW_KIND, SNAPSHOT_ID
from dbt.adapters.tablestore.inputs.position_steps import QUERY
from tablestore_engine.api import (
    ChangesBetween,
    Engine,
    OnSchemaChange,
    TableVersion,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.spi import (
    STATE_POSITION,
    TABLE_SOURCE,
    GateBook,
    PositionStep,
    Staged,
    Verdict,
    World,
    encode_steps,
    short_name,
    steps_of,
)


@dataclass(frozen=True)
class QuarantineRange:
    """`steps`: of everything that the model remembers; what does not move stands still in them."""

    base: int
    steps: Steps

    @property
    def moves(self) -> Steps:
        """Without what stands still."""
        return {source: step for source, step in self.steps.items() if step.before != step.after}

    def begins_with(self, earlier: Steps) -> bool:
        """Whether the model stands where `earlier` began, as far as that says. What a query remembers is not asked:
        done again, the same run has another name for it.
        """
        found = {source: step.before for source, step in self.steps.items()}
        named = [source for source in earlier if source != STATE_POSITION]
        return bool(named) and all(found.get(source) == earlier[source].before for source in named)


def read_range(base: int | None, known: Mapping[str, str], steps: Steps) -> QuarantineRange | None:
    """`known`: the model's positions now; `steps`: the staged snapshot's. What the query remembers stays. Rule 5."""
    still = {source: PositionStep(text, text) for source, text in known.items()}
    every = {**still, **{source: step for source, step in steps.items() if source != STATE_POSITION}}
    inputs = [step for source, step in every.items() if source.startswith(TABLE_SOURCE)]
    is_first = (
        base is None
        or any(step.is_reset for step in steps.values())
        or any(name in steps and steps[name].before is None for name in (STATE_POSITION, QUERY))
        or all(step.before is None for step in inputs)
    )
    is_elsewhere = any(known.get(source) != step.before for source, step in every.items())
    return None if base is None or is_first or is_elsewhere else QuarantineRange(base, every)


def reds(item: Staged) -> frozenset[str]:
    """Rule 1."""
    return frozenset(test for test, one in item.counted.items() if one.verdict == Verdict.RED)


def pick_quarantined(book: GateBook, world: World, wanted: Collection[Staged]) -> tuple[Staged, ...]:
    """`wanted`: staged snapshots of streaming models of this round with a range."""
    picked = tuple(one for one in wanted if reds(one) and not one.is_out and not one.is_beside)
    while True:
        going = list_going(book, picked)
        left = tuple(one for one in picked if _may_go(one, book, world, going))
        if left == picked:
            return picked
        picked = left


def list_going(book: GateBook, picked: Collection[Staged]) -> tuple[Staged, ...]:
    """With what was built from them, parents first."""
    found = {item.key: item for one in picked for item in book.with_children(one)}
    return tuple(found.values())


def pick_answered(book: GateBook, picked: Collection[Staged]) -> frozenset[str]:
    """Red tests of what goes; one that says no to anything that stays is not answered."""
    going = list_going(book, picked)
    return frozenset(test for one in going for test in reds(one) if _gates_only(test, book, going))


def _may_go(item: Staged, book: GateBook, world: World, going: Collection[Staged]) -> bool:
    """Rules 2 to 4."""
    return (
        all((parent.table, parent.version) in world.past for parent in item.parents)
        and all(_gates_only(test, book, going) for test in reds(item))
        and not any(one.batches for one in book.with_children(item))
    )


def _gates_only(test: str, book: GateBook, going: Collection[Staged]) -> bool:
    keys = {one.key for one in going}
    gated = [one for one in book.staged if test in one.gates and test not in one.abstained and not one.is_out]
    return all(one.key in keys for one in gated)


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
    table, quarantine = engine.table(item.table), f"{item.table}{SUFFIX}"
    own = engine.find_table(quarantine)
    known = None if own is None else own.positions().get(table.source)
    earlier = {} if known is None else steps_of(json.loads(known))
    if found.begins_with(earlier):
        what, moves = "the rows of an earlier run stay", QuarantineRange(found.base, earlier).moves
    else:
        position = PositionStep(known, json.dumps(encode_steps(found.steps), sort_keys=True))
        count = _write_rows(engine, quarantine, item, found.base, {table.source: position})
        what, moves = f"{count} changes are quarantined", found.moves
    empty = f"select * from {item.table} where false"
    mode = WriteMode.UPSERT if table.schema.primary_keys else WriteMode.APPEND
    engine.write(item.table, empty, WriteSpec(mode=mode, positions=moves, always=True))
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
