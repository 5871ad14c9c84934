"""Star and snowflake joins in the shape of TPC-H and TPC-DS run restricted to affected keys, and miss none.

The oracle is the query over both states: keys whose rows differ must be among the affected ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from integration_tests.spark.star_schemas import MODELS, StarModel, fill
from integration_tests.spark.traced_world import collected_keys
from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableVersion
from tests.doses import cases

SEED = 7


class World:
    """Tables in two states."""

    def __init__(self, engine: Engine, states: Mapping[str, tuple[int, int]]) -> None:
        self.engine, self.states = engine, states

    def rows(self, model: StarModel, changed: tuple[str, ...]) -> Counter[tuple[object, tuple[object, ...]]]:
        """Rows with their keys, over the new state of these tables and the old one of the others."""
        frame = self.engine.query(model.sql, versions=self._pins(changed))
        places = [frame.columns.index(one) for one in model.key]
        return Counter((tuple(row[at] for at in places), tuple(row)) for row in frame.collect())

    def affected(self, model: StarModel, changed: tuple[str, ...]) -> tuple[str, set[tuple[object, ...]]]:
        """The clause that prevents it, and the affected keys."""
        changes = {one: TableVersion(changes=ChangesBetween(*self.states[one])) for one in changed}
        with self.engine.changed_keys.trace(model.sql, versions=self._pins(changed)) as traced:
            general = traced.general_clause(model.key)
            if general is not None:
                return general, set()
            found = traced.affected_keys(model.key, changes, {})
            return found.clause, collected_keys(self.engine, traced, found)

    def _pins(self, changed: tuple[str, ...]) -> dict[str, TableVersion]:
        return {name: TableVersion(snapshot=ids[name in changed]) for name, ids in self.states.items()}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One warehouse for all queries."""
    settings = SparkSettings("local[2]", {"spark.sql.shuffle.partitions": "1"})
    with Engine(str(tmp_path_factory.mktemp("stars")), spark=settings) as engine:
        yield World(engine, fill(engine, SEED))


OFTEN = cases(list(MODELS), 1)
EACH_INPUT = ("H 3 revenue of orders of a segment", "H 13 orders of each customer", "DS 33 three channels")


@pytest.mark.parametrize("name", OFTEN)
def test_star_join_runs_restricted_to_its_affected_keys(world: World, name: str) -> None:
    """All inputs at once, and for some models each input alone."""
    check_model(world, name, is_each_alone=name in EACH_INPUT)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in MODELS if name not in EACH_INPUT])
def test_star_join_follows_each_of_its_inputs(world: World, name: str) -> None:
    """Each input alone, then all at once."""
    check_model(world, name, is_each_alone=True)


def check_model(world: World, name: str, *, is_each_alone: bool) -> None:
    """Every key whose rows differ is an affected one."""
    model = MODELS[name]
    before = world.rows(model, ())
    with world.engine.changed_keys.trace(model.sql, versions={}) as traced:
        tables = traced.tables
    alone = [(one,) for one in tables] if is_each_alone else []
    for changed in (*alone, tables):
        clause, keys = world.affected(model, changed)
        assert clause == "", f"{changed}: {clause}"
        after = world.rows(model, changed)
        differing = {key for key, _ in (before - after) + (after - before)}
        assert differing <= keys, f"{changed}: {differing - keys}"
    assert differing, "the last changes, of all tables, change nothing: the test would see no error"


COMMA = """select c_custkey, n_name, count(*) as lines from demo.customer, demo.orders, demo.lineitem, demo.nation
where c_custkey = o_custkey and l_orderkey = o_orderkey and c_nationkey = n_nationkey and l_returnflag = 'R'
group by c_custkey, n_name"""
JOINS = """select c_custkey, n_name, count(*) as lines from demo.customer join demo.orders on c_custkey = o_custkey
join demo.lineitem on l_orderkey = o_orderkey and l_returnflag = 'R' join demo.nation on c_nationkey = n_nationkey
group by c_custkey, n_name"""
COMMA_CROSS = """select n_name, count(*) as lines from demo.part, demo.supplier, demo.lineitem, demo.nation
where p_partkey = l_partkey and s_suppkey = l_suppkey and s_nationkey = n_nationkey and p_type = 'TIN'
group by n_name"""
JOINS_CROSS = """select n_name, count(*) as lines from demo.part join demo.lineitem on p_partkey = l_partkey
join demo.supplier on s_suppkey = l_suppkey join demo.nation on s_nationkey = n_nationkey where p_type = 'TIN'
group by n_name"""


@pytest.mark.nightly  # by day test_traced_query.py, and tests/laws/test_node_trace_laws.py for each node kind
@pytest.mark.parametrize(
    ("key", "comma", "joins", "reads"),
    [
        (
            "c_custkey",
            COMMA,
            JOINS,
            {"demo.lineitem": ("demo.customer", "demo.orders"), "demo.orders": (), "demo.customer": ()},
        ),
        (
            "n_name",
            COMMA_CROSS,
            JOINS_CROSS,
            {"demo.part": ("demo.lineitem", "demo.nation", "demo.supplier")},
        ),
    ],
)
def test_comma_join_is_followed_as_the_same_query_with_join(
    world: World, key: str, comma: str, joins: str, reads: dict[str, tuple[str, ...]]
) -> None:
    """Conditions in WHERE are those of the joins: a changed line item finds its customer by its order, and not all
    customers; a changed part with its line items, and not with all suppliers.
    """
    for text in (comma, joins):
        with world.engine.changed_keys.trace(text, versions={}) as traced:
            joined = {one.table: one.joined for one in traced.followed_inputs((key,))}
        assert {table: joined[table] for table in reads} == reads
    changed = tuple(reads)
    of_comma = world.affected(StarModel((key,), comma), changed)
    of_joins = world.affected(StarModel((key,), joins), changed)
    assert of_comma[1] - {(None,)} == of_joins[1] - {(None,)} != set()
