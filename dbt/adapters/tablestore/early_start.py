"""The JVM of a `dbt` command begins before the imports of adapter and engine, which take as long as its start.

INVARIANT  only in a process that is a `dbt` command, and only for commands that run queries of nodes: `dbt test` often
           needs no Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dbt.flags import get_flags

from dbt.adapters.tablestore.garbage_collection import is_dbt_command
from tablestore_engine.runtime.jvm_ahead import begin

QUERYING = frozenset({"build", "run", "show", "snapshot"})


def start_early(arguments: Sequence[str], command: str | None) -> None:
    """Nothing where the folder's last session is not known, see jvm_ahead."""
    if is_dbt_command(arguments) and command in QUERYING:
        begin(Path.cwd())


# at import: before those that follow; dbt's flags have no types
start_early(sys.argv, getattr(get_flags(), "WHICH", None))  # type: ignore[no-untyped-call]
