"""The branch on which a run works: each table on that branch where it has it, else main, which is only read.

CHANGE     which tables a run on a branch reads from main
INVARIANT  main is never written by a run on a branch: a handle on it refuses every claim (TableGuard, TS1221), and what
           is no table (views, functions, names) has no branches, so that changing it is refused (TS1222).
CRASH      between making a branch and the first commit on it: the branch equals main, and the next run finds it.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from dataclasses import dataclass, replace

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.store.table_store import TableStore


@dataclass(frozen=True)
class MadeBranch:
    """`snapshot`: of main, with which it begins; None: it begins empty."""

    name: str
    snapshot: int | None


def has_branch(main: TableStore, name: str) -> bool:
    from tablestore_engine.store.branches.branch_list import is_branch

    context = main.context
    return context.guard.identity is not None and is_branch(context, name)


def make_branch(main: TableStore, name: str) -> MadeBranch | None:
    """From main's newest snapshot; None when it is there, or there is no table. Raises as create_branch."""
    from tablestore_engine.store.branches.branch_changes import create_branch

    if main.identity is None or has_branch(main, name):
        return None
    newest = main.snapshots.find_latest_id()
    try:
        create_branch(main.context, name, snapshot=newest)
    except FixRequest:
        if not has_branch(main, name):  # else another process made it meanwhile
            raise
        return None
    return MadeBranch(name, newest)


def drop_empty_branch(main: TableStore, name: str) -> None:
    """Of a table whose first rows were refused: with the branch goes what keeps the table from being removed."""
    from tablestore_engine.store.branches.branch_changes import delete_branch

    if has_branch(main, name) and main.on_branch(name).snapshots.find_latest_id() is None:
        delete_branch(main.context, name)


def on_branch(main: TableStore, name: str) -> TableStore:
    """The table on the branch, else main as a run on a branch sees it: to read, not to write."""
    if has_branch(main, name):
        return main.on_branch(name)
    return replace(main, reads_for=name)


def refuse_on(branch: str | None, what: str) -> None:
    """Does nothing without a branch. Raises Unsupported TS1222."""
    if branch is not None:
        raise Unsupported(
            "TS1222",
            f"{what} is not supported on branch {branch}",
            why="rows, columns and options of tables are on a branch; names, views, functions and logs are not",
            fix="do it without the branch",
        )
