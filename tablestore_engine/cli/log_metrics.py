"""Figures of logs for Prometheus.

CHANGE     the Prometheus metrics of `tablestore log show`
INVARIANT  a table that could not be asked has tablestore_log_up 0, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tablestore_engine.cli.prometheus_text import Family, Record, at, render_families


def _offsets(*path: str) -> Callable[[Record], object]:
    """How many offsets the spans at a place of a record have."""
    find = at(*path)

    def count(record: Record) -> object:
        spans = find(record)
        return sum(end - first for first, end in spans.values()) if isinstance(spans, Mapping) else None

    return count


_METRICS: tuple[Family, ...] = (
    (
        "up",
        "1 when the log could be asked and nothing keeps it from being published",
        lambda one: one["trouble"] is None,
    ),
    ("published_snapshot", "Newest snapshot that the log has as a whole", at("published")),
    ("newest_snapshot", "Newest snapshot of the table", at("newest")),
    ("lag_snapshots", "Snapshots that the log lacks", at("lag", "snapshots")),
    ("lag_rows", "Changed rows that the log lacks", at("lag", "rows")),
    ("lag_seconds", "For how long the oldest of them has been committed", at("lag", "seconds")),
    ("open_transaction", "1 when a transaction of the table's publisher is open", at("writer", "open")),
    ("unseen_messages", "Messages and control records that readers do not see yet", _offsets("unseen")),
    ("early_messages", "Messages and control records ahead of the newest marker", _offsets("early", "ahead")),
    ("unchecked_messages", "Messages before it that it does not answer for", _offsets("early", "unchecked")),
    ("producer_epoch", "Grows with each publisher that took over", at("writer", "epoch")),
    ("looked_timestamp_seconds", "When this was looked at", at("looked_seconds")),
)


def render_metrics(records: Sequence[Record]) -> str:
    """One family after the other, tables in the order given."""
    return render_families("tablestore_log", ("table", "log"), _METRICS, records)
