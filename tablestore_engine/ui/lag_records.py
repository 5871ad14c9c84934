"""How far readers and topics lag, as records with stable names: of commands, page and report."""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.api import LogStatus, SourceLag
from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.spi import LogWriter


def lag_record(found: SourceLag, now_ms: int) -> dict[str, object]:
    """As JSON has it: names that programs may rely on."""
    lag = found.lag
    return {
        "table": found.table,
        "follows": found.follows,
        "at": found.position if lag is None else lag.at,
        "newest": None if lag is None else lag.newest,
        "lag": None
        if lag is None
        else {
            "snapshots": lag.snapshots,
            "rows": lag.rows,
            "seconds": lag.seconds(now_ms),
            "since": _moment(lag.oldest_ms),
        },
        "committed_seconds": None if found.committed_ms is None else found.committed_ms / 1000,
        "trouble": found.trouble,
    }


def status_record(status: LogStatus) -> dict[str, object]:
    """Names that programs may rely on."""
    state, pending = status.state, status.pending
    return {
        "table": status.table,
        "log": state.name,
        "system": state.system,
        "published": state.reached,
        "published_commit": state.commit,
        "part_of_next": state.part_of_next,
        "newest": status.newest,
        "lag": None
        if pending is None
        else {
            "snapshots": pending.snapshots,
            "rows": pending.rows,
            "seconds": pending.seconds(status.looked_ms),
            "since": _moment(pending.since_ms),
        },
        "ends": {str(part): end for part, end in state.ends.items()},
        "unseen": {part: list(span) for part, span in state.unseen.items()},
        "early": None
        if state.early is None
        else {"ahead": _spans(state.early.ahead), "unchecked": _spans(state.early.unchecked)},
        "writer": _writer_record(state.writer),
        "shards": [
            {
                "shard": number,
                "published": shard.reached,
                "part_of_next": shard.part_of_next,
                "writer": _writer_record(shard.writer),
            }
            for number, shard in enumerate(state.shards)
        ],
        "settings": {name: dict(values) for name, values in state.settings.items()},
        "looked_seconds": status.looked_ms / 1000,
        "trouble": status.trouble,
    }


def _writer_record(writer: LogWriter) -> dict[str, object]:
    return {
        "id": writer.name,
        "producer": writer.number,
        "epoch": writer.epoch,
        "state": writer.state,
        "open": writer.is_open,
        "changed": _moment(writer.changed_ms),
    }


def _spans(spans: Mapping[int, tuple[int, int]]) -> dict[str, list[int]]:
    return {str(part): list(span) for part, span in spans.items()}


def _moment(millis: int | None) -> str | None:
    return None if millis is None else moment_text(millis)
