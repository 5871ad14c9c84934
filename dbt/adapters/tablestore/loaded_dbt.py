"""dbt as a program that a resident process loads, and forks for each command of `tablestore dbt`.

INVARIANT  `load` reads nothing of the project and starts no JVM: a command does both.
"""

from __future__ import annotations

import importlib
import sys

from tablestore_engine.spi import load_for_builds

# All that a build imports, of dbt and its adapter; what is missing here is imported by each command again.
_MODULES = (
    "dbt.cli.main",
    "dbt.adapters.tablestore",
    *("dbt.task.build", "dbt.task.list", "dbt.task.retry", "dbt.task.run_operation", "dbt.task.show"),
    *("sqlparse", "daff", "pandas", "polars", "pyspark.sql.classic.dataframe", "pyspark.sql.pandas.map_ops"),
    *("multiprocessing.dummy", "multiprocessing.resource_tracker"),
)


def load() -> None:
    """In the server, once."""
    sys.argv[:] = ["dbt"]  # as which the adapter sets the garbage collector
    for name in _MODULES:
        importlib.import_module(name)
    load_for_builds()


def run() -> None:
    """In the process of a command; ends with SystemExit."""
    importlib.import_module("dbt.cli.main").cli()
