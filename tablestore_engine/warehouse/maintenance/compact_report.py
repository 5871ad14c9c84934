"""What one compaction did, and where changes that it made visible went."""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.log.sink import LogPosition
from tablestore_engine.store.expiry.expire_partitions import PartitionReport
from tablestore_engine.store.write.requested_compaction import NOTHING, CompactionReport, FileTotals
from tablestore_engine.warehouse.write_report import WriteReport, notes_after_commit


@dataclass(frozen=True)
class CompactReport:
    """`before` are the files that were rewritten (rows: deleted ones included), `after` the new ones.

    `snapshot_ids` are the snapshots of this call, `snapshot_id` the newest of the table. `log`: where the
    messages of this call lie, which tell rows of other writers that were taken in. `expired`, `not_expired`,
    `partitions`, `partitions_trouble`, `iceberg_trouble`: see WriteReport.

    >>> report = orders.upsert([{"id": 1, "region": "eu", "amount": 11.0}])
    >>> compacted = orders.compact(full=True)
    >>> compacted.before.files, compacted.after.files
    (2, 1)
    """

    table: Identifier
    snapshot_id: int | None
    snapshot_ids: tuple[int, ...] = ()
    before: FileTotals = NOTHING
    after: FileTotals = NOTHING
    log: LogPosition | None = None
    expired: int = 0
    not_expired: str | None = None
    partitions: PartitionReport | None = None
    partitions_trouble: str | None = None
    iceberg_trouble: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self.snapshot_ids

    @property
    def has_trouble(self) -> bool:
        return {self.not_expired, self.partitions_trouble, self.iceberg_trouble} != {None}

    def summary(self) -> str:
        """`snapshot 7, 9 files → 1`."""
        if self.is_empty:
            return f"nothing is due{self.notes}"
        first, last = self.snapshot_ids[0], self.snapshot_ids[-1]
        text = f"snapshot {last}" if first == last else f"{len(self.snapshot_ids)} snapshots up to {last}"
        return f"{text}, {self.before.files} files → {self.after.files}{self.notes}"

    @property
    def notes(self) -> str:
        """What happened behind the compaction, '' for nothing."""
        return notes_after_commit(
            self.partitions, self.partitions_trouble, self.not_expired, self.iceberg_trouble
        )


def report_of_compaction(done: CompactionReport, commit: WriteReport) -> CompactReport:
    """`commit`: where its changelog is, and what expired after it."""
    return CompactReport(
        commit.table,
        done.snapshot_id,
        done.snapshot_ids,
        done.before,
        done.after,
        log=commit.log,
        expired=commit.expired,
        not_expired=commit.not_expired,
        partitions=commit.partitions,
        partitions_trouble=commit.partitions_trouble,
        iceberg_trouble=commit.iceberg_trouble,
    )
