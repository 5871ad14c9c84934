"""The branch that a dbt run builds into: from the variable tablestore_branch or the profile, and what the log says.

CHANGE     the branch of a dbt run
Steps      a node that builds a table begins → its table's branch is made from main, before its SQL is compiled → it is
           built there · its query has been read → the log says which of its tables are main's
INVARIANT  the engine of such a run never writes main (tablestore_engine/catalog/target_branch.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from tablestore_engine.api import Engine, FixRequest
from tablestore_engine.spi import ReadLog

VARIABLE = "tablestore_branch"
_BUILDS = ("build", "run", "seed", "snapshot", "retry")
_NODES = ("model", "seed", "snapshot")
_WITHOUT_TABLE = ("view", "ephemeral", "function")


@as_dbt_errors()
def read_branch(config: Any) -> str | None:  # noqa: ANN401 - dbt's untyped config
    """Of the run; None: main. Raises FixRequest TS1223."""
    variables = getattr(config, "cli_vars", None) or {}
    found = variables.get(VARIABLE, config.credentials.branch)
    if found in (None, "main"):
        return None
    if not isinstance(found, str) or not found.strip() or found.isdigit():
        raise FixRequest(
            "TS1223",
            f"{found!r} is no name of a branch",
            why=f"the variable {VARIABLE}, or branch: of the profile, names the branch that the run builds into",
            fix=f"write a name that is no number, as in --vars '{{{VARIABLE}: dev}}'",
        )
    return found


def builds_tables(node: Any, config: Any) -> bool:  # noqa: ANN401 - dbt's untyped node and config
    """Whether this command makes a table of the node."""
    command = getattr(getattr(config, "args", None), "which", None)
    kind = getattr(node, "resource_type", None)
    if command not in _BUILDS or kind not in _NODES:
        return False
    return str(node.config.get("materialized")) not in _WITHOUT_TABLE


def begin_branch(engine: Engine, node: Any, say: Callable[[str], None]) -> None:  # noqa: ANN401
    """Before the node is compiled: what it reads of its own table is the branch's."""
    if engine.branch is None:
        return
    table = f"{node.schema}.{node.alias}"
    made = engine.make_branch(table)
    if made is not None:
        start = "empty" if made.snapshot is None else f"from snapshot {made.snapshot} of main"
        say(f"{table}: branch {made.name} is made, {start}")


def tell_reads(engine: Engine, table: str, reads: ReadLog, say: Callable[[str], None]) -> None:
    """Which tables of the query lack the branch and are main's."""
    if engine.branch is None:
        return
    names = sorted({read.table for read in reads.reads()})
    main = [name for name in names if engine.exists(name) and not engine.is_on_branch(name)]
    if main:
        say(f"{table}: reads {', '.join(main)} from main, which have no branch {engine.branch}")
