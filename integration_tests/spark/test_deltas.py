"""Deltas on Spark: the rows that follow from signed rows, stored rows and the keys to evaluate make the new result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from integration_tests.spark.traced_world import CHANGED, TABLES, P, R, S, traced_world
from tablestore_engine.api import ChangesBetween, Engine, TableSpec, TableVersion, WriteSpec
from tablestore_engine.spark.traced_answers import Deltas
from tests.doses import cases


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One session for all queries."""
    with traced_world(tmp_path_factory.mktemp("deltas")) as engine:
        yield engine


def states(engine: Engine, tables: tuple[str, ...], *, is_new: bool) -> dict[str, TableVersion]:
    """The first snapshot of each table, or the newest one of those that changed."""
    newest = {name: engine.table(name).latest_snapshot_id() for name in TABLES}
    return {name: TableVersion(snapshot=newest[name] if is_new and name in tables else 1) for name in TABLES}


def apply_deltas(
    engine: Engine, sql: str, key: tuple[str, ...], tables: tuple[str, ...]
) -> tuple[Deltas, Counter, Counter]:
    """(deltas, rows of the old result with the deltas, rows of the new result)."""
    name = "demo.result"
    engine.sql(f"drop table if exists {name}")
    spec = WriteSpec(table=TableSpec(primary_key=key, options={"bucket": "1"}))
    engine.write(name, sql, spec, versions=states(engine, tables, is_new=False))
    changes = {
        one: TableVersion(changes=ChangesBetween(1, engine.table(one).latest_snapshot_id())) for one in tables
    }
    pins = states(engine, tables, is_new=True)
    views = (engine.changed_keys.new_view(), engine.changed_keys.new_view())
    with engine.changed_keys.trace(sql, versions=pins) as traced:
        assert traced.general_clause(key) is None
        found = traced.deltas(key, changes, engine.changed_keys.stored_rows(engine.table(name)), views)
    if found.clause:
        return found, Counter(), Counter()
    new = engine.query(sql, versions=pins)
    numbers = [new.columns.index(one) for one in key]
    rows = {
        tuple(row[at] for at in numbers): tuple(row)
        for row in engine.query(f"select * from {name}").collect()
    }
    known = [] if found.table is None else list(zip(*found.table.to_pydict().values(), strict=True))
    for *row, kind in known if found.view is None else engine.spark.table(found.view).collect():
        found_key = tuple(row[at] for at in numbers)
        if kind:
            del rows[found_key]
        else:
            rows[found_key] = tuple(row)
    everything = Counter(tuple(row) for row in new.collect())
    if found.again.view is not None:
        for one in engine.spark.table(found.again.view).collect():
            rows.pop(tuple(one), None)
            rows |= {tuple(one): row for row in everything if tuple(row[at] for at in numbers) == tuple(one)}
    return found, Counter(rows.values()), everything


FOLLOWED = {
    "rows": (f"select id, customer, amount * 2 as a from {S} where amount > 2", "id"),
    "star join": (
        f"select o.id, c.name, r.name as x from {S} o join {P} c on o.customer = c.id join {R} r on r.id = o.product",
        "id",
    ),
    "self join": (f"select e.id, b.name from {P} e join {P} b on e.boss = b.id", "id"),
    "union all": (
        f"select 'p' as kind, id, name from {P} union all select 'r', id, name from {R} where id > 0",
        "kind,id",
    ),
    "union all of one table": (
        f"select 1 as part, id, name from {P} where id > 3 union all select 2, id, name from {P}",
        "part,id",
    ),
    "count and sum": (
        f"select coalesce(customer, -1) as customer, count(*) n, sum(amount) s from {S} group by 1",
        "customer",
    ),
    "star join with count and sum": (
        (
            f"select r.name, count(*) n, sum(o.amount) s, max(c.name) m from {S} o join {P} c on o.customer = c.id "
            f"join {R} r on r.id = o.product group by r.name"
        ),
        "name",
    ),
    "self join of groups": (
        f"select b.id, count(*) n, min(e.id) first from {P} e join {P} b on e.boss = b.id group by b.id",
        "id",
    ),
    "total": (
        f"select 1 as one, count(*) n, sum(amount) s, coalesce(sum(id), 0) z, max(amount) m, min(customer) c from {S}",
        "one",
    ),
    "total of a join": (
        f"select 1 as one, count(*) n, sum(amount) s, count(c.name) z from {S} o join {P} c on o.customer = c.id",
        "one",
    ),
    "distinct": (f"select distinct product, amount from {S} where amount > 0", "product,amount"),
    "filter": (
        (
            f"select product, count(*) filter (where amount > 4) n, sum(amount) filter (where id % 2 = 0) s, "
            f"bool_or(amount > 8) b, count_if(amount > 3) c from {S} group by product"
        ),
        "product",
    ),
    "no count": (f"select product, sum(amount) s, max(id) m from {S} group by product", "product"),
    "explode": (f"select id, x from {S} lateral view explode(array(1, amount + 100)) as x", "id,x"),
    "semi join, the left side": (
        f"select id, name from {P} c where exists (select 1 from demo.fixed f where f.id = c.id)",
        "id",
    ),
}


@pytest.mark.parametrize("tables", CHANGED)
@pytest.mark.parametrize("name", cases(sorted(FOLLOWED), 8))
def test_deltas_make_the_new_result(engine: Engine, name: str, tables: tuple[str, ...]) -> None:
    """Whatever of the inputs changed."""
    sql, key = FOLLOWED[name]
    sql = sql.replace("demo.fixed", "(select id from values (1), (2), (5), (20) as f(id))")
    found, stored, expected = apply_deltas(engine, sql, tuple(key.split(",")), tables)
    assert not found.clause
    print(name, found)
    assert stored == expected
