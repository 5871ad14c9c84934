"""A table as the input of another: which of its changes come next, and the position behind them.

CHANGE     which changes come after a source offset
Position   {"snapshot", "commit", "schema"}: the commit says which snapshot is meant. A staged one is published under
           another number when the table was folded meanwhile, with the same commit and the same rows.
INVARIANT  who has nothing but changes follows no table that loses what its rows were before: TS1481.
INVARIANT  a snapshot with the number of the position and another commit is not where the reader was: TS1474, no gap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.consumer import Consumer
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.sql.table_version import ChangesBetween
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.metadata.commit_history import commit_of, find_commit
from tablestore_engine.store.metadata.source_positions import PositionStep
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits

Path = tuple[str, ...]  # of a field: a name may have a dot in it
TABLE_SOURCE = "table:"  # before its identity, in a table's name among the positions of others


@dataclass(frozen=True)
class ChangesInput:
    """`source`: the input's name among positions, by its identity. `step` None: nothing is new.

    `next_snapshot`: the first that the reader needs if this range is never committed. `exchanged`: names of columns
    and of fields in them (`s.v`, `list.element.v`) that mean others at the end than at the begin: rows that were read
    before have the values of the former.
    """

    source: str
    between: ChangesBetween
    step: PositionStep | None
    next_snapshot: int
    exchanged: tuple[str, ...] = ()


def source_of(store: TableStore) -> str:
    """The table's name among the positions of others."""
    return f"{TABLE_SOURCE}{store.identity or ''}"


def plan_changes(
    store: TableStore,
    position: str | None,
    *,
    branch: str | None = None,
    most: int | None = None,
    only: bool = False,
) -> ChangesInput:
    """`most`: of main's snapshots behind the position; a change of columns is never before the end, since readers know
    those of today. `only`: the reader has nothing but the changes, and is told so before it begins.

    Raises FixRequest TS1474 (position), TS1481 (`only`), NotFound TS1317 (branch), TS1310.
    """
    newest = store.latest()
    end = newest if branch is None else store.on_staged(branch).latest()
    since = None if position is None else _find(store, newest, position)
    if only and not (
        TableTraits(store.schema).tells_all and (since is None or store.context.tells_all(since))
    ):
        raise _lossy(store)
    if branch is None and since is not None and most is not None and newest is not None:
        cut = store.context.get_snapshot(min(newest.id, since + most))
        end = cut if store.context.schema_at(cut).id == store.context.schema_at(newest).id else newest
    ends = store if branch is None else store.on_staged(branch)
    now = None if end is None else ends.context.schema_at(end)
    after = position if end is None or now is None else _encode(end, now)
    until = 0 if end is None else end.id
    is_same = after is None or (position is not None and _commit_in(after) == _commit_in(position))
    step = None if is_same or after is None else PositionStep(position, after)
    between = ChangesBetween(since, branch=branch) if branch is not None else ChangesBetween(since, until)
    following = (0 if newest is None else newest.id) + 1 if since is None else since + 1
    exchanged: tuple[str, ...] = ()
    if since is not None and now is not None and position is not None:
        exchanged = _exchanged(store, position, since, now)
    return ChangesInput(source_of(store), between, step, following, exchanged)


def _exchanged(store: TableStore, position: str, since: int, now: TableSchema) -> tuple[str, ...]:
    """Positions of before have no schema: where their snapshot has expired, the schema before that of the next one may
    have been its own.
    """
    number = json.loads(position).get("schema")
    if number is None:
        at, following = store.snapshots.find(since), store.snapshots.find(since + 1)
        if at is None and following is None:
            return ()
        number = at.schema_id if at is not None else max(0, (following.schema_id if following else 0) - 1)
    ids = {_folded(path): one for path, one in _field_ids(store.context.schemas.get(number).fields)}
    return tuple(".".join(path) for path, one in _field_ids(now.fields) if ids.get(_folded(path), one) != one)


