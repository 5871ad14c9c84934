"""Expiry of partitions, and their drop by a condition: one commit without the rows, then without their files.

CHANGE     how partitions expire (options partition.expiration-max-num, partition.expiration-strategy)
Steps      newest snapshot → its partitions → partition_time says which go → an overwrite of them by nothing
           (write_on_base, as any other: tasks, changelog, conflicts) → a full compaction of them alone, which takes
           away the files that have only dead rows by now
INVARIANT  the rows that go are deletes in the changelog; snapshots, tags and staged snapshots keep theirs, and
           the files go with the snapshots that name them.
INVARIANT  which partitions go is decided once: their values never change, so that a lost race drops the same ones, and
           rows that came into them meanwhile as well.
CRASH      between commit and compaction: files without visible rows; the partition is there to the next expiry, which
           finds no row to delete and compacts.
PAIMON     drops files by an OVERWRITE snapshot, which has no changelog: its streams never hear of these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.commit.commit import Committer
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.expiry.partition_time import pick_expired_partitions, shown_partition
from tablestore_engine.store.foreign_commits import PARTITIONS_EXPIRED
from tablestore_engine.store.rows.row_condition import RowCondition
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.requested_compaction import CompactionRequest, compact_table
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest


@dataclass(frozen=True)
class PartitionReport:
    """`partitions` as people write them, the oldest first; `rows`: how many were visible in them.

    left         partitions that are due as well: more than go at once
    timeless     partitions whose values are no time: they never expire
    snapshot_id  the snapshot without the rows; None when none went
    verb         what was done to them: expired, dropped
    """

    partitions: tuple[str, ...] = ()
    rows: int = 0
    left: int = 0
    timeless: int = 0
    snapshot_id: int | None = None
    verb: str = "expired"

    def summary(self) -> str:
        """`2 partitions expired (dt=2026-01-01, dt=2026-01-02), 40 rows, snapshot 8`, and what stayed."""
        count = len(self.partitions)
        text = "no partition is due"
        if count:
            would = "would expire" if self.verb == "expired" else f"would be {self.verb}"
            went = would if self.snapshot_id is None else self.verb
            shown = ", ".join(self.partitions[:3]) + (f" and {count - 3} more" if count > 3 else "")
            text = f"{count} partition{'s' if count > 1 else ''} {went} ({shown}), {self.rows} rows"
            text += "" if self.snapshot_id is None else f", snapshot {self.snapshot_id}"
        if self.left:
            text += f"; {self.left} more are due"
        if self.timeless:
            text += f"; {self.timeless} without a time in their values stay"
        return text


def expire_partitions(
    context: TableContext,
    committer: Committer,
    write: Callable[[WriteRequest], CommitReport],
    *,
    dry_run: bool = False,
) -> PartitionReport:
    """What is due by the table's options; `write` commits a request on main. Raises FixRequest TS1341, Unsupported
    TS1136, TS1137, TS1122 before anything is written, and what a write or a compaction can.
    """
    newest = context.snapshots.find_latest()
    schema = context.schema_at(newest)
    rule = TableTraits(schema).partition_rule
    if rule is None:
        raise _no_rule(context, has_partitions=bool(schema.partition_keys))
    if newest is None:
        return PartitionReport()
    spec = PartitionSpec.of(schema)
    there = dict.fromkeys(entry.partition for entry in context.scanner.live_entries(newest))
    choice = pick_expired_partitions(spec, there, rule, now_ms=context.runtime.now_ms())
    shown = tuple(shown_partition(spec, spec.decode(one)) for one in choice.expired)
    found = PartitionReport(shown, left=choice.left, timeless=choice.timeless)
    going = frozenset(choice.expired)
    if dry_run or not going:
        return replace(found, rows=_visible_rows(context, newest, going))
    return _delete(context, committer, write, found, going, {PARTITIONS_EXPIRED: str(len(going))})


def drop_partitions(
    context: TableContext,
    committer: Committer,
    write: Callable[[WriteRequest], CommitReport],
    where: RowCondition,
    *,
    dry_run: bool = False,
) -> PartitionReport:
    """Those whose values `where` is TRUE of. Raises FixRequest TS1215 for a condition of other columns or a table
    without partitions, what the condition can, before anything is written; and what a write or a compaction can.
    """
    newest = context.snapshots.find_latest()
    picked = pick_partitions(context, newest, where)
    spec = PartitionSpec.of(context.schema_at(newest))
    shown = tuple(shown_partition(spec, spec.decode(one)) for one in picked)
    found, going = PartitionReport(shown, verb="dropped"), frozenset(picked)
    if newest is None or dry_run or not going:
        return found if newest is None else replace(found, rows=_visible_rows(context, newest, going))
    return _delete(context, committer, write, found, going, {})


def pick_partitions(context: TableContext, newest: Snapshot | None, where: RowCondition) -> tuple[bytes, ...]:
    """Partitions of the snapshot whose values `where` is TRUE of, in their order. Raises as drop_partitions."""
    schema = context.schema_at(newest)
    bound = where.bind(schema)
    outside = [name for name in bound.columns if name not in schema.partition_keys]
    if outside:
        raise FixRequest(
            "TS1215",
            f"partitions of {context.layout.location} cannot be chosen by {outside[0]}",
            why=f"the table is partitioned by {', '.join(schema.partition_keys) or 'nothing'}",
            fix="name partition columns only, or delete rows by a condition",
        )
    if newest is None:
        return ()
    spec = PartitionSpec.of(schema)
    there = sorted({entry.partition for entry in context.scanner.live_entries(newest)})
    values = [spec.decode(one) for one in there]
    columns = {
        field.name: arrow_values([one[at] for one in values], field.type)
        for at, field in enumerate(schema.fields_of(schema.partition_keys))
    }
    mask = bound.mask(pa.table(columns))
    return tuple(one for one, is_picked in zip(there, mask, strict=True) if is_picked)


def _delete(
    context: TableContext,
    committer: Committer,
    write: Callable[[WriteRequest], CommitReport],
    found: PartitionReport,
    going: frozenset[bytes],
    properties: Mapping[str, str],
) -> PartitionReport:
    request = WriteRequest(
        mode=WriteMode.OVERWRITE_PARTITIONS,
        emptied=going,
        identity=context.guard.identity,
        properties=properties,
    )
    done = write(request)
    cleaned = compact_table(context, committer, CompactionRequest(full=True, among=going))
    if not done.is_empty:
        return replace(found, rows=done.deleted, snapshot_id=done.snapshot_id)
    if not cleaned.is_empty:  # what a stopped expiry, or a DELETE of all rows, had left
        return replace(found, snapshot_id=cleaned.snapshot_id)
    return replace(found, partitions=())


def _visible_rows(context: TableContext, newest: Snapshot, going: frozenset[bytes]) -> int:
    """By metadata; level 0 is no part of the table yet."""
    schema = context.schema_at(newest)
    states = context.scanner.bucket_states(newest, schema, lambda key: key[0] in going)
    return sum(
        file.meta.row_count - file.dead_count
        for state in states.values()
        for file in state.files
        if file.meta.level > 0 or not schema.is_keyed
    )


def _no_rule(context: TableContext, *, has_partitions: bool) -> FixRequest:
    return FixRequest(
        "TS1341",
        f"partitions of {context.layout.location} do not expire",
        why="its option partition.expiration-time is not set" if has_partitions else "it has no partitions",
        fix="set partition.expiration-time, for example to '90 d'"
        if has_partitions
        else "delete rows by a condition, or build the table with partitions",
    )
