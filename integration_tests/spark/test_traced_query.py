"""TracedQuery on Spark: the affected keys hold every key whose rows differ, or the clause that prevents it is named."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from integration_tests.spark.traced_world import (
    CHANGED,
    KEYED,
    PEOPLE,
    PRODUCTS,
    TABLES,
    P,
    R,
    S,
    collected_keys,
    differing,
    rows,
    trace,
    traced_world,
)
from tablestore_engine.api import ChangesBetween, Engine, TableVersion
from tablestore_engine.spark import traced_plan
from tests.doses import case_rows, cases


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One session for all queries."""
    with traced_world(tmp_path_factory.mktemp("traced")) as engine:
        yield engine


PROVEN = {
    "self join, two roles": (
        f"select e.id, b.name as boss from {P} e left join {P} b on e.boss = b.id",
        "id",
    ),
    "columns of one name": (f"select o.id, c.name from {S} o left join {P} c on o.customer = c.id", "id"),
    "the dimension's key": (
        f"select c.id, count(o.id) n from {P} c left join {S} o on o.customer = c.id group by 1",
        "id",
    ),
    "star": (
        (
            f"select o.id, c.name, r.name as product, b.name as boss from {S} o left join {P} c on o.customer = c.id "
            f"left join {R} r on r.id = o.product left join {P} b on b.id = c.boss"
        ),
        "id",
    ),
    "inner star by an attribute": (
        (
            f"select r.name, c.boss, sum(o.amount) as total from {S} o join {P} c on o.customer = c.id "
            f"join {R} r on r.id = o.product group by r.name, c.boss"
        ),
        "name,boss",
    ),
    "key of the optional side": (
        (
            f"select coalesce(r.name, 'none') as product, count(*) as n from {S} o left join {R} r on r.id = o.product "
            "group by 1"
        ),
        "product",
    ),
    "right join": (
        f"select c.id, max(o.amount) m from {S} o right join {P} c on o.customer = c.id group by 1",
        "id",
    ),
    "full join": (
        (
            f"select coalesce(o.product, r.id) as k, count(o.id) n, max(r.name) m from {S} o full join {R} r "
            "on o.product = r.id group by 1"
        ),
        "k",
    ),
    "full join using": (f"select id, a.amount, b.name from {S} a full join {P} b using (id)", "id"),
    "view": (f"select o.id, v.name from {S} o join demo.adults v on v.id = o.customer", "id"),
    "exists": (
        f"select id from {P} c where exists (select 1 from {S} o where o.customer = c.id and amount > 5)",
        "id",
    ),
    "exists or": (
        f"select id, name from {P} c where exists (select 1 from {S} o where o.customer = c.id) or boss = 1",
        "id",
    ),
    "not exists": (
        f"select id from {P} c where not exists (select 1 from {S} o where o.customer = c.id)",
        "id",
    ),
    "in": (f"select id, amount from {S} where customer in (select id from {P} where boss = 1)", "id"),
    "not in with NULLs": (
        f"select id from {P} where id not in (select customer from {S} where amount > 8)",
        "id",
    ),
    "correlated scalar": (
        f"select id, (select max(amount) from {S} o where o.customer = c.id) m from {P} c",
        "id",
    ),
    "scalar over distinct rows, in the key": (
        (
            f"select o.id, coalesce((select p.id from (select distinct id from {P}) p where p.id = o.customer), -1) k "
            f"from {S} o"
        ),
        "id,k",
    ),
    "exists over distinct rows": (
        f"select id from {P} c where exists (select distinct product, amount from {S} o where o.customer = c.id)",
        "id",
    ),
    "correlated count": (
        f"select id, (select count(*) from {S} o where o.customer = c.id) m from {P} c",
        "id",
    ),
    "union": (f"select id, name from {P} union select id, name from {R}", "id,name"),
    "union all, other side": (
        f"select 'p' as kind, id from {P} union all select 'r', id from {R}",
        "kind,id",
    ),
    "except": (f"select id from {P} except select customer from {S}", "id"),
    "except all": (f"select customer as id from {S} except all select id from {P}", "id"),
    "intersect": (f"select id from {P} intersect select customer from {S}", "id"),
    "intersect all": (f"select customer as id from {S} intersect all select product from {S}", "id"),
    "CTE used twice": (
        (
            f"with t as (select customer, count(*) n from {S} group by customer) "
            "select a.customer, a.n, b.n m from t a left join t b on a.customer = b.customer + 1"
        ),
        "customer",
    ),
    "window": (f"select id, sum(amount) over (partition by customer) s from {S}", "id"),
    "window by key": (
        f"select customer, id, rank() over (partition by customer order by amount) r from {S}",
        "customer",
    ),
    "newest row of a key": (
        (
            f"select customer, amount from (select *, row_number() over (partition by customer order by amount, id) r "
            f"from {S}) where r = 1"
        ),
        "customer",
    ),
    "total order of the window": (
        f"select id, row_number() over (partition by customer order by amount, id) r from {S}",
        "id",
    ),
    "distinct": (f"select distinct customer, product from {S}", "customer,product"),
    "group by expression": (f"select customer % 3 as k, count(distinct product) n from {S} group by 1", "k"),
    "rollup": (
        f"select customer, product, grouping_id() g, count(*) n from {S} group by rollup(customer, product)",
        "customer,product,g",
    ),
    "having": (f"select customer, count(*) n from {S} group by customer having count(*) > 4", "customer"),
    "explode": (f"select id, v from {S} lateral view explode(array(customer, product)) t as v", "id,v"),
    "scalar look-up": (f"select id, (select r.name from {R} r where r.id = o.product) n from {S} o", "id"),
    "scalar look-up behind a deduplication": (
        (
            f"select c.name, coalesce(l.n, 'none') n, count(*) m from {P} c join (select customer, (select r.name "
            f"from {R} r where r.id = d.product) n from (select *, row_number() over (partition by customer "
            f"order by amount, id) r from {S}) d where r = 1) l on l.customer = c.id group by 1, 2"
        ),
        "name,n",
    ),
    "total beside rows": (
        (
            f"select o.id, t.k from {S} o cross join (select 'x' k, avg(cast(id as double)) a from {P} "
            "where name = 'nobody') t"
        ),
        "id,k",
    ),
    "pipe": (
        (
            f"from {S} |> as o |> join {P} c on o.customer = c.id |> where c.name <> 'n3' "
            f"|> aggregate sum(amount) total, count(*) n group by c.name"
        ),
        "name",
    ),
    "pipe with a window": (
        f"from {S} |> set product = 1 |> extend row_number() over (partition by customer order by amount, id) n",
        "id",
    ),
    "lateral": (
        f"select c.id, m from {P} c, lateral (select max(amount) m from {S} o where o.customer = c.id)",
        "id",
    ),
    "non-equi join": (f"select o.id, r.id as r from {S} o join {R} r on r.id < o.product", "id,r"),
    "cross join with a constant": (
        f"select o.id, v.x from {S} o cross join (values (1), (2)) as v(x)",
        "id,x",
    ),
    "constant key": (f"select 1 as k, count(*) n, sum(amount) s from {S}", "k"),
    "order-dependent, in its own group": (
        f"select customer, min(amount) m, any_value(customer) a from {S} group by customer",
        "customer",
    ),
    "join of aggregates": (
        (
            f"select a.customer, a.n, b.m from (select customer, count(*) n from {S} group by 1) a "
            f"full join (select boss, max(id) m from {P} group by 1) b on a.customer = b.boss "
            "where a.customer is not null"
        ),
        "customer",
    ),
    "semi join": (
        f"select * from {P} c left semi join {S} o on o.customer = c.id and o.amount > c.boss",
        "id",
    ),
    "anti join": (
        f"select * from {P} c left anti join {S} o on o.customer = c.id and o.amount > c.boss",
        "id",
    ),
}
UNPROVEN = {
    "first groups with ties": (
        (
            "select * from (select row_number() over (order by s desc) r, * from "
            f"(select customer, sum(amount) s from {S} group by 1)) where r <= 3"
        ),
        "r",
        "row_number()",
    ),
    "scalar subquery in group by": (
        f"select amount > (select count(*) from {R}) is_more, count(*) n from {S} group by 1",
        "is_more",
        "subquery as a value",
    ),
    "limit": (
        f"select o.id, c.name from {S} o join (select * from {P} limit 3) c on c.id = o.customer",
        "id",
        "LIMIT",
    ),
    "scalar subquery of one of several rows": (
        f"select id from {S} where amount > (select boss from {P} where id = 4)",
        "id",
        "subquery",
    ),
    "average of integers as key": (
        f"select cast(avg(amount) as bigint) as a, customer from {S} group by customer",
        "a",
        "aggregate",
    ),
    "ties": (
        f"select id, row_number() over (partition by customer order by amount) r from {S}",
        "id",
        "row_number()",
    ),
    "order-dependent, shared": (
        (
            f"select o.id, n from {S} o join (select boss, any_value(name) n from {P} group by boss) t "
            "on t.boss = o.customer"
        ),
        "id",
        "any_value()",
    ),
    "rows frame with ties": (
        f"select id, sum(amount) over (partition by customer order by product rows 1 preceding) s from {S}",
        "id",
        "ROWS frame",
    ),
    "pipe in a subquery": (
        f"select id from {P} c where (from {S} |> where customer = c.id |> aggregate count(*)) = 0",
        "id",
        "PipeOperator",
    ),
    "rows of files": (
        "select 1 as id, count(*) n from text.`/etc/hostname`",
        "id",
        "outside of the warehouse",
    ),
}


