"""Rows of a stream's range one snapshot after the other: of the rows of a key, that of the latest snapshot is written.

WHY        a query without `_snapshot_id` gives no order. A stateless query gives for a range what it gives for each
           snapshot of the range, so the snapshots are asked one by one, only after a write has found repeated keys.
INVARIANT  two rows of a key in one snapshot stay repeated: neither is the later one (TS1601).
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.tablestore.plan.select_sql import quote
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import ChangesBetween, Engine, Table, TableVersion

SNAPSHOTS_MAX = 100  # in one query, each with a plan of its own
_ORDER, _RANK = "__tablestore_snapshot", "__tablestore_rank"


def latest_rows(
    engine: Engine,
    select: str,
    stream: TablestoreRelation,
    between: ChangesBetween,
    key: Sequence[str],
) -> str | None:
    """`select`: over the range, by its name in compiled SQL. None: the range cannot be cut, since it has
    one snapshot, or too many, or a first state that is not only the rows that were added.
    """
    ranges = _cut(engine.table(stream.table_name), between)
    if len(ranges) < 2 or (between.since is None and not _only_adds(engine, stream, ranges)):
        return None
    read = _named(stream, ChangesBetween(None))
    parts = [
        f"select *, {number} as {_ORDER} from (\n{select.replace(read, _named(stream, one))}\n)"
        for number, one in enumerate(ranges)
    ]
    ranked = (
        f"select *, rank() over (partition by {', '.join(map(quote, key))} order by {_ORDER} desc) as {_RANK}"
    )
    ranked += " from (\n" + "\nunion all\n".join(parts) + "\n)"
    return f"select * except ({_ORDER}, {_RANK}) from (\n{ranked}\n) where {_RANK} = 1"


def _cut(table: Table, between: ChangesBetween) -> tuple[ChangesBetween, ...]:
    since, until = between.since, between.until
    if between.branch is not None or until is None:
        return ()
    first = since + 1 if since is not None else min((one.id for one in table.snapshots()), default=until)
    if until - first >= SNAPSHOTS_MAX:
        return ()
    later = (ChangesBetween(number - 1, number) for number in range(first + 1, until + 1))
    return (ChangesBetween(since, first), *later)


def _only_adds(engine: Engine, stream: TablestoreRelation, ranges: Sequence[ChangesBetween]) -> bool:
    history = _named(stream, ChangesBetween(ranges[0].until, ranges[-1].until))
    return not engine.sql(f"select 1 from {history} where _row_kind <> '+I' limit 1").rows


def _named(stream: TablestoreRelation, between: ChangesBetween) -> str:
    return str(stream.replace(version=TableVersion(changes=between)).render())
