"""What a caller says of a commit reaches the store, and what the store counts reaches the caller: no field is lost."""

from __future__ import annotations

from dataclasses import fields

from tablestore_engine.api import WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.store.commit.commit_report import CommitCounts, CommitReport
from tablestore_engine.store.rows.row_filter import EVERY_ROW
from tablestore_engine.store.write.write_request import CommitOptions, WriteMode, WriteRequest
from tablestore_engine.warehouse.write_report import report_of


def test_every_commit_option_of_a_spec_is_in_the_request() -> None:
    """Each with a value that is not its default."""
    said = {
        "mode": WriteMode.REPLACE,
        "replaces": EVERY_ROW,
        "duplicates": "last",
        "skip_unchanged": True,
        "stage": "s",
        "builds_on_stage": True,
        "always": True,
        "commit_user": "u",
        "commit_identifier": 7,
        "properties": {"a": "b"},
    }
    assert set(said) == {one.name for one in fields(CommitOptions)}
    assert all(getattr(CommitOptions(), name) != value for name, value in said.items())
    request = WriteRequest(**WriteSpec(**said).commit_options())  # type: ignore[arg-type]
    assert {name: getattr(request, name) for name in said} == said


def test_every_count_of_a_commit_is_in_the_report() -> None:
    """Seven different numbers."""
    counts = {one.name: number for number, one in enumerate(fields(CommitCounts), 1)}
    report = report_of(Identifier("d", "t"), CommitReport(snapshot_id=1, **counts))  # type: ignore[arg-type]
    assert report.counts() == counts
