"""By which columns the rows of an append table are clustered, and along which curve.

CHANGE     which tables are clustered, and by what (options clustering.columns, clustering.strategy,
           clustering.incremental)
INVARIANT  the order changes no row and no answer: only how many files and row groups a filter can leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore_engine.error_values import sql_literal
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import ATOMIC_ROOTS, OPAQUE_ROOTS
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.options import OptionSet

STRATEGIES = ("order", "zorder", "hilbert")
COLUMNS_MAX = 16
_ORDERABLE = frozenset(ATOMIC_ROOTS) - frozenset(OPAQUE_ROOTS)


@dataclass(frozen=True)
class ClusterOrder:
    """`strategy`: one of STRATEGIES; `columns`: of the table, each once."""

    strategy: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.strategy}:{','.join(self.columns)}"


def parse_order(text: str) -> ClusterOrder:
    """``zorder:a,b``; without a strategy that of choose_strategy. Raises FixRequest TS1213."""
    strategy, _, names = text.rpartition(":")
    columns = tuple(name.strip() for name in names.split(",") if name.strip())
    return make_order(strategy.strip().lower() or "auto", columns)


def make_order(strategy: str, columns: Sequence[str]) -> ClusterOrder:
    """`auto` is order for one column, zorder for up to four, hilbert for more, as in Paimon. Raises TS1213."""
    chosen = strategy
    if strategy == "auto":
        chosen = "order" if len(columns) == 1 else "zorder" if len(columns) < 5 else "hilbert"
    lower = [name.lower() for name in columns]
    if chosen in STRATEGIES and 0 < len(columns) <= COLUMNS_MAX and len(set(lower)) == len(lower):
        return ClusterOrder(chosen, tuple(columns))
    raise FixRequest(
        "TS1213",
        f"rows cannot be clustered by {strategy}:{','.join(columns)}",
        why=f"expected one of {', '.join(STRATEGIES)}, auto, and 1 to {COLUMNS_MAX} columns, each once",
        fix="write zorder:a,b, or only columns: a,b",
    )


def check_order(order: ClusterOrder, schema: TableSchema) -> ClusterOrder:
    """With the names of the table's columns. Raises FixRequest TS1214 for columns that are not there or have no order,
    and for tables with a primary key or fixed buckets, whose rows have an order already.
    """
    if schema.is_keyed or schema.bucket_count > 0:
        raise FixRequest(
            "TS1214",
            "the table cannot be clustered",
            why="rows lie by primary key"
            if schema.is_keyed
            else "rows of a bucket keep the order of the appends",
            fix="cluster tables without a primary key and with bucket = -1",
        )
    known = {field.name.lower(): field for field in schema.fields}
    found = []
    for name in order.columns:
        column = known.get(name.lower())
        if column is None or column.type.root not in _ORDERABLE:
            raise FixRequest(
                "TS1214",
                f"rows cannot be clustered by {sql_literal(name)}",
                why="the table has no such column" if column is None else f"{column.type.root} has no order",
                fix="name columns with numbers, texts, bytes, dates, times or booleans",
            )
        found.append(column.name)
    return ClusterOrder(order.strategy, tuple(found))


@dataclass(frozen=True)
class ClusterRule:
    """What the options of a table say. `is_incremental`: commits sort what is due; else only full compactions do."""

    order: ClusterOrder
    is_incremental: bool


def find_rule(schema: TableSchema) -> ClusterRule | None:
    """None: rows lie as they come, also where the options of another engine's table do not fit it."""
    options = OptionSet(schema.options)
    columns = options.columns("clustering.columns")
    if not columns:
        return None
    try:
        order = check_order(make_order(options.text("clustering.strategy"), columns), schema)
    except FixRequest:
        return None
    return ClusterRule(order, options.boolean("clustering.incremental"))


def check_clustering(schema: TableSchema) -> None:
    """Raises FixRequest TS1213, TS1214 for options that would have no effect on the table."""
    options = OptionSet(schema.options)
    columns = options.columns("clustering.columns")
    if columns or options.boolean("clustering.incremental"):
        check_order(make_order(options.text("clustering.strategy"), columns), schema)
