"""Which states of a table its Iceberg metadata lists: those that are there already, and those that are missing.

INVARIANT  listed states are states of this table: the newest one is compared by its uuid, and what is older is what it
           was made on. A rollback takes away what it deleted.
INVARIANT  nothing is listed that has expired, but for what a tag keeps.
WHY        STATES_MAX: the metadata is written whole with each commit; more states cost more than their use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.iceberg.table_metadata import IcebergSnapshot, IcebergTable
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.table_context import TableContext

STATES_MAX = 500


@dataclass(frozen=True)
class WantedStates:
    """`kept`: in their order; `missing`: ascending; `tags`: name → number."""

    kept: tuple[IcebergSnapshot, ...]
    missing: tuple[Snapshot, ...]
    newest: Snapshot
    tags: Mapping[str, int]


def find_wanted(context: TableContext, table: IcebergTable, newest: Snapshot, grace_ms: int) -> WantedStates:
    """`newest`: of the table, read after `table` was. `grace_ms`: what is younger stays whatever its number."""
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    named = dict(tags.list_all())
    first = max(context.snapshots.find_earliest_id() or newest.id, 1)
    known = _last_known(context, table, newest)
    line = [one for one in table.snapshots if one.number <= known]
    since = context.runtime.now_ms() - grace_ms
    recent = newest.id - STATES_MAX
    kept = tuple(
        one
        for one in line
        if one.number in named.values()
        or (one.number >= first and (one.number > recent or one.time_millis >= since))
    )
    have = {one.number for one in kept}
    numbers = range(max(known + 1, first, recent + 1), newest.id)
    found = [context.snapshots.find(number) for number in numbers]
    missing = {one.id: one for one in (*found, newest) if one is not None and one.id not in have}
    for name, number in named.items():
        if number not in have and number not in missing:
            missing[number] = tags.get(name).snapshot
    listed = have | missing.keys()
    return WantedStates(
        kept,
        tuple(missing[number] for number in sorted(missing)),
        newest,
        {name: number for name, number in named.items() if number in listed},
    )


def _last_known(context: TableContext, table: IcebergTable, newest: Snapshot) -> int:
    """The highest number whose listed state is still the table's; 0: none."""
    by_number = {one.number: one.unique for one in table.snapshots}
    for number in sorted((one for one in by_number if one <= newest.id), reverse=True):
        found = newest if number == newest.id else context.snapshots.find_file(number)
        if found is None and number < newest.id:
            continue
        if found is not None and found.unique == by_number[number]:
            return number
    return 0
