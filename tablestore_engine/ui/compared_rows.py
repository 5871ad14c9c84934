"""The difference of two snapshots for the page: counts, and the first rows of each kind.

INVARIANT  a difference of more changed rows than CHANGED_ROWS_MAX is refused before any row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tablestore_engine.api import Engine, Table
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.json_plain import cell_text
from tablestore_engine.ui.commit_records import Record
from tablestore_engine.warehouse.compared_states import STAGED, ComparedStates, SnapshotName
from tablestore_engine.warehouse.net_changes import NetChange, Row

CHANGED_ROWS_MAX = 2_000_000
COLUMNS_MAX = 60
_SAMPLES, _CELL_MAX = 5, 300


def read_difference(engine: Engine, name: str, first: str, second: str) -> Record:
    """`first` and `second`: snapshot ids, tags, `@staged:NAME`. Raises FixRequest TS1952, TS1953, TS1545, NotFound."""
    table = engine.table(name)
    ends = (parse_end(first, table.list_tags), parse_end(second, table.list_tags))
    for end in ends:
        if isinstance(end, int):
            table.store.snapshots.get(end)
    states = table.compare(*ends)
    _check_size(table, states)
    counts, schema = states.count(), states.seen.schema
    names = schema.field_names[:COLUMNS_MAX]
    return {
        "from": first,
        "to": second,
        "title": states.title(),
        "inserted": counts.inserted,
        "updated": counts.updated,
        "deleted": counts.deleted,
        "columns": list(names),
        "samples": [_sample(one, names) for one in states.samples(_SAMPLES)],
    }


def parse_end(text: str, list_tags: Callable[[], Collection[str]]) -> SnapshotName:
    """A tag of digits is an id. Raises FixRequest TS1952."""
    word, _, name = text.partition(":")
    if word == STAGED and (name or text == STAGED):
        return text
    if text.isascii() and text.isdecimal() and len(text) <= 18:
        return int(text)
    if text in list_tags():
        return text
    raise FixRequest(
        "TS1952",
        f"{text[:80]!r} is no snapshot",
        why=f"expected a snapshot id, a tag of the table or {STAGED}:NAME",
        fix="select two snapshots of the timeline",
    )


def _check_size(table: Table, states: ComparedStates) -> None:
    """By the rows of files where states are compared, else by the snapshots' counts, as far as they have them."""
    if states.files is not None:
        _refuse_many(states.files.count_read(), states)
        return
    snapshots = (table.store.snapshots.find(number) for number in range(states.low + 1, states.high + 1))
    count = 0
    for one in snapshots:
        count += 0 if one is None else one.changelog_record_count or 0
        _refuse_many(count, states)


def _refuse_many(count: int, states: ComparedStates) -> None:
    if count > CHANGED_ROWS_MAX:
        raise FixRequest(
            "TS1953",
            f"the difference of {states.title()} has too many changed rows for the page",
            why=f"more than {CHANGED_ROWS_MAX:,} rows have to be read",
            fix="select snapshots that are closer together, or run tablestore diff",
        )


def _sample(change: NetChange, names: tuple[str, ...]) -> Record:
    return {
        "kind": change.kind,
        "before": None if change.before is None else shown_cells(change.before, names),
        "after": None if change.after is None else shown_cells(change.after, names),
    }


def shown_cells(row: Row, names: tuple[str, ...]) -> list[str | None]:
    """The values of these columns, long ones cut; None for NULL."""
    return [cell_text(row.get(name), _CELL_MAX) for name in names]
