"""incremental_strategy='changed_keys': the model's plain SQL evaluated for the keys that its inputs affect.

Names      AffectedInput      one input: its changes as SQL reads them, the expressions that lead to the key
           affected_select    all keys that any input affects, each once
           changed_keys_select   rows to put, and stored rows of affected keys that the model no longer gives
INVARIANT  pure text; the model's SQL is a subquery, into which Spark pushes the keys, below joins and aggregates.
INVARIANT  keys are compared as NULL = NULL, both the row before a change and the row behind it affect theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.tablestore.plan.select_sql import quote

_AFFECTED, _NEW, _OLD = "__ts_affected", "__ts_new", "__ts_old"
_IS_NEW = "__ts_is_new"


@dataclass(frozen=True)
class AffectedInput:
    """`rendered`: a relation with the rows before and behind each change."""

    rendered: str
    expressions: tuple[str, ...]


def affected_select(inputs: Sequence[AffectedInput], key: Sequence[str]) -> str:
    """Columns of the key, by their names."""
    parts = []
    for one in inputs:
        items = ", ".join(
            f"({expression}) as {quote(name)}" for name, expression in zip(key, one.expressions, strict=True)
        )
        parts.append(f"select {items} from {one.rendered}")
    return "select distinct * from (\n" + "\nunion all\n".join(parts) + "\n)"


def changed_keys_select(
    sql: str,
    affected: str,
    *,
    key: Sequence[str],
    primary_key: Sequence[str],
    columns: Sequence[str],
    table: str,
) -> str:
    """`columns`: of the query, which are the table's; with the column of kinds: 0 put, 3 take away."""
    of_key = " and ".join(f"r.{quote(name)} <=> a.{quote(name)}" for name in key)
    on = " and ".join(f"n.{quote(name)} = o.{quote(name)}" for name in primary_key)
    items = ", ".join(
        f"if(n.{_IS_NEW}, n.{quote(name)}, o.{quote(name)}) as {quote(name)}" for name in columns
    )
    return (
        f"with {_AFFECTED} as (\n{affected}\n),\n"
        f"{_NEW} as (select r.*, true as {_IS_NEW} from (\n{sql}\n) r left semi join {_AFFECTED} a on {of_key}),\n"
        f"{_OLD} as (select r.* from {table} r left semi join {_AFFECTED} a on {of_key})\n"
        f"select {items}, cast(if(n.{_IS_NEW}, 0, 3) as tinyint) as `_ROW_KIND`\n"
        f"from {_NEW} n full outer join {_OLD} o on {on}"
    )
