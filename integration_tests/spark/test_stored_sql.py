"""Views that somebody else stored in the warehouse only read the warehouse (TS1529)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.errors import FixRequest, NotFound, Unsupported
from tablestore_engine.spark.stored_sql import RUNS_OR_READS, StoredSql
from tests.doses import cases

_REVIEWED = Path(__file__).parent / "spark_functions.txt"


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """A warehouse with the table demo.t of two rows; `spark` is the session that it adopts."""
    with Engine(str(tmp_path / "warehouse")) as made:
        made.write("demo.t", pa.table({"id": [1, 2], "name": ["a", "b"]}), WriteSpec(TableSpec()))
        yield made


def store_view(engine: Engine, name: str, text: str) -> None:
    """As another process does: the file is there, this engine has not written it."""
    engine._warehouse.catalog.put_view(Identifier("demo", name), ViewDefinition(text))


_REFUSED = {
    "process": ("select transform(id) using 'cat' as (x) from demo.t", "TRANSFORM"),
    "map_process": ("select * from (map id using 'cat' from demo.t) q", "TRANSFORM"),
    "method": ("select reflect('java.lang.System', 'getenv', 'HOME')", "reflect"),
    "quoted": ("select `Java_Method`('java.lang.System', 'getenv', 'HOME')", "java_method"),
    "full_name": ("select system.builtin.try_reflect('java.lang.System', 'getenv', 'HOME')", "try_reflect"),
    "computed": ("select identifier('ref' || 'lect')('java.lang.System', 'getenv', 'HOME')", "IDENTIFIER"),
    "in_cte": ("with c as (select reflect('a', 'b') x) select * from c", "reflect"),
    "in_subquery": ("select * from demo.t where id in (select reflect('a', 'b'))", "reflect"),
    "in_window": ("select sum(id) over w from demo.t window w as (partition by reflect('a', 'b'))", "reflect"),
    "in_values": ("select * from values (1, 2), (reflect('a', 'b'), 3)", "reflect"),
    "in_lambda": ("select transform(array(1), x -> reflect('a', 'b'))", "reflect"),
    "in_case": ("select case when id = 1 then reflect('a', 'b') end from demo.t", "reflect"),
    "in_pivot": ("select * from demo.t pivot (max(reflect('a', name)) for id in (1, 2))", "reflect"),
    "in_sets": ("select 1 from demo.t group by grouping sets ((id), (reflect('a', 'b')))", "reflect"),
    "in_pipe": ("from demo.t |> select reflect('a', 'b') as x", "reflect"),
    "lateral": ("select * from demo.t lateral view explode(array(reflect('a', 'b'))) v as k", "reflect"),
    "descriptor": ("select from_protobuf(x'00', 'm', '/etc/passwd')", "from_protobuf"),
    "avro_url": ("""select from_avro(x'00', '"string"', map('avroSchemaUrl', '/etc/passwd'))""", "from_avro"),
    "xsd": ("select from_xml('<a/>', 'a int', map('rowValidationXSDPath', '/etc/passwd'))", "from_xml"),
    "path": ("select * from text.`/etc/hostname`", "text.`/etc/hostname`"),
    "path_deep": ("select * from demo.t where exists (select 1 from csv.`/etc/hostname`)", "csv.`"),
    "path_computed": ("select * from identifier('text.`/etc/hostname`')", "text.`"),
    "relative_path": ("select * from parquet.plain", "parquet.`plain`"),
    "class_path": ("select * from `org.apache.Anything`.`/etc/hostname`", "org.apache.Anything"),
    "foreign": ("select unknown_of_a_jar(id) from demo.t", "unknown_of_a_jar"),
}  # fmt: skip


@pytest.mark.parametrize("case", cases(_REFUSED, 12))
def test_a_stored_view_is_refused(engine: Engine, case: str) -> None:
    """Whatever runs code or reads a file is refused by name, also behind another view, and before Spark has it."""
    text, construct = _REFUSED[case]
    store_view(engine, "bad", text)
    store_view(engine, "over_it", "select * from demo.bad")
    with pytest.raises(Unsupported, match=r"TS1529 view demo\.bad") as caught:
        engine.query("select * from demo.over_it")
    assert construct in caught.value.what
    assert "trusted_sql" in caught.value.fix


def test_ordinary_views_pass(engine: Engine) -> None:
    """Joins, windows, CTEs, versions, lambdas, columns that look like a path and table functions are no danger."""
    store_view(engine, "base", "select *, named_struct('json', name) as text from demo.t")
    store_view(
        engine,
        "fine",
        "with c as (select id, text.json, row_number() over (order by id) n from demo.base)"
        " select c.*, transform(array(1), x -> x + 1) t, upper(c.json) u, 'reflect()' as r"
        " from c join demo.t version as of 1 v using (id) cross join range(1) g lateral view explode(array(1)) e as k",
    )
    assert [row.id for row in engine.query("select id from demo.fine order by id").collect()] == [1, 2]
    store_view(engine, "orphan", "select * from demo.gone")
    with pytest.raises(NotFound, match=r"TS1515.*demo\.gone"):
        engine.query("select * from demo.orphan")


def test_what_this_process_wrote_may_do_all(engine: Engine) -> None:
    """The user's own project runs as it is: its views by SQL and by the API, and after a comment."""
    engine.sql("create view demo.own as select reflect('java.lang.Math', 'max', 1, 2) as m")
    engine.create_view("demo.own_too", "select reflect('java.lang.Math', 'max', 1, 3) as m")
    engine.set_comments("demo.own", "the larger", {})
    rows = engine.sql("select * from demo.own union all select * from demo.own_too").rows
    assert sorted(rows) == [("2",), ("3",)]


