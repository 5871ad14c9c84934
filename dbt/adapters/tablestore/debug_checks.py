"""What `dbt debug` tries, each with one line.

Names      run_checks()   warehouse, Java and Spark, brokers; the first problem raises the engine's error
"""

from __future__ import annotations

from tablestore_engine.api import Engine


def run_checks(engine: Engine) -> tuple[str, ...]:
    """Lines for the log, in the order tried."""
    return tuple(engine.check())