@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("name", cases(PROVEN, 5))
def test_affected_keys_hold_every_key_that_differs(
    engine: Engine, name: str, changed: tuple[str, ...]
) -> None:
    """Whatever tables changed, no key whose rows differ is missing, and unchanged tables affect none."""
    sql, key = PROVEN[name][0], tuple(PROVEN[name][1].split(","))
    found, keys = trace(engine, sql, key, changed)
    assert found.clause == ""
    missing = differing(engine, sql, key, changed) - keys
    assert not missing, (sorted(map(str, missing)), sorted(map(str, keys)))
    assert not any(one.lower() in sql for one in changed) or found.count == len(keys)


@pytest.mark.parametrize("name", UNPROVEN)
def test_query_without_proof_names_its_clause(engine: Engine, name: str) -> None:
    """What no proof covers gives no keys, and says which clause prevents it."""
    sql, key, clause = UNPROVEN[name]
    found, _ = trace(engine, sql, tuple(key.split(",")), TABLES)
    assert found.rows is None
    assert clause in found.clause


def test_unused_column_change_affects_no_key(engine: Engine) -> None:
    """A change of columns that the query does not use, or a row put again as it was, affects nothing."""
    sql = f"select o.id, c.name from {S} o join {P} c on c.id = o.customer"
    found, keys = trace(engine, sql.replace("c.name", "c.boss"), ("id",), (R,))
    assert (found.count, keys) == (0, set())
    engine.write(R, rows(PRODUCTS, (0, "zero"), (1, "one")), KEYED)
    found, keys = trace(
        engine,
        f"select product, count(*) n from {S} join {R} r on r.id = product group by 1",
        ("product",),
        (R,),
    )
    assert keys <= {(2,), (3,)}


