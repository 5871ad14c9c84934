"""Figures of streaming tables for Prometheus.

CHANGE     the Prometheus metrics of `tablestore streams`
"""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.cli.prometheus_text import Family, Record, at, render_families

_METRICS: tuple[Family, ...] = (
    ("up", "1 when the table can follow this source", lambda one: one["trouble"] is None),
    ("lag_snapshots", "Snapshots of the source that the table has not processed", at("lag", "snapshots")),
    ("lag_rows", "Changed rows of them", at("lag", "rows")),
    ("lag_seconds", "For how long the oldest of them has been committed", at("lag", "seconds")),
    ("committed_timestamp_seconds", "When the table was written last", at("committed_seconds")),
)


def render_metrics(records: Sequence[Record]) -> str:
    """One family after the other, tables in the order given."""
    return render_families("tablestore_stream", ("table", "follows"), _METRICS, records)
