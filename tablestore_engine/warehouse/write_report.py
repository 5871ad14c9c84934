"""What one write did, and where its changelog went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.store.commit.commit_report import CommitCounts

if TYPE_CHECKING:
    from tablestore_engine.log.sink import LogPosition
    from tablestore_engine.store.commit.commit_report import CommitReport
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport
    from tablestore_engine.store.metadata.seen_table import SeenTable


@dataclass(frozen=True)
class WriteReport(CommitCounts):
    """One commit. `snapshot_id` is None when nothing had to be written and the table has no snapshot yet.

    `log`: where the messages of this call lie, None without a log; `staged` names the branch of a staged snapshot
    (then nothing is published). `schema_id` is the schema of the snapshot. `is_empty`: there was
    nothing to commit, and `snapshot_id` is the one that stayed. `expired`: old snapshots that expired after the
    commit; `not_expired`: why that failed, which changes nothing about the commit. `tags`: those that it made by the
    table's options. `partitions`: the partitions that
    expired after the commit, None when none were due. `partitions_trouble`: why that ended early. `iceberg_trouble`:
    why Iceberg metadata was not written; the next commit writes it. `chosen_buckets`, `seen`: as of
    CommitReport.

    >>> report = orders.upsert([{"id": 4, "region": "us", "amount": 1.0}])
    >>> report.snapshot_id, report.inserted, report.summary()
    (2, 1, 'snapshot 2 (+1 ~0 -0)')
    """

    table: Identifier
    snapshot_id: int | None
    schema_id: int = 0
    staged: str | None = None
    log: LogPosition | None = None
    is_empty: bool = False
    expired: int = 0
    not_expired: str | None = None
    tags: tuple[str, ...] = ()
    partitions: PartitionReport | None = None
    partitions_trouble: str | None = None
    iceberg_trouble: str | None = None
    chosen_buckets: int | None = None
    seen: SeenTable | None = field(default=None, compare=False, repr=False)

    @property
    def has_trouble(self) -> bool:
        """Whether something after the commit failed: `not_expired` or one of the troubles says what."""
        return {self.not_expired, self.partitions_trouble, self.iceberg_trouble} != {None}

    def summary(self) -> str:
        """`snapshot 7 (+120 ~30 -3)` or `staged snapshot 7 (@staged) (+120 …)`; ` · ` and where its messages lie."""
        text = (
            f"staged snapshot {self.snapshot_id} (@staged)" if self.staged else f"snapshot {self.snapshot_id}"
        )
        if self.inserted or self.updated or self.deleted:
            text += f" (+{self.inserted} ~{self.updated} -{self.deleted})"
        elif self.is_empty:
            text = "nothing changed" + (f" (still {text})" if self.snapshot_id is not None else "")
        else:
            text += " (no row changed)"
        if self.chosen_buckets is not None:
            text += " · bucket=auto: " + _bucket_words(self.chosen_buckets)
        if self.log is not None and self.log.ranges:
            text += f" · {self.log.summary()}"
        text += "".join(f" · tag {name}" for name in self.tags)
        return text + notes_after_commit(
            self.partitions, self.partitions_trouble, self.not_expired, self.iceberg_trouble
        )


def _bucket_words(count: int) -> str:
    return "no buckets" if count < 1 else f"{count} bucket{'s' if count > 1 else ''}"


def notes_after_commit(
    partitions: PartitionReport | None, trouble: str | None, not_expired: str | None, iceberg: str | None
) -> str:
    """` · 2 partitions expired (…)` and so on, each behind a dot; '' when there is nothing to say."""
    notes = [] if partitions is None or not partitions.partitions else [partitions.summary()]
    notes += [] if trouble is None else [f"expiring partitions: {trouble}"]
    notes += [] if not_expired is None else [f"old snapshots did not expire: {not_expired}"]
    notes += [] if iceberg is None else [f"Iceberg metadata was not written: {iceberg}"]
    return "".join(f" · {note}" for note in notes)


def report_of(identifier: Identifier, report: CommitReport) -> WriteReport:
    """The store's report with the table's name."""
    return WriteReport(
        table=identifier,
        snapshot_id=report.snapshot_id,
        schema_id=report.schema_id,
        staged=report.staged,
        is_empty=report.is_empty,
        chosen_buckets=report.chosen_buckets,
        seen=report.seen,
        **report.counts(),
    )
