"""What a write did, in the words of run_results.json and of dbt's log line.

Names      TablestoreResponse   dbt's AdapterResponse with row counts, snapshot, changelog and Kafka offsets
           describe_commit()    a WriteReport -> TablestoreResponse
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

from tablestore_engine.api import WriteReport


@dataclass
class TablestoreResponse(AdapterResponse):
    """Lies in run_results.json under adapter_response."""

    snapshot_id: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_unchanged: int | None = None
    changelog_rows: int | None = None
    files_added: int | None = None
    bytes_added: int | None = None
    staged: str | None = None
    kafka_topic: str | None = None
    kafka_offsets: dict[str, list[int]] | None = None


def describe_commit(report: WriteReport | None) -> TablestoreResponse:
    """`snapshot 7 (+120 ~30 -3) · kafka orders[0] 4100..4253`, with the facts behind it."""
    if report is None:
        return TablestoreResponse(_message="OK", code="OK")
    return TablestoreResponse(
        _message=report.summary(),
        code="OK",
        rows_affected=report.inserted + report.updated + report.deleted,
        snapshot_id=report.snapshot_id,
        rows_inserted=report.inserted,
        rows_updated=report.updated,
        rows_deleted=report.deleted,
        rows_unchanged=report.unchanged,
        changelog_rows=report.changelog_rows,
        files_added=report.files_added,
        bytes_added=report.bytes_added,
        staged=report.staged,
        kafka_topic=report.topic,
        kafka_offsets={str(part): list(span) for part, span in sorted(report.offsets.items())} or None,
    )