def test_a_comment_does_not_make_a_stored_view_ones_own(engine: Engine) -> None:
    """dbt's persist_docs on somebody's view, or a new name for it, keeps it refused."""
    store_view(engine, "theirs", "select reflect('java.lang.Math', 'max', 1, 2) as m")
    engine.set_comments("demo.theirs", "a comment", {})
    engine.rename("demo.theirs", "demo.renamed")
    with pytest.raises(Unsupported, match="TS1529"):
        engine.query("select * from demo.renamed")


def test_the_option_allows_it_to_one_engine_only(engine: Engine) -> None:
    """trusted_sql lets the view run; another engine of the same session still refuses the registered name."""
    store_view(engine, "theirs", "select reflect('java.lang.Math', 'max', 1, 2) as m")
    with Engine(engine.warehouse, trusted_sql=True) as trusting:
        assert trusting.sql("select * from demo.theirs").rows == (("2",),)
    with pytest.raises(Unsupported, match="TS1529"):
        engine.query("select * from demo.theirs")


def test_a_default_is_a_literal_that_a_write_stores_for_null(engine: Engine) -> None:
    """A default is never run as SQL. INSERT, UPDATE and frames without a key store it for NULL; rows that a statement
    only writes again keep NULL, and a changed default is for rows to come.
    """
    with pytest.raises(FixRequest, match="TS1153 column 'p'"):
        engine.sql("create table demo.d (id int, p string default reflect('a', 'b'))")
    engine.sql("create table demo.d (id int, n string default 'x', at date)")
    engine.sql("insert into demo.d (id) values (1)")
    engine.sql("alter table demo.d alter column at set default date '2024-02-29'")
    engine.sql("insert into demo.d values (2, null, null), (3, 'given', date '2024-01-01')")
    engine.sql("update demo.d set n = null, at = null where id = 3")
    engine.sql("alter table demo.d alter column n drop default")
    engine.sql("insert into demo.d (id) values (4)")
    day = dt.date(2024, 2, 29)
    rows = engine.sql("select id, n, at from demo.d order by id").rows
    assert rows == ((1, "x", None), (2, "x", day), (3, "x", day), (4, None, day))
    shown = engine.sql("show create table demo.d").rows[0][0]
    assert "`at` date DEFAULT '2024-02-29'" in shown
    assert shown.count("DEFAULT") == 1


def test_nothing_of_the_environment_is_substituted(
    spark: SparkSession, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark replaces ${env:X} in all SQL text, before it parses: our sessions do not, a stored view is refused
    in sessions that do, and a table's comment stays what it is there.
    """
    monkeypatch.setenv("TABLESTORE_PLANTED", "hunter2")
    text = "select '${env:HOME}' as x"
    store_view(engine, "leak", text)
    assert engine.sql("select * from demo.leak").rows == (("${env:HOME}",),)
    engine.sql("create table demo.c (id int comment '${spark.app.name}') comment '${env:HOME}'")
    spark.conf.set("spark.sql.variable.substitute", "true")
    try:
        store_view(engine, "leak_too", text + ", 2 as y")
        with pytest.raises(Unsupported, match=r"TS1529 view demo\.leak_too"):
            engine.query("select * from demo.leak_too")
        shown = engine.query("describe table demo.c").collect()
        assert [row.comment for row in shown] == ["${spark.app.name}"]
    finally:
        spark.conf.set("spark.sql.variable.substitute", "false")


def test_all_of_sparks_functions_were_reviewed(spark: SparkSession) -> None:
    """A new pyspark brings new functions: each is read once for what it runs or opens, then its name is added."""
    analysis = spark._jvm.org.apache.spark.sql.catalyst.analysis
    found = set()
    for registry in (analysis.FunctionRegistry.builtin(), analysis.TableFunctionRegistry.builtin()):
        names = registry.listFunction().mkString(" ").split(" ")
        found |= {name.rpartition(".")[2] for name in names}
    reviewed = set(_REVIEWED.read_text("utf-8").split())
    assert found - reviewed == set(), "read what these do; add them to RUNS_OR_READS if they run or read"
    assert found >= RUNS_OR_READS
    assert StoredSql(spark)._is_builtin("upper")