def _folded(path: Path) -> Path:
    return tuple(map(str.lower, path))


def _field_ids(fields: Sequence[DataField], above: Path = ()) -> Iterator[tuple[Path, int]]:
    """(names from the column on, id) of each field, also of those in structs, arrays and maps."""
    for field in fields:
        path = (*above, field.name)
        yield path, field.id
        yield from _ids_in(field.type, path)


def _ids_in(kind: DataType, path: Path) -> Iterator[tuple[Path, int]]:
    yield from _field_ids(kind.fields, path)
    for part in ("element", "key", "value"):
        inner = getattr(kind, part)
        if inner is not None:
            yield from _ids_in(inner, (*path, part))


def count_changed_rows(store: TableStore, found: ChangesInput, *, at_most: bool = False) -> int | None:
    """None where metadata has no number, or all rows are new. `at_most`: an upper bound is enough.

    Raises NotFound TS1302 for a snapshot that is gone.
    """
    between = found.between
    if between.since is None or (found.step is not None and not store.context.tells_all(between.since)):
        return None
    last = between.until
    counts = []
    if between.branch is not None:
        staged = store.on_staged(between.branch)
        end = staged.latest()
        if end is None:
            return None
        counts.append(_count(staged, end, at_most=at_most))
        last = end.id - 1
    numbers = range(between.since + 1, (last or 0) + 1)
    counts += [_count(store, store.context.get_snapshot(number), at_most=at_most) for number in numbers]
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


def _count(store: TableStore, snapshot: Snapshot, *, at_most: bool) -> int | None:
    reader = ChangelogReader(store.context)
    return reader.count_most(snapshot) if at_most else reader.count(snapshot)


def hold_changes(store: TableStore, consumer: str, found: ChangesInput) -> None:
    """Before the range is read: what a reader needs that never commits it. Raises FixRequest TS1107, RetryError TS1365.

    That the range is there is known by `found`.
    """
    store.context.guard.check()
    store.context.consumers.put(consumer, Consumer(found.next_snapshot))


def _encode(snapshot: Snapshot, schema: TableSchema) -> str:
    """`schema`: by which a reader of today reads its rows, which can be newer than the snapshot."""
    known = {"snapshot": snapshot.id, "commit": commit_of(snapshot), "schema": schema.id}
    return json.dumps(known, separators=(",", ":"))


def _commit_in(position: str) -> tuple[int, str]:
    raw = json.loads(position)
    return int(raw["snapshot"]), str(raw["commit"])


def _find(store: TableStore, newest: Snapshot | None, position: str) -> int:
    """The number of the snapshot that is meant."""
    try:
        number, commit = _commit_in(position)
    except (ValueError, KeyError, TypeError) as error:
        raise _lost(store, f"{position!r} is no position of ours") from error
    found = None if newest is None else find_commit(store.snapshots, newest, commit, first=number)
    if found is None:
        raise _lost(store, f"snapshot {number} of commit {commit} is not in its history: it was rolled back")
    if newest is not None and found + 1 < newest.id and store.snapshots.find(found + 1) is None:
        raise _lost(store, f"snapshot {found + 1} has expired")
    return found


def _lossy(store: TableStore) -> FixRequest:
    return FixRequest(
        "TS1481",
        f"changes of {store.location} do not say what its rows were before",
        why="'changelog-producer' is none or input, or was since the last run, or the changelog leaves columns out "
        "(changelog-producer.row-deduplicate-ignore-fields)",
        fix="set 'changelog-producer' = 'lookup', our default, and build what reads the changes again; or keep the "
        "model up by incremental_strategy='changed_keys', which compares all rows then",
    )


def _lost(store: TableStore, why: str) -> FixRequest:
    return FixRequest(
        "TS1474",
        f"which changes of {store.location} come next is unknown",
        why=why,
        fix="build what reads them again (a full refresh): it begins with all rows",
    )
