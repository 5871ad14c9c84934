"""What run_results.json says of a model that made several commits."""

from __future__ import annotations

from typing import Any

from dbt.adapters.tablestore.adapter_response import TablestoreResponse


def commit(
    number: int, since: int | None, offsets: dict[str, list[int]] | None, **more: Any
) -> TablestoreResponse:
    """One of them."""
    made = TablestoreResponse(
        _message=f"snapshot {number}",
        code="OK",
        snapshot_id=number,
        rows_inserted=2,
        rows_affected=2,
        rows_unchanged=1,
        kafka_offsets=offsets,
        **more,
    )
    made.tell_ranges({"demo.feed": (since, number)}, None if since is None else 5, f"feed {since}→{number}")
    return made


def test_commits_add_up() -> None:
    """Counts are summed, ranges and offsets go from the first begin to the last end; the newest snapshot counts."""
    told = commit(1, 0, {"0": [4, 6], "1": [1, 2]}, rows_deleted=1)
    told.join(commit(2, 1, {"0": [7, 9]}, rows_deleted=3))
    told.join(commit(3, 2, {"2": [0, 0]}, rows_deleted=0))
    assert (told.batches, told.snapshot_id, told.rows_inserted, told.rows_deleted, told.rows_read) == (
        3,
        3,
        6,
        4,
        15,
    )
    assert told.rows_out == 9  # each: two affected, one as it was
    assert told.followed == {"demo.feed": [0, 3]}
    assert told.kafka_offsets == {"0": [4, 9], "1": [1, 2], "2": [0, 0]}
    assert told.to_dict()["_message"] == "snapshot 3 · feed 2→3 · 3 commits"


def test_what_one_commit_does_not_know_is_not_known() -> None:
    """All rows of a first run have no count of changes."""
    told = commit(1, None, None)
    told.join(commit(2, 1, None))
    assert (told.rows_read, told.kafka_offsets) == (None, None)
    assert told.followed == {"demo.feed": [None, 2]}
