"""Deltas on Spark: the rows that follow from signed rows, stored rows and the keys to evaluate make the new result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from integration_tests.spark.delta_queries import BY_VALUES, EVALUATED, FOLLOWED, NESTED, OF_STATE
from integration_tests.spark.traced_world import CHANGED, TABLES, P, R, S, traced_world
from tablestore_engine.api import ChangesBetween, Engine, TableSpec, TableVersion, WriteSpec
from tablestore_engine.format.group_state_file import GroupState
from tablestore_engine.spark.delta_query import DeltaQuery
from tablestore_engine.spark.evaluated_keys import KeyedQuery, RowsOfKeys
from tablestore_engine.spark.merged_rows import FindRows, MergedRows
from tablestore_engine.spark.traced_answers import Before, Deltas
from tests.doses import cases


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One session for all queries."""
    with traced_world(tmp_path_factory.mktemp("deltas")) as engine:
        yield engine


LOOKED_UP = list[frozenset[str] | None]()


@pytest.fixture(autouse=True)
def both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver finds is what Spark finds: each test compares both."""
    inner = DeltaQuery.found
    LOOKED_UP.clear()

    def found(self: DeltaQuery, changes: Any, local: Any, collect: Any, limit: int) -> pa.Table:
        by_spark, made = (inner(self, changes, one, collect, limit) for one in (None, local))
        by_spark = by_spark.filter(pc.is_valid(by_spark.column("n")))  # of a total over nothing
        assert {one.name: one.type for one in made.schema} == {one.name: one.type for one in by_spark.schema}
        rows = [
            Counter(map(str, one.select(sorted(one.column_names)).to_pylist()))
            for one in (made.filter(pc.is_valid(made.column("n"))), by_spark)
        ]
        assert rows[0] == rows[1]
        LOOKED_UP.append(self.looked_up(local.occurrences))
        return made

    monkeypatch.setattr(DeltaQuery, "found", found)


READ_BY_KEY = list[bool]()


@pytest.fixture(autouse=True)
def both_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query over rows of keys that the driver read gives the rows that Spark's scan gives."""
    inner = KeyedQuery.evaluate
    READ_BY_KEY.clear()

    def evaluate(self: KeyedQuery, keys: pa.Table, find_rows: FindRows) -> MergedRows | None:
        few = list[bool]()

        def over_rows_of(asked: pa.Table) -> RowsOfKeys | None:
            rows = self.over_rows_of(asked)
            few.append(rows is not None)
            return rows

        made = inner(replace(self, over_rows_of=over_rows_of), keys, find_rows)
        by_spark = inner(replace(self, over_rows_of=lambda _: None), keys, find_rows)
        assert (made is None) == (by_spark is None)
        if made is not None and by_spark is not None:
            rows = [Counter(map(str, one.rows.to_pylist())) for one in (made, by_spark)]
            assert made.rows.schema == by_spark.rows.schema
            assert rows[0] == rows[1]
        READ_BY_KEY.extend(few)
        return made

    monkeypatch.setattr(KeyedQuery, "evaluate", evaluate)


def states(engine: Engine, tables: tuple[str, ...], *, is_new: bool) -> dict[str, TableVersion]:
    """The first snapshot of each table, or the newest one of those that changed."""
    newest = {name: engine.table(name).latest_snapshot_id() for name in TABLES}
    return {name: TableVersion(snapshot=newest[name] if is_new and name in tables else 1) for name in TABLES}


def apply_deltas(
    engine: Engine, sql: str, key: tuple[str, ...], tables: tuple[str, ...]
) -> tuple[Deltas, Counter, Counter]:
    """(deltas, rows of the old result with the deltas, rows of the new result). State is that of the old tables, and
    is compared with that of the new ones.
    """
    old = states(engine, tables, is_new=False)
    find = store_result(engine, sql, key, old)
    state = old_state(engine, sql, key, old)
    changes, pins = changed_ranges(engine, tables), states(engine, tables, is_new=True)
    views = (engine.changed_keys.new_view(), engine.changed_keys.new_view())
    with engine.changed_keys.trace(sql, versions=pins) as traced:
        assert traced.general_clause(key) is None
        found = traced.plan_deltas(key, changes, has_state=state is not None).follow(
            Before(find, views, state)
        )
        if found.state is not None:
            fresh, _ = traced.state(key).read_all(engine.changed_keys.new_view())
            assert Counter(map(str, found.state.whole().to_pylist())) == Counter(
                map(str, fresh.whole().to_pylist())
            )
    if found.clause:
        return found, Counter(), Counter()
    return found, *applied(engine, sql, key, found, pins)


