"""Runs that read a part of their inputs on purpose, `--empty` and `--sample`: no place moves over what was not read.

INVARIANT  --empty removes no rows of an incremental model or a snapshot: that a query has no rows says nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dbt.adapters.tablestore.messages import WarnedOnce
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from dbt.adapters.tablestore.plan.select_sql import quote
from dbt.adapters.tablestore.statements import split_statements
from tablestore_engine.api import FixRequest, WriteMode

_KEPT = {
    WriteMode.REPLACE: "no window or key of it was replaced",
    WriteMode.OVERWRITE_PARTITIONS: "no partition of it was replaced",
}


def is_empty(config: Any) -> bool:  # noqa: ANN401 - dbt's untyped config
    """Whether this command has --empty."""
    return bool(getattr(getattr(config, "args", None), "EMPTY", False))


def refuse_sample(config: Any, node: str) -> None:  # noqa: ANN401 - dbt's untyped config
    """Raises FixRequest TS1859."""
    if getattr(getattr(config, "args", None), "sample", None) is None:
        return
    raise FixRequest(
        "TS1859",
        f"model {node.rsplit('.', maxsplit=1)[-1]} cannot be built of a sample",
        why="it remembers how far it has read its inputs, and would take rows outside the sample for read",
        fix="leave it out of runs with --sample, or give that target a schema and sources of its own",
    )


def no_keys(table: str, key: Sequence[str]) -> KeysSelect:
    """With the types of the table's columns."""
    return KeysSelect(f"select {', '.join(map(quote, key))} from {table} where false")


class EmptyRuns:
    """Plans of one invocation with --empty."""

    def __init__(self) -> None:
        self._warned = WarnedOnce()

    def keep_rows(self, plan: BuildPlan, node: str, *, is_keyed: bool) -> BuildPlan:
        """The plan; one that would replace stored rows gets the same query without its rows, and removes none."""
        if plan.action is not Action.INCREMENT or plan.mode not in _KEPT:
            return plan
        text = f"model {node.rsplit('.', maxsplit=1)[-1]}: --empty keeps all rows of the table; {_KEPT[plan.mode]}"
        self._warned.warn(node, text)
        *heads, query = split_statements(plan.select)
        select = ";\n".join([*heads, f"select * from (\n{query}\n) where false"])
        mode = WriteMode.UPSERT if is_keyed else WriteMode.APPEND
        return replace(plan, select=select, mode=mode, replaces=None)
