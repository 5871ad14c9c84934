"""Spark settings for many short queries over a few rows: plans are interpreted and not planned again while they run.

WHY      a test's query compiles for longer than it runs: 20 to 30 % of the processor time of a suite went into it. Rows
         are the same; test_product_settings compares them with the settings of users.
INVARIANT  the settings reach each JVM that a test starts, in whatever process, as Java properties: Spark takes them
           where neither the engine nor the user has said otherwise. conftest.py decides which suites have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
JAVA_OPTIONS = " ".join(f"-D{name}={value}" for name, value in INTERPRETED.items())


@contextmanager
def as_users_run(session: SparkSession) -> Iterator[None]:
    """Generated code and adaptive plans, as in a session of users."""
    before = {name: session.conf.get(name) for name in INTERPRETED}
    for name in INTERPRETED:
        session.conf.unset(name)
    try:
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, str(value))
