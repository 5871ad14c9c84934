"""Random filters over the values of a table, as texts that pyiceberg and DuckDB both understand."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import as_it_is, assert_same, emptied
from tablestore_engine.store.table_store import TableStore

FILTERS = 12
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def assert_pruned_alike(
    peer: ProcessPeer, location: Path, snapshot: int, chance: random.Random, *, filters: int = FILTERS
) -> None:
    """Each filter by the peer over the table gives what the peer's filter gives over the rows as we read them."""
    ours = Ours()
    rows, plain, columns = ours.read_arrow(location, snapshot), as_it_is, None
    if peer.name.startswith("pyiceberg"):
        plain, columns = emptied, _pyiceberg_columns(ours.store(location), snapshot, rows)
    for _ in range(filters if rows.num_rows else 0):
        text = make_filter(rows, chance, columns)
        expected = peer.where(location, text, snapshot, rows)
        where = f"{peer.name}, snapshot {snapshot}, {text}"
        assert_same(plain(expected), plain(peer.where(location, text, snapshot)), where)


def _pyiceberg_columns(store: TableStore, snapshot: int, rows: pa.Table) -> list[str]:
    """pyiceberg 0.12 finds columns of a filter in the newest schema, and fails at a NULL partition."""
    then = store.context.schemas.get(store.snapshots.get(snapshot).schema_id)
    now = {(one.id, one.name) for one in store.schema.fields}
    return [
        one.name
        for one in then.fields
        if (one.id, one.name) in now and not (one.name in then.partition_keys and rows[one.name].null_count)
    ]


def make_filter(rows: pa.Table, chance: random.Random, columns: Sequence[str] | None = None) -> str:
    """One or two comparisons of some columns, joined; literals are values of the rows, or near them."""
    rows = rows if columns is None else rows.select(columns)
    parts = [_comparison(rows, chance) for _ in range(chance.choice((1, 1, 2)))]
    return f" {chance.choice(('and', 'or'))} ".join(parts)


def _comparison(rows: pa.Table, chance: random.Random) -> str:
    while True:
        column_name = chance.choice(rows.column_names)
        column, name = rows[column_name], f'"{column_name}"'
        if pa.types.is_nested(column.type):
            continue  # pyiceberg 0.12 refuses NULL of a list
        if chance.random() < 0.15:
            return f"{name} is {chance.choice(('', 'not '))}null"
        if not len(column):
            continue
        text = _literal(column[chance.randrange(len(column))].as_py(), chance)
        if text is not None:
            operators = _OPERATORS[:2] if pa.types.is_boolean(column.type) else _OPERATORS
            return f"{name} {chance.choice(operators)} {text}"


def _literal(value: object, chance: random.Random) -> str | None:
    """None for what one of the two parsers does not read."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        moved = value + chance.choice((-1, 0, 0, 1))
        return str(moved if -(2**31) <= moved < 2**31 else value)
    if isinstance(value, float):
        is_plain = math.isfinite(value) and 1e-3 < abs(value) < 1e6 and value * 64 == int(value * 64)
        return f"{value:.6f}" if is_plain else None
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        return f"'{value.isoformat(timespec='microseconds')}'"
    if isinstance(value, dt.date):
        return f"'{value.isoformat()}'"
    if isinstance(value, str):
        cut = value[: chance.choice((len(value), 1, 3))]
        return f"'{cut}'" if cut.isascii() and not {"'", '"', "\n", "%"} & set(cut) else None
    return None
