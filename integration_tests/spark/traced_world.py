"""Three small tables in two states each, queries over them, and the oracle of affected keys: the query itself over the
old and the new state. Keys whose rows differ must be among the affected ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableSpec, TableVersion, WriteSpec
from tablestore_engine.spark.traced_answers import AffectedKeys
from tablestore_engine.spark.traced_query import TracedQuery

KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
ORDERS = pa.schema(
    [("id", pa.int64()), ("customer", pa.int64()), ("product", pa.int64()), ("amount", pa.int64())]
)
PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("boss", pa.int64())])
PRODUCTS = pa.schema([("id", pa.int64()), ("name", pa.string())])
TABLES = ("demo.orders", "demo.people", "demo.products")
S, P, R = TABLES
CHANGED = (  # which tables change together
    pytest.param(TABLES, id="all"),
    pytest.param((S,), id="orders", marks=pytest.mark.nightly),
    pytest.param((P,), id="people", marks=pytest.mark.nightly),
    pytest.param((R,), id="products", marks=pytest.mark.nightly),
)


def rows(schema: pa.Schema, *values: tuple[object, ...]) -> pa.Table:
    """A table of these rows."""
    return pa.Table.from_pylist([dict(zip(schema.names, one, strict=True)) for one in values], schema)


@contextmanager
def traced_world(folder: Path) -> Iterator[Engine]:
    """Three tables in two states each: rows changed, moved to another key, deleted and added; NULLs; dangling ids."""
    settings = SparkSettings("local[2]", {"spark.sql.shuffle.partitions": "1"})
    with Engine(str(folder), spark=settings) as engine:
        orders = [(n, n % 7 or None, n % 4, n * 3 % 10) for n in range(1, 31)]
        engine.write(S, rows(ORDERS, *orders), KEYED)
        engine.write(P, rows(PEOPLE, *((n, f"n{n}", n // 2 or None) for n in range(1, 9))), KEYED)
        engine.write(R, rows(PRODUCTS, (0, "zero"), (1, "one"), (2, "two")), KEYED)
        engine.create_view(
            "demo.adults", "select id, upper(name) as name, boss from demo.people where id > 2"
        )
        moved = [(3, 5, 3, 9), (4, None, 0, 2), (40, 2, 1, 7), (9, 2, 1, 7)]
        engine.write(S, rows(ORDERS, *moved), KEYED)
        engine.sql("delete from demo.orders where id in (7, 12)")
        engine.write(P, rows(PEOPLE, (2, "renamed", 1), (6, "n6", None), (20, "new", 2)), KEYED)
        engine.sql("delete from demo.people where id = 5")
        engine.write(R, rows(PRODUCTS, (2, "TWO"), (3, "three")), KEYED)
        yield engine


def trace(
    engine: Engine, sql: str, key: tuple[str, ...], tables: tuple[str, ...]
) -> tuple[AffectedKeys, set[object]]:
    """What the query says, and the keys of its view."""
    changes, pins = {}, {}
    for name in TABLES:
        newest = engine.table(name).latest_snapshot_id()
        until = newest if name in tables else 1
        pins[name] = TableVersion(snapshot=until)
        if name in tables:
            changes[name] = TableVersion(changes=ChangesBetween(1, newest))
    with engine.changed_keys.trace(sql, versions=pins) as traced:
        general = traced.general_clause(key)
        if general is not None:
            return AffectedKeys(None, 0, general), set()
        found = traced.affected_keys(key, changes, {})
        return found, collected_keys(engine, traced, found)


def collected_keys(engine: Engine, traced: TracedQuery, found: AffectedKeys) -> set[object]:
    """As Spark has them."""
    if found.rows is None:
        return set()
    traced.viewed(found, view := engine.changed_keys.new_view())
    keys = {tuple(row) for row in engine.spark.table(view).collect()}
    engine.changed_keys.drop_view(view)
    return set(keys)


def differing(engine: Engine, sql: str, key: tuple[str, ...], tables: tuple[str, ...]) -> set[object]:
    """Keys whose rows are others behind the changes of these tables."""
    states = []
    for is_new in (False, True):
        pins = {
            name: TableVersion(
                snapshot=engine.table(name).latest_snapshot_id() if is_new and name in tables else 1
            )
            for name in TABLES
        }
        found = engine.query(sql, versions=pins)
        numbers = [found.columns.index(name) for name in key]
        states.append(Counter((tuple(row[n] for n in numbers), tuple(row)) for row in found.collect()))
    before, after = states
    return {one for one, _ in (before - after) + (after - before)}
