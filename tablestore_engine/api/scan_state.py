"""Which state of a table a scan reads, out of what its caller gives."""

from __future__ import annotations

from datetime import datetime

from tablestore_engine.api.scan_request import refuse_scan
from tablestore_engine.runtime.moments import epoch_millis
from tablestore_engine.sql.table_version import TableVersion, find_version


def state_of(
    *,
    snapshot: object = None,
    tag: str | None = None,
    timestamp_ms: object = None,
    branch: str | None = None,
    watermark: object = None,
) -> TableVersion | None:
    """Which state is meant, None: the current one. Texts of digits are numbers, a datetime with a zone is a time.

    Raises FixRequest TS1015, TS1569.
    """
    number = int(snapshot) if isinstance(snapshot, str) and snapshot.isdecimal() else snapshot
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise refuse_scan(
            "snapshot", snapshot, "the id of a snapshot, a whole number; a tag is given as tag='…'"
        )
    return find_version(
        snapshot=number,
        tag=tag,
        timestamp_ms=_millis("timestamp_ms", timestamp_ms),
        branch=branch,
        watermark=_millis("watermark", watermark),
    )


def _millis(name: str, given: object) -> int | None:
    """Raises FixRequest TS1569."""
    expected = "epoch milliseconds, or a datetime with a time zone"
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise refuse_scan(name, given, expected)
        return epoch_millis(given)
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    raise refuse_scan(name, given, expected)
