"""What a caller may say of where to begin."""

from __future__ import annotations

from typing import Any

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.stream.startup_mode import StartupMode, StartupRequest, parse_request


def test_a_mode_follows_from_what_is_said() -> None:
    """As in Paimon: a time, a snapshot, or neither."""
    assert parse_request() == StartupRequest(StartupMode.LATEST_FULL)
    assert parse_request("default", timestamp_ms=5) == StartupRequest(
        StartupMode.FROM_TIMESTAMP, timestamp_ms=5
    )
    assert parse_request(snapshot_id=5) == StartupRequest(StartupMode.FROM_SNAPSHOT, 5)
    assert parse_request("full") == parse_request("latest-full")
    assert parse_request("from-snapshot-full", snapshot_id=0) == StartupRequest(
        StartupMode.FROM_SNAPSHOT_FULL, 0
    )


def test_options_have_paimons_keys_and_their_old_names() -> None:
    """An argument goes before an option, a key before its old name."""
    old = {"log.scan": "from-timestamp", "log.scan.timestamp-millis": "7"}
    assert parse_request(options=old) == StartupRequest(StartupMode.FROM_TIMESTAMP, timestamp_ms=7)
    assert parse_request(timestamp_ms=8, options=old).timestamp_ms == 8
    assert parse_request(options={**old, "scan.timestamp-millis": "9"}).timestamp_ms == 9
    assert parse_request(options={"scan.mode": "from-snapshot", "scan.snapshot-id": "3"}).snapshot_id == 3
    assert parse_request("latest", options={"scan.mode": "earliest"}).mode is StartupMode.LATEST


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"mode": "newest"}, "'newest'"),
        ({"mode": "from-snapshot"}, "snapshot_id"),
        ({"mode": "from-timestamp"}, "timestamp_ms"),
        ({"mode": "latest", "snapshot_id": 1}, "snapshot_id"),
        ({"mode": "from-snapshot", "snapshot_id": 1, "timestamp_ms": 1}, "timestamp_ms"),
        ({"snapshot_id": 1, "timestamp_ms": 1}, "snapshot_id"),
        ({"options": {"scan.tag-name": "x"}}, "scan.tag-name"),
    ],
)
def test_words_that_do_not_fit(words: dict[str, Any], said: str) -> None:
    """Nothing that was said is left aside in silence: TS1331."""
    with pytest.raises(FixRequest, match="TS1331") as refused:
        parse_request(**words)
    assert said in str(refused.value)


def test_a_number_that_is_none() -> None:
    """Options are text."""
    with pytest.raises(FixRequest, match="TS1003"):
        parse_request(options={"scan.snapshot-id": "three"})
