"""The branches of a table: folders `branch/branch-NAME` with a schema, those of staged snapshots apart.

CHANGE     what counts as a branch
"""

from __future__ import annotations

from tablestore_engine.errors import NotFound
from tablestore_engine.format.layout import MAIN_BRANCH
from tablestore_engine.store.expiry.expiry_holds import list_branches
from tablestore_engine.store.stage.staging import find_stage_name
from tablestore_engine.store.table_context import TableContext


def list_user_branches(context: TableContext) -> tuple[str, ...]:
    """By name, without staged snapshots and folders that a stopped creation or deletion left."""
    names = sorted(name for name in list_branches(context) if find_stage_name(name) is None)
    return tuple(name for name in names if is_branch(context, name))


def is_branch(context: TableContext, name: str) -> bool:
    """Whether it has the table's first schema, which is made last and deleted first."""
    first = next(iter(context.on_branch(MAIN_BRANCH).schemas.list_ids()), None)
    layout = context.layout.on_branch(name)
    return first is not None and context.fileio.exists_file(layout.schema_path(first))


def check_branch(context: TableContext, name: str) -> None:
    """Raises NotFound TS1346, FixRequest TS1107."""
    if find_stage_name(name) is None and is_branch(context, name):
        return
    there = ", ".join(list_user_branches(context))
    raise NotFound(
        "TS1346",
        f"{context.layout.name} has no branch {name!r}",
        why=f"its branches are {there}" if there else "it has no branches",
        fix=f"correct the name, or create it: tablestore branch create {context.layout.name} {name}",
    )
