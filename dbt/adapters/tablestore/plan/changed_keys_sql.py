"""incremental_strategy='changed_keys': the model's SQL for the affected keys, as rows to put and rows to delete.

CHANGE     the SQL of a `changed_keys` model
INVARIANT  pure text; the model's SQL is a subquery, into which Spark pushes the keys, below joins and aggregates.
INVARIANT  keys are compared as NULL = NULL. A column without NULL among the affected keys is compared by `=`, with the
           same result: Spark joins by `<=>` more slowly, since it hashes a test for NULL beside each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.tablestore.plan.select_sql import quote

_AFFECTED, _NEW, _OLD = "__ts_affected", "__ts_new", "__ts_old"
_IS_NEW, _IS_AFFECTED = "__ts_is_new", "__ts_is_affected"


@dataclass(frozen=True)
class KeysSelect:
    """`sql`: SELECT of affected keys, each once; empty: there are none. `nullable`: the columns with a NULL among them.
    `rows`: a relation of rows of the result that need no evaluation, with their row kinds, of other keys; or empty.
    """

    sql: str
    nullable: frozenset[str] = frozenset()
    rows: str = ""


def changed_keys_select(
    sql: str,
    keys: KeysSelect,
    *,
    key: Sequence[str],
    primary_key: Sequence[str],
    columns: Sequence[str],
    table: str,
) -> str:
    """`columns`: of the query, which are the table's.

    Gives them with the column of row kinds: 0 put, 3 delete (a row of an affected key that the query gives no more).

    Where `key` is not a part of `primary_key`, a new row may have the primary key of a stored row that is not affected:
    then the query's full result has that primary key twice. The row is given twice, which the write refuses (TS1601).
    """
    rows = f"select {', '.join(map(quote, columns))}, `_ROW_KIND` from {keys.rows}"
    if not keys.sql:
        return rows
    evaluated = _evaluated_select(sql, keys, key=key, primary_key=primary_key, columns=columns, table=table)
    return f"{rows}\nunion all\nselect * from (\n{evaluated}\n)" if keys.rows else evaluated


def _evaluated_select(
    sql: str,
    keys: KeysSelect,
    *,
    key: Sequence[str],
    primary_key: Sequence[str],
    columns: Sequence[str],
    table: str,
) -> str:
    affected = keys.sql
    of_key = " and ".join(
        f"r.{quote(name)} {'<=>' if name in keys.nullable else '='} a.{quote(name)}" for name in key
    )
    on = " and ".join(f"n.{quote(name)} = o.{quote(name)}" for name in primary_key)
    items = ", ".join(
        f"if(n.{_IS_NEW}, n.{quote(name)}, o.{quote(name)}) as {quote(name)}" for name in columns
    )
    stored = f"select r.* from {table} r left semi join {_AFFECTED} a on {of_key}"
    twice = ""
    if not {name.lower() for name in key} <= {name.lower() for name in primary_key}:
        affected = f"select *, true as {_IS_AFFECTED} from (\n{affected}\n)"
        stored = f"select r.*, a.{_IS_AFFECTED} from {table} r left join {_AFFECTED} a on {of_key}"
        is_taken = f"n.{_IS_NEW} and o.{quote(primary_key[0])} is not null and o.{_IS_AFFECTED} is null"
        twice = (
            f"\nlateral view explode(if({is_taken}, array(1, 2), array(1))) __ts_times as __ts_time\n"
            f"where n.{_IS_NEW} or o.{_IS_AFFECTED}"
        )
    return (
        f"with {_AFFECTED} as (\n{affected}\n),\n"
        f"{_NEW} as (select r.*, true as {_IS_NEW} from (\n{sql}\n) r left semi join {_AFFECTED} a on {of_key}),\n"
        f"{_OLD} as ({stored})\n"
        f"select {items}, cast(if(n.{_IS_NEW}, 0, 3) as tinyint) as `_ROW_KIND`\n"
        f"from {_NEW} n full outer join {_OLD} o on {on}{twice}"
    )
