"""How retractions of a stream reach a keyed table: read from the plans of this Spark, and refused where unproven."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.spark.retractions import Retractions
from tests.doses import case_rows

STREAM = "demo__changes_start_to_now.orders"
KINDS = "_row_kind, _snapshot_id"

ROW_LOCAL = [
    (f"select id, {KINDS} from {{s}}", "id"),
    (f"select id, c, {KINDS} from {{s}} where c > 'a' and ts < timestamp'2026-01-01'", "id"),
    (f"with a as (select * from {{s}} where id > 0) select a.id as k, upper(c) as u, {KINDS} from a", "k u"),
    (f"select cast(id as string) as k, {KINDS} from {{s}}", "k"),
    (f"select id, x, {KINDS} from {{s}} lateral view explode(split(c, ',')) t as x where x > 'a'", "id x"),
    (
        f"select id, {KINDS} from {{s}} where c > 'm' union all select id, {KINDS} from {{s}} where c <= 'm'",
        "id",
    ),
    (f"select id, c, now() as made, uuid() as u, (select max(name) from demo.names) as n, {KINDS} from {{s}}", "id"),
    (f"with a as (select id, c, {KINDS} from {{s}}) select x.id, {KINDS} from a x union all select id, {KINDS} from a",
     "id"),
]  # fmt: skip
BY_KEY = [
    (f"select o.id, n.name, {KINDS} from {{s}} o join demo.names n on n.c = o.c", "id"),
    (f"select o.id, upper(o.c) as u, {KINDS} from {{s}} o left join demo.names n on n.c = o.c", "id u"),
    (f"select o.id, {KINDS} from demo.names n right join {{s}} o on n.c = o.c", "id"),
    (f"select o.id, {KINDS} from {{s}} o left semi join demo.names n on n.c = o.c", "id"),
    (f"select id, {KINDS} from {{s}} where ts > current_timestamp() - interval 1 day", "id"),
    (f"select id, {KINDS} from (select *, now() as at from {{s}}) where ts > at", "id"),
    (f"select id, {KINDS} from {{s}} where rand() < 0.5", "id"),
    (f"select id, {KINDS} from {{s}} where ts > date'yesterday'", "id"),
    (f"select id, {KINDS} from {{s}} where c in (select c from demo.names)", "id"),
    (f"select id, {KINDS} from {{s}} o where exists (select 1 from demo.names n where n.c = o.c)", "id"),
    (f"select id, {KINDS} from {{s}} where id > (select count(*) from demo.names)", "id"),
    (f"select id, {KINDS} from {{s}} where _snapshot_id > 3", "id"),
    (f"select id, {KINDS} from {{s}} tablesample (50 percent)", "id"),
    (f"select o.id, x.name, {KINDS} from {{s}} o, lateral (select name from demo.names n where n.c = o.c) x", "id"),
    ((f"with a as (select id + 0 as i, id, c, {KINDS} from {{s}}), b as (select * from a where c > 'a') "
     f"select b.id as k, concat(b.c, '/', cast(b.i * 2 as string), date_format(now(), 'yyyy')) is null as w, "
     f"substr(concat(b.c, '`x'), 1, 2) as u, {KINDS} from b join demo.names n on n.c = b.c"), "k u"),
    ((f"select o.id, n.name, {KINDS} from {{s}} o join demo.names n on n.c = o.c "
     f"union all select id, 'x', {KINDS} from {{s}} where c is null"), "id"),
]  # fmt: skip
REFUSED = [
    (f"select o.c, o.id, {KINDS} from {{s}} o where id > 3", "c", "without id of the primary key (id)"),
    (f"select id + 1 as id, {KINDS} from {{s}}", "id", "without id of the primary key"),
    (f"select id % 10 as part, id, {KINDS} from {{s}}", "part", "without id of the primary key"),
    (f"select cast(id as int) as id, {KINDS} from {{s}}", "id", "without id of the primary key"),
    (f"select n.name, o.id, {KINDS} from {{s}} o join demo.names n on n.c = o.c", "id name", "name of unique_key"),
    (f"select n.id, {KINDS} from {{s}} o join (select c, 1L as id from demo.names) n on n.c = o.c", "id", "id of uni"),
    (f"select uuid() as k, id, {KINDS} from {{s}}", "id k", "k of unique_key"),
    (f"select current_date() as d, id, {KINDS} from {{s}}", "id d", "d of unique_key"),
    (f"select date'today' as d, id, {KINDS} from {{s}}", "id d", "d of unique_key"),
    (f"select (select max(c) from demo.names) as d, id, {KINDS} from {{s}}", "id d", "d of unique_key"),
    (f"select _snapshot_id as s, id, {KINDS} from {{s}}", "id s", "s of unique_key"),
    (f"select id, x, {KINDS} from {{s}} lateral view explode(split(c, ',')) t as x where rand() > 0", "id x", "x of"),
    ("select id, '+U' as _row_kind, _snapshot_id from {s}", "id", "_row_kind of its result"),
    ("select id, _row_kind, _snapshot_id + 1 as _snapshot_id from {s}", "id", "_snapshot_id of its result"),
    (f"select id, {KINDS} from {{s}} where _row_kind = '+I'", "id", "a filter on _row_kind"),
    (
        (f"select id, id2, {KINDS} from (select id, id + 1 as id2, * except(id) from {{s}}) "
        f"union all select id + 1, id, {KINDS} from {{s}}"),
        "id id2",
        "without id of the primary key",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A keyed table and a lookup table."""
    del spark
    made = Engine(str(tmp_path_factory.mktemp("retractions")), spark=SparkSettings("local[2]"))
    made.create_database("demo")
    orders = pa.table({"id": [1], "c": ["a"], "ts": pa.array([0], pa.timestamp("us", "UTC"))})
    made.write("demo.orders", orders, WriteSpec(table=TableSpec(primary_key=("id",))))
    made.write("demo.names", pa.table({"c": ["a"], "name": ["ann"]}), WriteSpec())
    return made