def test_plan_of_an_unknown_spark_proves_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that this Spark does not have: no keys, a clause, and the digest has all columns of the tables."""
    sql = f"select id, name from {P}"
    with engine.changed_keys.trace(sql, versions={}) as traced:
        context = traced.context()
    monkeypatch.setattr(traced_plan, "_RULES", ("RuleOfTheFuture",))
    found, _ = trace(engine, sql, ("id",), TABLES)
    assert "a plan that cannot be read" in found.clause
    with engine.changed_keys.trace(sql, versions={}) as traced:
        assert traced.context() != context


def test_context_changes_with_views_columns_and_settings(engine: Engine) -> None:
    """The digest is another when a view's text, the column behind a name, or a setting that changes results is another;
    and the same for a column that the query does not use.
    """

    def context(sql: str) -> str:
        with engine.changed_keys.trace(sql, versions={}) as traced:
            return traced.context()

    engine.write("demo.staff", rows(PEOPLE, (1, "a", None), (4, "b", 1)), KEYED)
    engine.create_view("demo.grown", "select id, upper(name) as name from demo.staff where id > 2")
    of_view, of_table = "select id from demo.grown", "select id, name from demo.staff"
    first = context(of_view), context(of_table)
    engine.sql("alter table demo.staff add column note string")
    assert (context(of_view), context(of_table)) == first
    for statement in ("rename column name to x", "rename column note to name"):
        engine.sql(f"alter table demo.staff {statement}")
    assert context(of_table) != first[1]
    for statement in ("rename column name to note", "rename column x to name"):
        engine.sql(f"alter table demo.staff {statement}")
    assert context(of_table) == first[1]
    engine.create_view("demo.grown", "select id, upper(name) as name from demo.staff where id > 3")
    assert context(of_view) != first[0]
    for name in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive"):
        before = str(engine.spark.conf.get(name))
        engine.spark.conf.set(name, {"true": "false", "false": "true"}.get(before, "Asia/Tokyo"))
        assert context(of_table) != first[1], name
        engine.spark.conf.set(name, before)
    assert context(of_table) == first[1]


@pytest.mark.parametrize(
    ("expression", "name"),
    case_rows(
        [
            ("current_date()", "current_date()"),
            ("now()", "now()"),
            ("uuid()", "uuid()"),
            ("rand()", "rand()"),
            ("cast('now' as timestamp)", "CAST('now' AS TIMESTAMP)"),
            ("timestamp 'today'", "timestamp 'today'"),
            ("date r'today'", "date r'today'"),
            ("timestamp /* x */ 'Now'", "timestamp 'Now'"),
            ("date -- a\\\nb\n'today'", "date 'today'"),
            ("date -- a\r'today'", "date 'today'"),
            ("date /* a /* b */ c */ 'today'", "date 'today'"),
            ("date '2026-01-01' /* date 'today' */", None),
            ("'it''s date ' || 'today'", None),
            (r"timestamp '\u006eow'", r"timestamp '\u006eow'"),
            ("to_timestamp('now')", "CAST('now' AS TIMESTAMP)"),
            ("to_date('today')", "CAST('today' AS DATE)"),
            ("try_cast('tomorrow' as timestamp_ntz)", "TRY_CAST('tomorrow' AS TIMESTAMP_NTZ)"),
            ("cast('today UTC' as timestamp)", "CAST('today UTC' AS TIMESTAMP)"),
            ("cast(lower('NOW') as timestamp)", "CAST(lower('NOW') AS TIMESTAMP)"),
            ("date(concat('to', 'day'))", "CAST(concat('to', 'day') AS DATE)"),
            ("amount > 'now'", None),
            ("timestamp '2026-01-01' > 'now'", "CAST('now' AS TIMESTAMP)"),
            ("aes_encrypt('a', '0000111122223333')", "aes_encrypt()"),
            ("cast(date '2026-01-01' as timestamp)", None),
            ("cast(cast(id as string) as timestamp)", None),
            ("unix_timestamp()", "current_timestamp()"),
            ("monotonically_increasing_id()", "monotonically_increasing_id()"),
            ("any_value(id) over (partition by id)", None),
            ("timestamp '2026-01-01'", None),
        ],
        10,
    ),
)
def test_volatile_function_is_named(engine: Engine, expression: str, name: str | None) -> None:
    """A function whose value differs between runs is found wherever it stands, and nothing else is."""
    with engine.changed_keys.trace(f"select id, {expression} as v from {S}", versions={}) as traced:
        assert traced.volatile == name


def test_column_with_the_name_of_an_alias_is_read(engine: Engine) -> None:
    """A DATE column named `t` beside deleted rows: the alias of the engine's own SQL does not hide the table."""
    schema = pa.schema([("id", pa.int64()), ("t", pa.date32())])
    engine.write("demo.dated", rows(schema, (1, None), (2, None), (3, None)), KEYED)
    engine.sql("delete from demo.dated where id = 2")
    assert engine.sql("select id, t from demo.dated order by id").rows == ((1, None), (3, None))


