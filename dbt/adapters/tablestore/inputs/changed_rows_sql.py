"""What rows with `_row_kind` mean in a model made from changes: they are applied, not stored.

CHANGE     the rows and row kinds of `changes()`
Rule       `_row_kind` and `_snapshot_id` of the query are no columns of the table. Of each key the newest snapshot
           counts; in one snapshot a row that is put (+I, +U) before one that is taken away (-U, -D): the row of a key
           that moved to another key goes, one that stays is written.
INVARIANT  numbers of snapshots are those of one table: between rows of two inputs they say nothing (TS1836).
INVARIANT  a query without `_row_kind` gives rows like any other; one with it and without `_snapshot_id` has no order
           (TS1836); a table without a key takes +I only (TS1312).
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.tablestore.inputs.query_errors import FixModelQuery
from dbt.adapters.tablestore.plan.build_plan import Columns
from dbt.adapters.tablestore.plan.select_sql import quote
from tablestore_engine.spi import changed_tables

ROW_KIND, SNAPSHOT_ID = "_row_kind", "_snapshot_id"
_KIND_COLUMN = "_ROW_KIND"  # as writes take it: 0 is +I, 2 is +U, 3 is -D (format/row_kind.py)


def applied_select(
    model: str, sql: str, columns: Columns, key: Sequence[str], retracted: str | None = None
) -> tuple[str, Columns]:
    """The query to write, and the columns of the table. `retracted`: SQL of the keys that the stream's retractions
    delete, with `_snapshot_id`; None: the query's own rows of kind -U and -D. Raises FixRequest TS1836.
    """
    names = {name.lower() for name, _ in columns}
    if ROW_KIND not in names:
        return sql, columns
    if SNAPSHOT_ID not in names:
        raise FixModelQuery(
            "TS1836",
            f"model {model} gives rows with {ROW_KIND} and without {SNAPSHOT_ID}",
            why="a key may have changed several times, and only the snapshot says which row is the newest",
            fix=f"select {SNAPSHOT_ID} as well; neither is stored",
        )
    check_order(model, sql, key)
    kept = tuple(one for one in columns if one[0].lower() not in (ROW_KIND, SNAPSHOT_ID))
    items = ", ".join(quote(name) for name, _ in kept)
    is_put = f"{ROW_KIND} in ('+I', '+U')"
    if not key:
        kinds = f"cast(case {ROW_KIND} when '+I' then 0 when '+U' then 2 else 3 end as tinyint)"
        return f"select {items}, {kinds} as {_KIND_COLUMN} from (\n{sql}\n)", kept
    if retracted is not None:
        sql = _with_retractions(sql, kept, key, retracted)
    order = f"{SNAPSHOT_ID} desc, if({is_put}, 1, 0) desc"
    parts = ", ".join(quote(name) for name in key)
    ranked = (
        f"select *, rank() over (partition by {parts} order by {order}) as __tablestore_rank from (\n{sql}\n)"
    )
    puts = f"cast(if({is_put}, 0, 3) as tinyint)"
    is_key = " and ".join(f"{quote(name)} is not null" for name in key)  # what has none was never put
    newest = f"__tablestore_rank = 1 and ({is_put} or ({is_key}))"
    return f"select {items}, {puts} as {_KIND_COLUMN} from (\n{ranked}\n) where {newest}", kept


def _with_retractions(sql: str, columns: Columns, key: Sequence[str], retracted: str) -> str:
    """Upserts of the query, and one delete of each retracted key and snapshot, whose other columns are NULL."""
    keys = {name.lower() for name in key}
    items = ", ".join(quote(name) for name, _ in columns)
    empty = ", ".join(
        quote(name) if name.lower() in keys else f"null as {quote(name)}" for name, _ in columns
    )
    return (
        f"select {items}, {ROW_KIND}, {SNAPSHOT_ID} from (\n{sql}\n) where {ROW_KIND} in ('+I', '+U')\nunion all\n"
        f"select {empty}, '-D' as {ROW_KIND}, {SNAPSHOT_ID} from (select distinct * from (\n{retracted}\n))"
    )


def check_order(model: str, sql: str, key: Sequence[str]) -> None:
    """Of a query that gives kinds: rows of a key are put in their order. Raises FixRequest TS1836."""
    inputs = changed_tables(sql)
    if not key or len(inputs) < 2:
        return
    raise FixModelQuery(
        "TS1836",
        f"model {model} gives rows with {ROW_KIND} of more than one input: {', '.join(inputs)}",
        why=f"{SNAPSHOT_ID} counts the snapshots of one table, so for a key in both inputs it is unknown which "
        "change is the newest",
        fix="make a model of each input; or give no _row_kind, so that rows are added; "
        "or use incremental_strategy='changed_keys'",
    )
