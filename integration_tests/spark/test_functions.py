"""SQL functions of the warehouse: stored as text, registered in Spark on use, expanded before anything is proven."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, TableSpec, TableVersion, WriteSpec
from tablestore_engine.catalog.functions import FunctionDefinition
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.resolved_names import NO_OVERRIDES
from tablestore_engine.errors import FixData, FixRequest, NotFound, TablestoreError, Unsupported
from tablestore_engine.spi import ReadLog
from tests.doses import cases

KEYED = WriteSpec(TableSpec(primary_key=("id",), options={"bucket": "1"}))
_OTHER_PROCESS = """
import sys
from tablestore_engine.api import Engine
with Engine(sys.argv[1]) as engine:
    print(engine.sql(sys.argv[2]).rows)
"""


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """A warehouse with the table demo.t of two rows; `spark` is the session that it adopts."""
    with Engine(str(tmp_path / "warehouse")) as made:
        made.write("demo.t", pa.table({"id": [1, 2], "name": ["a", "b"]}), KEYED)
        yield made


@pytest.fixture
def other(engine: Engine) -> Iterator[Engine]:
    """Another engine of the warehouse, as another process has it."""
    with Engine(engine.warehouse) as made:
        yield made


def value(engine: Engine, sql: str, **versions: TableVersion) -> object:
    """The only value of a query."""
    [[found]] = engine.sql(sql, versions={f"demo.{name}": one for name, one in versions.items()}).rows
    return found


def store(engine: Engine, name: str, sql: str) -> None:
    """As another process does: the file is there, this engine has not written it."""
    engine._warehouse.catalog.functions.put(Identifier("demo", name), FunctionDefinition(sql))


# --- calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "call", "expected"),
    [
        ("(x int) returns int return x + 1", "demo.f(2)", 3),
        ("(x int) returns int return select x + 1", "`demo`.`F` /* c */ (2)", 3),
        ("(x int, y int default 10) returns int return x * y -- product", "demo.f(y => 2, x => 4)", 8),
        ("(x int, y int default 10) returns int return x * y", "spark_catalog.demo.f(4)", 40),
        ("(x int) return x * 2", "demo.f(4)", 8),
        (
            "(s struct<a: int, b: array<string>>) returns string language sql comment 'it''s' return s.b[s.a]",
            "demo.f(named_struct('a', 1, 'b', array('x', 'y')))",
            "y",
        ),
        ("() returns bigint reads sql data return (select sum(id) from demo.t)", "demo.f()", 3),
    ],
)
def test_scalar_function_is_called_in_a_query(
    engine: Engine, definition: str, call: str, expected: object
) -> None:
    """As an expression or a query, with defaults and names of arguments."""
    engine.sql(f"create function demo.f{definition}")
    assert value(engine, f"select {call}") == expected
    assert engine.functions("demo") == ("f",)


def test_table_function_is_called_in_from(engine: Engine) -> None:
    """Also by LATERAL, over the rows of a table."""
    engine.sql("create function demo.up(n bigint) returns table(id bigint, name string) "
               "return select id, name from demo.t where id <= n")  # fmt: skip
    assert [tuple(row) for row in engine.sql("select * from demo.up(1)").rows] == [(1, "a")]
    joined = engine.sql("select t.id, u.id from demo.t, lateral demo.up(t.id) u order by 1, 2").rows
    assert [tuple(row) for row in joined] == [(1, 1), (2, 1), (2, 2)]


def test_replaced_function_is_seen_by_other_engine(engine: Engine, other: Engine) -> None:
    """By its next statement, also through a view and through another function, whose types follow."""
    engine.sql("create function demo.f(x int) returns int return x + 1")
    engine.sql("create function demo.g(x int) return demo.f(x)")
    engine.sql("create view demo.v as select demo.g(1) as n")
    assert [value(one, "select * from demo.v") for one in (engine, other)] == [2, 2]
    other.sql("create or replace function demo.f(x int) returns string return concat('x', x)")
    assert [value(one, "select n from demo.v") for one in (engine, other)] == ["x1", "x1"]
    assert engine.query_columns("select n from demo.v")[0].type_text == "string"
    engine.sql("create or replace function demo.f(x int) returns table(y int) return select x")
    assert value(other, "select * from demo.f(4)") == 4
    engine.sql("drop function demo.f")
    with pytest.raises(FixRequest, match=r"(?s)TS1505.*UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        other.sql("select * from demo.f(4)")


@pytest.mark.nightly  # by day adapter/test_functions.py: a later command
def test_function_is_used_by_later_process(engine: Engine) -> None:
    """With a session of its own, from the text in the warehouse."""
    engine.sql("create function demo.f(x bigint) returns bigint return (select max(id) from demo.t) * x")
    done = subprocess.run(
        [sys.executable, "-c", _OTHER_PROCESS, engine.warehouse, "select demo.f(21)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "42" in done.stdout


def test_function_is_current_in_each_session(engine: Engine, spark: SparkSession) -> None:
    """Sessions share Spark's catalog, and each caches what it has called."""
    engine.sql("create function demo.f() returns int return 1")
    resolver = engine._warehouse.resolver
    more = spark.newSession()

    def found(session: SparkSession) -> int:
        return int(resolver.query_in(session, "select demo.f()", NO_OVERRIDES)[0].collect()[0][0])

    assert (found(spark), found(more)) == (1, 1)
    for number in (2, 3):
        engine.sql(f"create or replace function demo.f() returns int return {number}")
        assert (found(more), found(spark), found(more)) == (number,) * 3