def test_negative_zero_and_map_changes_are_seen(engine: Engine) -> None:
    """0.0 that becomes -0.0 and an entry of a map affect their keys; rows put again as they were do not."""
    schema = pa.schema([("id", pa.int64()), ("d", pa.float64()), ("m", pa.map_(pa.string(), pa.int64()))])
    engine.write("demo.odd", rows(schema, (1, 0.0, [("a", 1)]), (2, 1.0, [("a", 1)]), (3, 2.0, None)), KEYED)
    engine.write("demo.odd", rows(schema, (1, -0.0, [("a", 1)]), (2, 1.0, [("a", 2)]), (3, 2.0, None)), KEYED)
    changes = {"demo.odd": TableVersion(changes=ChangesBetween(1, 2))}
    for sql, expected in (
        ("select id, cast(d as string) as d from demo.odd", {1}),
        ("select id, m['a'] as a from demo.odd", {1, 2}),
        ("select id from demo.odd", set()),
    ):
        with engine.changed_keys.trace(sql, versions={}) as traced:
            found = traced.affected_keys(("id",), changes, {})
            keys = collected_keys(engine, traced, found)
        assert found.clause == ""
        assert {key for (key,) in keys} >= expected
        assert found.count == len(expected) or "m[" in sql  # maps have no equality: each changed row counts