def store_result(engine: Engine, sql: str, key: tuple[str, ...], old: dict[str, TableVersion]) -> FindRows:
    """The rows of the old state, in demo.result."""
    engine.sql("drop table if exists demo.result")
    spec = WriteSpec(table=TableSpec(primary_key=key, options={"bucket": "1"}))
    engine.write("demo.result", sql, spec, versions=old)
    return engine.changed_keys.stored_rows(engine.table("demo.result"))


def changed_ranges(engine: Engine, tables: tuple[str, ...]) -> dict[str, TableVersion]:
    """All changes of these tables."""
    return {
        one: TableVersion(changes=ChangesBetween(1, engine.table(one).latest_snapshot_id())) for one in tables
    }


def old_state(
    engine: Engine, sql: str, key: tuple[str, ...], old: dict[str, TableVersion]
) -> GroupState | None:
    """Of all groups; rows that are made of it are those of the query."""
    with engine.changed_keys.trace(sql, versions=old) as traced:
        kept = traced.state(key)
        if kept is None:
            return None
        state, view = kept.read_all(engine.changed_keys.new_view())
        rows = Counter(map(tuple, engine.spark.table(view).collect()))
        assert rows == Counter(map(tuple, engine.query(sql, versions=old).collect()))
        return state


def applied(
    engine: Engine, sql: str, key: tuple[str, ...], found: Deltas, pins: dict[str, TableVersion]
) -> tuple[Counter, Counter]:
    """(rows of demo.result with the deltas, rows of the query)."""
    new = engine.query(sql, versions=pins)
    numbers = [new.columns.index(one) for one in key]
    rows = {
        tuple(row[at] for at in numbers): tuple(row)
        for row in engine.query("select * from demo.result").collect()
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
    return Counter(rows.values()), everything


@pytest.mark.parametrize("tables", CHANGED)
@pytest.mark.parametrize("name", [*cases(sorted(FOLLOWED), 3), *NESTED])
def test_deltas_make_the_new_result(engine: Engine, name: str, tables: tuple[str, ...]) -> None:
    """Whatever of the inputs changed."""
    sql, key = (FOLLOWED | NESTED)[name]
    sql = sql.replace("demo.fixed", "(select id from values (1), (2), (5), (20) as f(id))")
    found, stored, expected = apply_deltas(engine, sql, tuple(key.split(",")), tables)
    assert not found.clause
    print(name, found)
    assert stored == expected


BY_KEY = {
    "star join": frozenset([P, R]),
    "star join with count and sum": frozenset([P, R]),
    "total of a join": frozenset([P]),
    "left join of a left join": frozenset([P, R]),
    "filter": frozenset[str](),
    "rows": frozenset[str](),
    "a table at two states": None,  # its name means the state of now alone
}


@pytest.mark.parametrize("name", BY_KEY)
def test_other_sides_are_read_by_key(engine: Engine, name: str) -> None:
    """Of changed orders: people and products are not read whole, and no Spark job runs."""
    sql, key = FOLLOWED[name]
    _, stored, expected = apply_deltas(engine, sql, tuple(key.split(",")), (S,))
    assert stored == expected
    assert [BY_KEY[name]] == LOOKED_UP


@pytest.mark.parametrize("name", [*EVALUATED, *BY_VALUES, *cases(sorted(FOLLOWED), 1)])
def test_evaluated_keys_make_the_new_result(engine: Engine, name: str) -> None:
    """The query for affected keys alone, beside stored rows: new rows, changed ones, and those that vanish."""
    sql, names = (EVALUATED | BY_VALUES | FOLLOWED)[name]
    sql = sql.replace("demo.fixed", "(select id from values (1), (2), (5), (20) as f(id))")
    key = tuple(names.split(","))
    find, pins = (
        store_result(engine, sql, key, states(engine, TABLES, is_new=False)),
        states(engine, TABLES, is_new=True),
    )
    with engine.changed_keys.trace(sql, versions=pins) as traced:
        keys = traced.affected_keys(key, changed_ranges(engine, TABLES), {})
        views = (engine.changed_keys.new_view(), engine.changed_keys.new_view())
        found = traced.evaluate(key, keys.rows, Before(find, views))
    assert not found.clause
    kinds = [] if found.table is None else found.table["_ROW_KIND"].to_pylist()
    if name in EVALUATED | BY_VALUES:
        assert [name in BY_VALUES] == READ_BY_KEY
    assert found.is_merged == (3 in kinds)  # a row that vanishes follows from the stored ones
    stored, expected = applied(engine, sql, key, found, pins)
    assert stored == expected


@pytest.mark.parametrize("tables", CHANGED)
@pytest.mark.parametrize("name", cases(sorted(OF_STATE), 3))
def test_rows_of_state_are_those_of_the_query(engine: Engine, name: str, tables: tuple[str, ...]) -> None:
    """Columns computed from aggregates, averages and HAVING, to the bit; the state behind it is that of all rows."""
    sql, key = OF_STATE[name]
    found, stored, expected = apply_deltas(engine, sql, tuple(key.split(",")), tables)
    assert not found.clause
    assert (found.state is not None) == any(table in sql for table in tables)
    assert stored == expected


# query → a part of the clause
NOT_FOLLOWED = {
    "a float sum below a join": (
        (
            f"select c.id, o.s from {P} c join (select customer, sum(amount / 2.0D) s from {S} group by customer) o "
            f"on o.customer = c.id"
        ),
        "Sum of double",
    ),
    "an average of integers below a join": (
        (
            f"select c.id, o.s from {P} c join (select customer, avg(amount) s from {S} group by customer) o "
            f"on o.customer = c.id"
        ),
        "Average of long",
    ),
    "try_sum below a join": (
        (
            f"select c.id, o.s from {P} c join (select customer, try_sum(amount) s from {S} group by customer) o "
            f"on o.customer = c.id"
        ),
        "try_sum",
    ),
    "an extreme of floats below a join": (
        (
            f"select c.id, o.s from {P} c join (select customer, max(amount / 2.0D) s from {S} group by customer) o "
            f"on o.customer = c.id"
        ),
        "an extreme of double",
    ),
    "a window with ties": (
        (
            f"select id, row_number() over (partition by id order by amount) n from (select o.id, o.amount from {S} o "
            f"join {P} c on c.id = o.customer)"
        ),
        "row_number()",
    ),
    "a window over everything": (f"select id, count(*) over () n from {S}", "without PARTITION BY"),
    "a total beside rows": (
        f"select c.id, t.n from {P} c cross join (select max(id) n from {S}) t",
        "a total",
    ),
    "a join without an equality": (
        f"select id, name from {P} c where not exists (select 1 from {S} o where o.customer > c.id)",
        "without an equality",
    ),
    "not in of columns that may be NULL": (
        f"select id, name from {P} where id not in (select customer from {S})",
        "without an equality",
    ),
    "a key of floats": (
        f"select c.id, o.amount from {P} c left join {S} o on cast(o.customer as double) = cast(c.id as double)",
        "without an equality",
    ),
    "an array below a join": (
        (
            f"select c.id, o.a is null as x from {P} c left join (select customer, array(amount) a from {S}) o "
            f"on o.customer = c.id"
        ),
        "a column of type",
    ),
}


@pytest.mark.parametrize("name", sorted(NOT_FOLLOWED))
def test_nodes_whose_old_rows_are_not_certain_have_no_deltas(engine: Engine, name: str) -> None:
    """Each names what prevents them, before anything is run."""
    sql, clause = NOT_FOLLOWED[name]
    with engine.changed_keys.trace(sql, versions=states(engine, TABLES, is_new=True)) as traced:
        found = traced.followed_deltas(("id",))
    assert clause in found[S].clause, found
