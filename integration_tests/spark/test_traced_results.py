"""TracedQuery on Spark where keys and conditions follow from results of aggregates and windows, and from totals as
values: the affected keys hold every key whose rows differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration_tests.spark.traced_world import CHANGED, TABLES, P, R, S, differing, trace, traced_world
from tablestore_engine.api import Engine
from tests.doses import cases


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One session for all queries."""
    with traced_world(tmp_path_factory.mktemp("results")) as engine:
        yield engine


# keys and conditions that follow from results of aggregates and windows
EXACT = f"cast(amount as decimal(10, 2)) a from {S}"
NEXT = (
    "select o.customer, o.id, c.name from (select v.customer, v.id, lead(v.id) over (partition by v.customer "
    f"order by {{by}}) n from {S} v join {R} r on r.id = v.product) o left join {P} c on c.id = o.n"
)
OF_RESULTS = {
    "scalar subquery": (
        f"select id from {S} where amount >= (select max(amount) from {S} where id < 20)",
        "id",
    ),
    "average": (f"select id from {S} where amount > (select avg(a) from (select {EXACT}))", "id"),
    "scalar of nothing": (
        f"select id from {S} where amount < (select max(amount) from {S} where id >= 40)",
        "id",
    ),
    "scalar as a column": (f"select id, amount - (select min(id) from {R}) d from {S}", "id"),
    "scalar in the key": (f"select id + (select count(*) from {R}) k, name from {P}", "k"),
    "scalar in an argument": (
        f"select customer, sum(if(amount > (select count(*) from {P}) - 3, 1, 0)) n from {S} group by 1",
        "customer",
    ),
    "scalar beside an aggregate": (
        f"select customer, max(amount) - (select count(*) from {R}) m from {S} group by 1",
        "customer",
    ),
    "scalar in an outer join": (
        (
            f"select o.id, c.name from {S} o left join {P} c on c.id = o.customer "
            f"and o.amount > (select count(*) from {R})"
        ),
        "id",
    ),
    "scalar inside of a scalar": (
        f"select id from {P} where id < (select count(*) from {S} where amount > (select max(id) from {R}))",
        "id",
    ),
    "the same scalar twice": (
        f"select id from {S} where amount > (select count(*) from {R}) or id = (select count(*) from {R})",
        "id",
    ),
    "two scalars": (
        f"select id, (select count(*) from {R}) - (select max(id) from {P}) d from {S} where id < 20",
        "id",
    ),
    "having": (
        (
            f"select customer, sum(amount) s from {S} group by customer "
            f"having sum(amount) > (select sum(amount) * 0.1 from {S})"
        ),
        "customer",
    ),
    "largest group": (
        (
            f"with t as (select customer, sum(amount) s from {S} group by customer) select c.id, c.name, s "
            f"from {P} c, t where c.id = t.customer and s = (select max(s) from t)"
        ),
        "id",
    ),
    "correlated inside of in": (
        (
            f"select id, name from {P} c where id in (select customer from {S} o where amount > "
            f"(select 0.5 * sum(id) from {R} r where r.id <= 2 and r.id = o.product))"
        ),
        "id",
    ),
    "constant keys": (
        (
            f"select 'a' k, count(*) n from {S} union all "
            f"select 'b', (select count(*) from {P}) - (select count(*) from {R}) "
            f"union all select 'c', max(id) from {P}"
        ),
        "k",
    ),
    "count of counts": (
        f"select n, count(*) m from (select customer, count(*) n from {S} group by 1) group by n",
        "n",
    ),
    "total as a join column": (
        (
            f"select o.id, t.customer from {S} o join (select customer, max(amount) m from {S} group by 1) t "
            "on t.m = o.amount"
        ),
        "id,customer",
    ),
    "total as key": (f"select count(*) as n, customer from {S} group by customer", "n"),
    "totals of a total and a table": (
        (
            f"select c.id, t.n from {P} c left join (select n, count(*) m from (select customer, count(*) n from {S} "
            "group by 1) group by n) t on t.m = c.id"
        ),
        "id",
    ),
    "rank of all rows": (f"select id, row_number() over (order by amount, id) r from {S}", "id"),
    "first rows": (
        f"select * from (select row_number() over (order by amount desc, id) r, id, amount from {S}) where r <= 3",
        "r",
    ),
    "window as a join column": (
        (
            "select o.id, c.name from (select id, rank() over (partition by customer order by amount, id) r "
            f"from {S}) o left join {P} c on c.id = o.r"
        ),
        "id",
    ),
    "window of rows that are looked at": (NEXT.format(by="v.id"), "customer"),
    "window as key": (
        (
            f"select r, count(*) n from (select rank() over (partition by customer order by amount, id) r from {S}) "
            "group by r"
        ),
        "r",
    ),
    "number of rows": (f"select id from {P} where id <= (select count(*) from {S}) - 24", "id"),
}


@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("name", cases(OF_RESULTS, 8))
def test_affected_keys_of_results_hold_every_key_that_differs(
    engine: Engine, name: str, changed: tuple[str, ...]
) -> None:
    """Whatever tables changed, no key whose rows differ is missing."""
    sql, key = OF_RESULTS[name][0], tuple(OF_RESULTS[name][1].split(","))
    found, keys = trace(engine, sql, key, changed)
    assert found.clause == ""
    missing = differing(engine, sql, key, changed) - keys
    assert not missing, (sorted(map(str, missing)), sorted(map(str, keys)))


def test_a_total_affects_rows_for_which_it_makes_a_difference_alone(engine: Engine) -> None:
    """The number of products grows by one: people whose id is that number are affected, and no others. A change that
    leaves the total as it is affects nobody.
    """
    sql = f"select id from {P} where id > (select count(*) from {R})"
    assert trace(engine, sql, ("id",), (R,))[1] == {(4,)}
    assert trace(engine, sql.replace("count(*)", "min(id)"), ("id",), (R,))[1] == set()
    of_groups = (
        f"select boss, sum(id) s from {P} group by boss having sum(id) > 3 * (select count(*) from {R}) - 1"
    )
    assert (
        trace(engine, of_groups, ("boss",), (R,))[1] == differing(engine, of_groups, ("boss",), (R,)) != set()
    )


def test_rows_that_are_equal_in_order_by_end_the_proof(engine: Engine) -> None:
    """The next order of a customer by product, of which a customer has several: the clause says so."""
    found, _ = trace(engine, NEXT.format(by="r.id"), ("customer",), TABLES)
    assert found.rows is None
    assert found.clause == "a window with rows that are equal in ORDER BY"
