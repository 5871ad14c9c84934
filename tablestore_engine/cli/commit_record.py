"""What a commit or a publication did, and where its messages lie in a log, as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tablestore_engine.api import CompactReport, WriteReport
    from tablestore_engine.spi import LogPosition, Publication


def log_record(position: LogPosition | None) -> dict[str, object]:
    """`offsets` maps parts of the log to [first, next); null and {} where nothing was published."""
    if position is None:
        return {"topic": None, "offsets": {}}
    return {"topic": position.name, "offsets": position.as_lists()}


def exit_status(report: WriteReport | CompactReport) -> int:
    """1 where something after the commit failed, which the report prints: the commit itself stays."""
    return 1 if report.has_trouble else 0


def expiry_record(report: WriteReport | CompactReport) -> dict[str, object]:
    """What expired after a commit, and why that failed."""
    return {
        "expired": report.expired,
        "not_expired": report.not_expired,
        "partitions_expired": list(report.partitions.partitions) if report.partitions else [],
        "partitions_trouble": report.partitions_trouble,
        "iceberg_trouble": report.iceberg_trouble,
    }


def report_record(report: WriteReport) -> dict[str, object]:
    return {
        "table": str(report.table),
        "snapshot": report.snapshot_id,
        **report.counts(),
        "staged": report.staged,
        **log_record(report.log),
        **expiry_record(report),
    }


def publication_record(one: Publication) -> dict[str, object]:
    """What became of one staged snapshot."""
    told: dict[str, object] = {"table": one.staged.table, "name": one.staged.name, "state": one.state}
    if one.report is not None:
        told |= report_record(one.report)
    return {**told, "error": None if one.error is None else str(one.error)}