def test_computed_name_finds_current_function(engine: Engine, other: Engine) -> None:
    """IDENTIFIER hides the name from the text."""
    engine.sql("create function demo.f() returns int return 1")
    assert value(engine, "select demo.f()") == 1
    other._warehouse.catalog.functions.put(
        Identifier("demo", "f"), FunctionDefinition("() returns int return 2")
    )
    assert value(engine, "select identifier('demo.f')()") == 2


def test_function_and_table_may_have_the_same_name(engine: Engine) -> None:
    """As in Spark, each in its own name space; dropping one leaves the other."""
    engine.sql("create function demo.t(x bigint) returns bigint return (select max(id) from demo.t) + x")
    assert [tuple(row) for row in engine.sql("select demo.t(id) from demo.t order by 1").rows] == [(3,), (4,)]
    engine.sql("create view demo.w as select 1 as x")
    engine.sql("create function demo.w() returns int return 2")
    engine.sql("drop view demo.w")
    assert value(engine, "select demo.w()") == 2
    engine.sql("drop function demo.t")
    assert value(engine, "select count(*) from demo.t") == 2


# --- statements ----------------------------------------------------------------------------------


def test_show_and_describe(engine: Engine) -> None:
    """From the warehouse."""
    engine.sql("create schema more")
    engine.sql(
        "create function demo.F(x int default 1) returns int not deterministic comment 'one' return x + 1"
    )
    engine.sql("create function demo.tf() returns table(a int) return select 1")
    assert engine.sql("show functions in demo").rows == (("demo.f",), ("demo.tf",))
    assert engine.sql("show user functions from demo like 't*'").rows == (("demo.tf",),)
    assert engine.sql("show functions in more").rows == ()
    assert ("abs",) in engine.sql("show functions").rows
    lines = [row[0] for row in engine.sql("describe function extended demo.f").rows]
    assert lines == [
        "Function:      demo.f", "Type:          SCALAR", "Input:         x int DEFAULT 1",
        "Returns:       int", "Comment:       one", "Deterministic: false", "Body:          x + 1",
    ]  # fmt: skip
    assert ("Type:          TABLE",) in engine.sql("desc function demo.tf").rows
    assert engine.sql("describe function abs").rows
    with pytest.raises(NotFound, match="TS1461"):
        engine.sql("describe function demo.gone")
    with pytest.raises(NotFound, match="TS1405"):
        engine.sql("show functions in gone")


def test_create_and_drop_conditions(engine: Engine) -> None:
    """IF NOT EXISTS keeps what is there, plain CREATE refuses it, DROP IF EXISTS does nothing."""
    engine.sql("create function if not exists demo.f() returns int return 1")
    engine.sql("create function if not exists demo.f() returns int return 2")
    assert value(engine, "select demo.f()") == 1
    with pytest.raises(FixRequest, match="TS1460"):
        engine.sql("create function demo.f() returns int return 2")
    engine.sql("drop function if exists demo.f")
    engine.sql("drop function if exists demo.f")
    with pytest.raises(NotFound, match="TS1461"):
        engine.sql("drop function demo.f")


def test_schema_with_functions_is_not_empty(engine: Engine) -> None:
    """RESTRICT refuses, CASCADE drops them; a new schema of the name has none."""
    engine.sql("create schema only")
    engine.sql("create function only.f() returns int return 1")
    assert value(engine, "select only.f()") == 1
    with pytest.raises(FixRequest, match=r"(?s)TS1404.*holds f"):
        engine.sql("drop schema only")
    engine.sql("drop schema only cascade")
    engine.sql("create schema only")
    assert engine.functions("only") == ()
    with pytest.raises(FixRequest, match=r"(?s)TS1505.*UNRESOLVED_ROUTINE"):
        engine.sql("select only.f()")


