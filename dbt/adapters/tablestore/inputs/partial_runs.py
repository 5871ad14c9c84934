"""Runs that read a part of their inputs on purpose, `--empty` and `--sample`: no place moves over what was not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from dbt.adapters.tablestore.plan.select_sql import quote
from tablestore_engine.api import FixRequest


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
