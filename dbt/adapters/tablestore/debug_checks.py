"""What `dbt debug` tries, each with one line."""

from __future__ import annotations

from tablestore_engine.api import Engine


def run_checks(engine: Engine) -> tuple[str, ...]:
    """Lines for the log, in the order tried."""
    return tuple(engine.check())