_BAD = {
    "body": ("demo.f(x int) returns int return y + 1", "TS1505.*UNRESOLVED_COLUMN"),
    "type": ("demo.f(x int) returns nothing return x", "TS1505.*UNSUPPORTED_DATATYPE"),
    "result": ("demo.f(x int) returns int return array(x)", "TS1505.*DATATYPE_MISMATCH"),
    "twice": ("demo.f(x int, x int) returns int return x", "TS1505.*DUPLICATE_ROUTINE_PARAMETER_NAMES"),
    "itself": ("demo.f(x int) returns int return demo.f(x - 1)", "TS1535.*demo.f → demo.f"),
    "through": ("demo.f(x int) returns int return demo.over(x)", "TS1535.*demo.f → demo.over → demo.f"),
    "through view": ("demo.f(x int) returns int return (select n from demo.v)", "TS1535.*demo.f → demo.v → demo.f"),
    "aggregate": ("demo.f(x int) returns int return sum(x)", "TS1505.*CANNOT_CONTAIN_COMPLEX_FUNCTIONS"),
    "table": ("demo.f(x int) returns int return (select max(id) from demo.gone)", "TS1515.*demo.gone"),
    "schema": ("gone.f(x int) returns int return x", "TS1405"),
    "no schema": ("f(x int) returns int return x", "TS1459"),
    "default": ("default.f(x int) returns int return x", "TS1459"),
    "no type": ("demo.f(x) returns int return x", "TS1501"),
    "no body": ("demo.f(x int) returns int", "TS1501"),
    "class": ("demo.f as 'org.example.F' using jar 'f.jar'", "TS1534.*jar"),
    "python": ("demo.f(x int) returns int language python as $$ x $$", "TS1534.*LANGUAGE PYTHON"),
    "dollars": ("demo.f(x int) returns int as $$ x $$", "TS1534"),
    "time travel": (
        "demo.f(x int) returns int return (select max(id) from demo.t version as of x)",
        "TS1503",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", cases(_BAD, 9))
def test_bad_function_changes_nothing(engine: Engine, case: str) -> None:
    """What cannot work is refused, and the function of the name stays."""
    definition, error = _BAD[case]
    engine.sql("create function demo.f(x int) returns int return 7")
    engine.sql("create function demo.over(x int) returns int return demo.f(x)")
    engine.sql("create view demo.v as select demo.f(1) as n")
    with pytest.raises(TablestoreError, match=rf"(?s){error}"):
        engine.sql(f"create or replace function {definition}")
    assert value(engine, "select demo.f(1)") == 7
    assert engine.functions("demo") == ("f", "over")


def test_aggregate_function_is_refused(engine: Engine) -> None:
    """With its name."""
    with pytest.raises(Unsupported, match=r"TS1534.*an aggregate function"):
        engine.sql("create or replace aggregate function demo.f(x int) returns int return sum(x)")


def test_condition_of_a_write_calls_no_function(engine: Engine) -> None:
    """Nothing looks its name up."""
    engine.sql("create function demo.f(x bigint) returns boolean return x > 0")
    with pytest.raises(Unsupported, match=r"TS1536.*demo\.f\(\)"):
        engine.sql("create table demo.c (id bigint, constraint c check (demo.f(id))) as select 1L as id")
    with pytest.raises(Unsupported, match="TS1536"):
        engine.write("demo.t", "select 3L as id, 'c' as name", WriteSpec(delete_when="demo.f(id)"))
    assert value(engine, "select count(*) from demo.t") == 2


def test_damaged_function_is_told_and_can_be_dropped(engine: Engine) -> None:
    """Its file is not JSON of a function."""
    store(engine, "f", "(x int) returns int")
    with pytest.raises(FixData, match="TS1458"):
        engine.sql("select demo.f(1)")
    engine.sql("drop function demo.f")
    assert engine.functions("demo") == ()


# --- reads ---------------------------------------------------------------------------------------


def test_reads_through_a_function_are_noted(engine: Engine) -> None:
    """As those through a view, also when a function calls one; a constant state is a constant."""
    engine.sql("create function demo.newest() returns bigint return (select max(id) from demo.t)")
    engine.sql(
        "create function demo.then() returns bigint return (select max(id) from demo.t version as of 1)"
    )
    engine.sql("create function demo.twice() returns bigint return 2 * demo.newest()")
    engine.sql("create view demo.v as select demo.twice() as n")
    reads = ReadLog()
    engine.sql("select * from demo.v", reads=reads)
    assert [(one.table, one.snapshot) for one in reads.reads()] == [("demo.t", 1)]
    fixed = ReadLog()
    engine.sql("select demo.then()", reads=fixed)
    assert (fixed.reads(), [one.table for one in fixed.constants()]) == ((), ["demo.t"])
    assert engine.query_names("select * from demo.v") == {"demo.v", "demo.t"}


def test_states_hold_inside_a_function(engine: Engine) -> None:
    """A pinned version, a version in the body, one snapshot per statement, and rows that were deleted."""
    engine.sql("create function demo.ids() returns string "
               "return (select array_join(sort_array(collect_list(id)), ',') from demo.t)")  # fmt: skip
    engine.sql(
        "create function demo.first() returns bigint return (select count(*) from demo.t version as of 1)"
    )
    engine.write("demo.t", pa.table({"id": [3], "name": ["c"]}), KEYED)
    engine.sql("delete from demo.t where id = 1")
    assert value(engine, "select demo.ids()") == "2,3"
    assert value(engine, "select demo.ids()", t=TableVersion(snapshot=1)) == "1,2"
    assert value(engine, "select demo.ids()", t=TableVersion(snapshot=2)) == "1,2,3"
    assert value(engine, "select demo.first()") == 2
    engine.sql("update demo.t set name = demo.ids() where id = 3")
    assert value(engine, "select name from demo.t where id = 3") == "2,3"


def test_update_and_delete_with_functions_of_columns_change_the_rows_that_spark_finds(engine: Engine) -> None:
    """In SET and WHERE, several of one parameter name; a MERGE refuses them (TS2121) and changes nothing."""
    engine.sql("create function demo.g(x bigint) returns bigint return x * 2")
    engine.sql(
        "create function demo.h(x bigint) returns string return (select max(name) from demo.t where id = x)"
    )
    before = engine.sql("select id, name from demo.t order by id").rows
    merge = (
        "merge into demo.t t using (select 2 as id) s on t.id = s.id when matched then update set name = {}"
    )
    with pytest.raises(FixRequest, match="TS2121"):
        engine.sql(merge.format("demo.h(s.id)"))
    assert engine.sql("select id, name from demo.t order by id").rows == before
    engine.sql("update demo.t set name = concat(demo.h(id), demo.h(id - 1)) where demo.g(id) = 4")
    assert value(engine, "select name from demo.t where id = 2") == "".join(dict(before)[at] for at in (2, 1))
    engine.sql("delete from demo.t where demo.g(id) = 4")
    assert value(engine, "select count(*) from demo.t where id = 2") == 0


# --- proofs --------------------------------------------------------------------------------------


def proven(engine: Engine, sql: str) -> tuple[str | None, tuple[str, ...], str | None]:
    """(what makes it another result each time, tables, why nothing can be restricted to keys)."""
    with engine.changed_keys.trace(sql, versions={}) as traced:
        return traced.volatile, traced.tables, traced.general_clause(("id",))


def test_pure_function_is_expanded_in_proofs(engine: Engine) -> None:
    """It hinders nothing: the proof is about its body."""
    engine.sql("create function demo.f(x bigint) returns bigint return x * 2")
    assert proven(engine, "select id, demo.f(id) as d from demo.t") == (None, ("demo.t",), None)


@pytest.mark.parametrize(
    "definition",
    [
        "(x bigint) returns bigint deterministic return x + cast(rand() * 10 as bigint)",
        "(x bigint) returns bigint return x + unix_timestamp()",
        "(x bigint) returns timestamp return current_timestamp()",
        "(x bigint) returns bigint not deterministic return x + 1",
    ],
)
def test_function_that_moves_is_volatile_in_proofs(engine: Engine, definition: str) -> None:
    """Whatever it declares; and whatever its body says, when it is declared NOT DETERMINISTIC."""
    engine.sql(f"create function demo.f{definition}")
    engine.sql("create function demo.over(x bigint) return demo.f(x)")
    engine.sql("create view demo.v as select id, demo.over(id) as d from demo.t")
    for sql in ("select id, demo.f(id) as d from demo.t", "select * from demo.v"):
        assert proven(engine, sql)[0] is not None


def test_table_of_a_function_is_an_input_in_proofs(engine: Engine) -> None:
    """As if the body stood in the query."""
    engine.write("demo.s", pa.table({"k": [1], "n": [5]}), WriteSpec(TableSpec()))
    engine.sql(
        "create function demo.f(x bigint) returns bigint return (select max(n) from demo.s where k = x)"
    )
    volatile, tables, _ = proven(engine, "select id, demo.f(id) as d from demo.t")
    assert (volatile, tables) == (None, ("demo.s", "demo.t"))


def test_table_function_is_expanded_in_proofs(engine: Engine) -> None:
    """A change of its table affects the keys of the changed rows alone."""
    engine.sql("create function demo.up(n bigint) returns table(id bigint, name string) "
               "return select id, upper(name) from demo.t where id <= n")  # fmt: skip
    with engine.changed_keys.trace("select * from demo.up(2)", versions={}) as traced:
        assert traced.general_clause(("id",)) is None
        assert [(one.table, one.clause) for one in traced.followed_inputs(("id",))] == [("demo.t", None)]


def test_context_of_a_query_names_its_functions(engine: Engine) -> None:
    """Another definition, another context: rows of the old one are not kept."""

    def context() -> str:
        with engine.changed_keys.trace("select id, demo.f(id) as d from demo.t", versions={}) as traced:
            return str(traced.context())

    engine.sql("create function demo.f(x bigint) returns bigint return x * 2")
    before = context()
    assert context() == before
    engine.sql("create or replace function demo.f(x bigint) returns bigint return x * 3")
    assert context() != before


@pytest.mark.parametrize(
    ("sql", "is_row_by_row"),
    [
        ("select demo.pure(id) as d from demo.t where demo.pure(id) > 0", True),
        ("select id, demo.newest() as n from demo.t", False),
        ("select t.id, u.id as other from demo.t, lateral demo.up(t.id) u", True),
        ("select * from demo.totals()", False),
    ],
)
def test_functions_over_streams(engine: Engine, sql: str, is_row_by_row: bool) -> None:
    """Row by row where the body is; what reads the stream in an expression or adds it up needs earlier ranges."""
    engine.write("demo.s", pa.table({"id": [1]}), WriteSpec(TableSpec()))
    engine.sql("create function demo.pure(x bigint) returns bigint return x * 2")
    engine.sql("create function demo.newest() returns bigint return (select max(id) from demo.t)")
    engine.sql("create function demo.up(n bigint) returns table(id bigint) "
               "return select id from demo.s where id <= n")  # fmt: skip
    engine.sql("create function demo.totals() returns table(n bigint) return select count(*) from demo.t")
    assert (engine.stateful_clause(sql, {"demo.t"}) is None) is is_row_by_row


# --- text that others stored ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "definition",
    [
        "() returns string return reflect('java.lang.System', 'getenv', 'HOME')",
        "() returns string return select reflect('a', 'b')",
        "() returns table(x string) return select reflect('a', 'b')",
        "(x string default reflect('a', 'b')) returns string return x",
        "() returns string return (select first(value) from text.`/etc/hostname`)",
        "() returns string return demo.bad()",
        "() returns string return foreign_of_a_jar()",
    ],
)
def test_stored_function_of_others_is_checked(engine: Engine, definition: str) -> None:
    """Body and defaults, also below a view and another function, and before Spark has it."""
    store(engine, "bad", "() returns string return reflect('a', 'b')")
    store(engine, "f", definition)
    engine._warehouse.catalog.functions.put(
        Identifier("demo", "over"), FunctionDefinition("() returns string return demo.f()")
    )
    with pytest.raises(Unsupported, match="TS1529 function demo"):
        engine.sql("select demo.over()")


def test_harmless_stored_function_of_others_is_used(engine: Engine) -> None:
    """Tables, functions of the warehouse and Spark's own functions are allowed, in views too."""
    store(engine, "f", "(x int default abs(-1)) returns int return upper(x) + (select max(id) from demo.t)")
    store(engine, "up", "(n bigint) returns table(id bigint) return select id from demo.t where id <= n")
    text = "select demo.f() + count(*) as n from demo.up(2)"
    engine.create_view("demo.mine", text)
    store(engine, "g", "() returns int return (select n from demo.mine)")
    assert value(engine, "select demo.g()") == 5


def test_file_of_a_function(engine: Engine) -> None:
    """JSON with a checksum, under the name in lower case."""
    engine.sql("create function demo.Price(x int) returns int return x")
    path = Path(engine.warehouse) / "demo.db/.tablestore/functions/price.json"
    content = json.loads(path.read_text())
    assert content["sql"] == "(x int) returns int return x"