def prove(engine: Engine, sql: str, key: str) -> Retractions:
    """Over the stream of the keyed table."""
    text = sql.format(s=STREAM)
    return engine.stateful.retractions(text, {STREAM: ["id"]}, key=key.split(), versions={})


@pytest.mark.parametrize(("sql", "key"), ROW_LOCAL)
def test_retractions_of_a_row_local_query_are_its_own(engine: Engine, sql: str, key: str) -> None:
    """Projections, deterministic filters and generators over the stream's own columns, and unions of them."""
    assert prove(engine, sql, key) == Retractions(is_local=True)


@pytest.mark.parametrize(("sql", "key"), case_rows(BY_KEY, 6))
def test_retractions_of_other_queries_are_read_from_the_stream(engine: Engine, sql: str, key: str) -> None:
    """Joins, subqueries and filters whose result may change: keys are computed over the stream's changes alone, and
    the SQL for it gives the keys with their types.
    """
    found = prove(engine, sql, key)
    assert (found.is_local, found.clause) == (False, None)
    assert found.select is not None
    wanted = {one.name: one.type_text for one in engine.query_columns(sql.format(s=STREAM))}
    given = [(one.name, one.type_text) for one in engine.query_columns(found.select)]
    assert given == [(name, wanted[name]) for name in [*key.split(), "_snapshot_id"]]
    assert not engine.sql(found.select).rows


@pytest.mark.parametrize(("sql", "key", "clause"), REFUSED)
def test_retractions_that_cannot_be_proven_are_refused(
    engine: Engine, sql: str, key: str, clause: str
) -> None:
    """A key of another table, of the clock or of chance; a key that does not identify the stream's row; own kinds."""
    found = prove(engine, sql, key)
    assert found.clause is not None
    assert clause in found.clause
