"""The JVM of a `dbt` command begins before the imports of adapter and engine, which take as long as its start.

CHANGE     when a `dbt` command starts its JVM ahead
INVARIANT  only in a process that is a `dbt` command, and only for commands that run queries of nodes: `dbt test` often
           needs no Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dbt.adapters.tablestore.garbage_collection import is_dbt_command
from tablestore_engine.runtime.jvm_ahead import begin

QUERYING = frozenset({"build", "run", "show", "snapshot"})
_OTHERS = "clean clone compile debug deps docs init list ls parse retry run-operation seed source test"
_COMMANDS = QUERYING.union(_OTHERS.split())


def find_command(arguments: Sequence[str]) -> str | None:
    """The dbt command: the first word that is a command's name. The value of an option may be mistaken for it."""
    return next((word for word in arguments[1:] if word in _COMMANDS), None)


def start_early(arguments: Sequence[str]) -> None:
    """Start the JVM ahead, if jvm_ahead knows how the folder's last session was started."""
    if is_dbt_command(arguments) and find_command(arguments) in QUERYING:
        begin(Path.cwd())


start_early(sys.argv)  # at import: before those that follow
