"""Where a stream starts: startup mode, snapshots and clock → a snapshot, or a refusal. Pure.

CHANGE     at which snapshot a stream starts (options scan.mode, streaming-read-mode)
Rules      latest-full         the rows of the newest snapshot, then the changes behind it
           latest              the changes behind the newest snapshot
           earliest            the changes of snapshot 1 and all behind; once that has expired, the rows of the oldest
                               snapshot that is there, then the changes behind it: either way all that there is
           from-snapshot       the changes of snapshot N and all behind
           from-snapshot-full  the rows of snapshot N, then the changes behind it
           from-timestamp      the changes of all snapshots from the first one of that time or later
           compacted-full      the rows of the newest COMPACT snapshot, then the changes behind it; else latest-full
Empty      before the first commit every mode means: the changes of snapshot 1 and all behind.
INVARIANT  the latest value per key of what a reader gets is the table, at each snapshot, without what the mode leaves
           out; a start that would leave out more is refused (TS1333), never moved.
PAIMON     moves it: from-snapshot and -full to the oldest snapshot that is there, from-timestamp likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.options import OptionSet


class StartupMode(StrEnum):
    LATEST_FULL = "latest-full"
    LATEST = "latest"
    EARLIEST = "earliest"
    FROM_SNAPSHOT = "from-snapshot"
    FROM_SNAPSHOT_FULL = "from-snapshot-full"
    FROM_TIMESTAMP = "from-timestamp"
    COMPACTED_FULL = "compacted-full"


_AT_SNAPSHOT = (StartupMode.FROM_SNAPSHOT, StartupMode.FROM_SNAPSHOT_FULL)
_OLD_WORDS = {"full": StartupMode.LATEST_FULL}
_KEYS = {"mode": "scan.mode", "timestamp_ms": "scan.timestamp-millis", "snapshot_id": "scan.snapshot-id"}
_OLD_KEYS = {"scan.mode": "log.scan", "scan.timestamp-millis": "log.scan.timestamp-millis"}


@dataclass(frozen=True)
class StartupRequest:
    """What `mode` needs is there and nothing else is: see parse_request."""

    mode: StartupMode = StartupMode.LATEST_FULL
    snapshot_id: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class History:
    """Ids ascending; the questions answer None for a snapshot that is gone meanwhile, and are asked where needed."""

    ids: tuple[int, ...]
    time_of: Callable[[int], int | None]
    is_compaction: Callable[[int], bool | None]


@dataclass(frozen=True)
class Start:
    """`is_full`: the rows of `snapshot`, then the changes behind it; else its changes and those behind it."""

    snapshot: int
    is_full: bool


def parse_request(
    mode: str | None = None,
    *,
    snapshot_id: int | None = None,
    timestamp_ms: int | None = None,
    options: Mapping[str, str] | None = None,
) -> StartupRequest:
    """Words of a caller; `options` the same under Paimon's keys, the old ones too.

    Without a mode a time means from-timestamp, a snapshot from-snapshot, neither latest-full. Raises FixRequest TS1331,
    TS1003.
    """
    said = _said(options or {}, mode, snapshot_id, timestamp_ms)
    text, snapshot_id, timestamp_ms = said
    if text in (None, "default"):
        if timestamp_ms is not None:
            text = StartupMode.FROM_TIMESTAMP
        else:
            text = StartupMode.LATEST_FULL if snapshot_id is None else StartupMode.FROM_SNAPSHOT
    chosen = _mode(str(text))
    _check(chosen, "a snapshot", "snapshot_id", snapshot_id, wanted=chosen in _AT_SNAPSHOT)
    _check(chosen, "a time", "timestamp_ms", timestamp_ms, wanted=chosen is StartupMode.FROM_TIMESTAMP)
    return StartupRequest(chosen, snapshot_id, timestamp_ms)


def _said(
    options: Mapping[str, str], mode: str | None, snapshot_id: int | None, timestamp_ms: int | None
) -> tuple[str | None, int | None, int | None]:
    """What is said by an argument goes before the same said by an option, a key before its old name."""
    known = {*_KEYS.values(), *_OLD_KEYS.values()}
    unknown = [key for key in options if key not in known]
    if unknown:
        raise _refused(
            f"a reader has no option {unknown[0]!r}", f"it knows {', '.join(sorted(known))}", "leave it out"
        )
    values = {key: options.get(key, options.get(_OLD_KEYS.get(key, ""))) for key in _KEYS.values()}
    given = OptionSet({key: text for key, text in values.items() if text is not None})

    def number(said: int | None, key: str) -> int | None:
        return given.integer(key) if said is None and key in given.values else said

    return (
        mode or given.values.get(_KEYS["mode"]),
        number(snapshot_id, _KEYS["snapshot_id"]),
        number(timestamp_ms, _KEYS["timestamp_ms"]),
    )


def _mode(text: str) -> StartupMode:
    plain = text.strip().lower()
    plain = _OLD_WORDS.get(plain, plain)
    if plain not in list(StartupMode):
        raise _refused(
            f"a reader cannot begin at {text!r}",
            f"expected one of {', '.join(StartupMode)}",
            "write one of these",
        )
    return StartupMode(plain)


def _check(mode: StartupMode, what: str, name: str, value: int | None, *, wanted: bool) -> None:
    if wanted and value is None:
        raise _refused(
            f"mode {mode} does not say where to begin",
            f"it needs {what}, and {name} is not given",
            f"give {name}",
        )
    if not wanted and value is not None:
        raise _refused(
            f"mode {mode} goes with no {name}",
            f"{value} would have no effect",
            f"leave {name} out, or choose another mode",
        )


def _refused(what: str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1331", what, why=why, fix=fix)


# the rule -------------------------------------------------------------------------------------------------------


def pick_start(request: StartupRequest, history: History, *, now_ms: int, table: str) -> Start:
    """Raises FixRequest TS1332 (what is not there yet), NotFound TS1333 (what is gone)."""
    match request.mode:
        case StartupMode.FROM_SNAPSHOT | StartupMode.FROM_SNAPSHOT_FULL:
            return _at_snapshot(request, history, table)
        case StartupMode.FROM_TIMESTAMP:
            assert request.timestamp_ms is not None
            return _at_time(request.timestamp_ms, history, now_ms, table)
    if not history.ids:
        return Start(1, is_full=False)
    first, last = history.ids[0], history.ids[-1]
    match request.mode:
        case StartupMode.LATEST:
            return Start(last + 1, is_full=False)
        case StartupMode.EARLIEST:
            return Start(first, is_full=first > 1)
        case StartupMode.COMPACTED_FULL:
            compactions = (number for number in reversed(history.ids) if history.is_compaction(number))
            return Start(next(compactions, last), is_full=True)
        case _:
            return Start(last, is_full=True)


def _at_snapshot(request: StartupRequest, history: History, table: str) -> Start:
    number, is_full = request.snapshot_id, request.mode is StartupMode.FROM_SNAPSHOT_FULL
    assert number is not None
    newest = history.ids[-1] if history.ids else 0
    if number > newest + (not is_full) or number < 1:
        raise FixRequest(
            "TS1332",
            f"a reader of {table} cannot begin at snapshot {number}",
            why=f"the newest snapshot is {newest}" if newest else "nothing was committed yet",
            fix="choose a snapshot that is there, or begin with latest",
        )
    if history.ids and number < history.ids[0]:
        lost = "its rows" if is_full else f"the changes of snapshots {number} to {history.ids[0] - 1}"
        raise _gone(table, f"snapshot {number}", lost, history.ids[0])
    return Start(number, is_full)


def _at_time(timestamp_ms: int, history: History, now_ms: int, table: str) -> Start:
    """From the lowest id on: where the clocks of writers differ, nothing of that time is left out."""
    if timestamp_ms > now_ms or timestamp_ms < 0:
        raise FixRequest(
            "TS1332",
            f"a reader of {table} cannot begin at {timestamp_ms} ms",
            why=f"it is {now_ms} ms now" if timestamp_ms > now_ms else "times are counted from 1970",
            fix="give milliseconds since 1970 (UTC) that are over, or begin with latest",
        )
    if not history.ids:
        return Start(1, is_full=False)
    times = ((number, history.time_of(number)) for number in history.ids)
    of_that_time = (number for number, time in times if time is not None and time >= timestamp_ms)
    number = next(of_that_time, history.ids[-1] + 1)
    if number == history.ids[0] and number > 1:
        raise _gone(table, f"{timestamp_ms} ms", f"changes of snapshots before {number}", number)
    return Start(number, is_full=False)


def _gone(table: str, wanted: str, lost: str, first: int) -> NotFound:
    return NotFound(
        "TS1333",
        f"a reader of {table} cannot begin at {wanted}: it would lose {lost}",
        why=f"the oldest snapshot that is there is {first}; those before it have expired",
        fix=f"begin with earliest or latest-full (all rows first), or with the changes from snapshot {first}; "
        "a consumer id keeps what its reader still needs",
    )
