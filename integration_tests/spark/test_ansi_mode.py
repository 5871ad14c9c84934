"""ANSI mode of Spark: what raises in it, and everything of ours that gives the same with and without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import dbt.include.tablestore
import tablestore_engine
from dbt.adapters import tablestore
from integration_tests.spark.session_settings import with_setting
from tablestore_engine.api import (
    ChangesBetween,
    Engine,
    SparkSettings,
    TableSpec,
    TableVersion,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.errors import FixData, TablestoreError
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.evolution_cast import cast_column, check_cast
from tablestore_engine.format.safe_cast import safe_cast
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.spark.traced_answers import Before
from tablestore_engine.spark.view_sql import ROWS, select_columns
from tests.doses import examples

ANSI = "spark.sql.ansi.enabled"
RAISED = {  # an expression → what it gives without ANSI mode
    "2147483647 + n": "-2147483648",
    "n / 0": "None",
    "n % 0": "None",
    "cast('x' || n as int)": "None",
    "array(n)[n]": "None",
    "cast(3000000000 * n as int)": "-1294967296",
    "to_date('x' || n)": "None",
    "to_timestamp('x' || n, 'yyyy')": "None",
    "make_date(2026, 12 + n, 1)": "None",
    "sum(9223372036854775807 * n) + 1": "-9223372036854775808",
    "cast(100 * n as decimal(2, 0))": "None",
    "elt(n + 1, 'a')": "None",
}
VALUES = {  # of the format's types, at their ends
    "TINYINT": [-128, 127, None],
    "SMALLINT": [-32768, 32767, 300],
    "INT": [-(2**31), 2**31 - 1, 70000],
    "BIGINT": [-(2**63), 2**63 - 1, 2**40 + 5],
    "FLOAT": [1.5, float("inf"), -0.0],
    "DOUBLE": [1e300, float("nan"), 1e7],
    "BOOLEAN": [True, False, None],
    "DECIMAL(12,9)": ["0.000000001", "-999.123456789", "0"],
    "DECIMAL(38,10)": ["0.0000000001", "-1234567890123456789012345678.1", None],
    "STRING": ["a", "", None],
    "DATE": [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31)],
}
# Everything of ours that makes SQL or columns which compute or cast, and what is the same with and without ANSI mode
SAME = {
    "spark/bucket_expression.py": "test_bucket_expression.py walks Paimon's vectors in both modes",
    "spark/view_sql.py": "test_casts_of_old_files_…; the words of deleted rows: test_everything_of_ours_…",
    "spark/struct_values.py": "try_cast: test_values_are_stored_as_spark_stores_them",
    "spark/dml_queries.py": "NULLs, row kinds; structs that have their types already",
    "spark/collected_rows.py": "only nullability changes",
    "spark/arrow_relation.py": "raise_error only",
    "spark/class_archive.py": "a query that fills a class archive; its rows are not read",
    "spark/input_changes.py": "floats as text, which both modes write alike",
    "spark/changed_rows_text.py": "a sum of 1 and -1; floats as text, which both modes write alike",
    "spark/net_rows.py": "floats as text, which both modes write alike; a count as INT",
    "spark/collected_parts.py": "literals of values that the type has already",
    "spark/delta_query.py": "values to DECIMAL(38) of their scale: test_a_change_without_room_is_left_to_the_query",
    "spark/merged_groups.py": "Arrow casts, not Spark",
    "spark/state_results.py": "sums with room in their type, else a group is evaluated: test_group_state_laws.py",
    "catalog/system_tables/file_tables.py": "values of partitions as text, in Python",
    "spark/incoming_frame.py": "constants; conditions are the user's",
    "spark/write.py": "numbers of buckets as BIGINT, hash values of 32 bits",
    "queryplan/empty_result.py": "a text in a docstring",
    "spark/moving_times.py": "analyzed, never run",
    "api/table_resnapshot.py": "columns of a snapshot as texts and numbers of the table's own types",
    "adapter plan/changed_keys_sql.py": "constants",
    "adapter plan/select_sql.py": "keys as text, in an error",
    "adapter python_models/keyed_inputs.py": "a row as text, so that each column is read; test_python_changed_keys.py",
    "adapter inputs/changed_rows_sql.py": "constants",
    "macros materializations/snapshot_time.sql": "moments of dbt as microseconds, columns as text",
    "macros materializations/snapshot_rows.sql": "times of dbt, to the type that the column has already",
    "macros materializations/unit.sql": "values that the user wrote, cast by dbt's macro",
    "macros utils/listagg.sql": "to text",
    "macros utils/safe_cast.sql": "try_cast: test_cross_database_macros.py",
    "macros utils/dateadd.sql": "an interval that the user wrote",
    "macros utils/split_part.sql": "try_element_at",
    "macros adapters/metadata.sql": "NULL, milliseconds of a snapshot",
}
_COMPUTES = re.compile(
    r"(?<![.\w])(?:try_)?cast\(|\.(?:try_)?cast\(\"|\.cast\((?:spark_ddl|kind)|element_at\(|pmod|timestamp_millis"
    r"|timestamp(?:add|diff)\(|\bsum\(if"
)
_NOT_SPARK = re.compile(r"\.cast\(pa\.|\.cast\(\"B\"\)|typing|\bcast\(\"Call\"")


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """A schema without tables."""
    del spark
    with Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]")) as engine:
        engine.create_database("demo")
        yield engine


def test_values_without_result_raise_with_sparks_words_and_a_hint(engine: Engine) -> None:
    """In ANSI mode each is TS2157 and names the way to NULL; without it the value is as documented."""
    for expression, plain in RAISED.items():
        query = f"select {expression} as v from values (1) as t(n)"
        with with_setting(engine.spark, ANSI, "true"), pytest.raises(FixData, match="TS2157") as caught:
            engine.sql(query)
        assert "SQLSTATE: 22" in caught.value.why, expression
        assert "try_divide" in caught.value.fix
        with with_setting(engine.spark, ANSI, "false"):
            assert str(engine.sql(query).rows[0][0]) == plain, expression


def test_a_change_without_room_is_left_to_the_query(engine: Engine) -> None:
    """Changes that add up to more than 38 digits: the query evaluates the group, in both modes."""
    engine.sql("create table demo.t (id int not null, x decimal(38, 0), primary key (id))")
    engine.sql("insert into demo.t values (1, 5)")
    query = "select 1 as one, sum(x) as s from demo.t"
    key = TableSpec(primary_key=("one",), options={"bucket": "1"})
    for before, setting in enumerate(("false", "true"), start=1):
        engine.write("demo.total", query, WriteSpec(table=key, mode=WriteMode.OVERWRITE_TABLE))
        engine.sql(f"insert into demo.t values ({before * 10}, {'6' * 38}), ({before * 10 + 1}, {'6' * 38})")
        newest = engine.table("demo.t").latest_snapshot_id()
        changes = {"demo.t": TableVersion(changes=ChangesBetween(newest - 1, newest))}
        views = (engine.changed_keys.new_view(), engine.changed_keys.new_view())
        stored = engine.changed_keys.stored_rows(engine.table("demo.total"))
        with (
            with_setting(engine.spark, ANSI, setting),
            engine.changed_keys.trace(query, versions={}) as traced,
        ):
            found = traced.plan_deltas(("one",), changes, has_state=False).follow(Before(stored, views))
        rows = None if found.table is None else found.table.column("s").to_pylist()
        assert (rows, found.again.count) == (
            (None, 1) if setting == "true" else ([None], 0)
        )  # its error, or NULL
        assert (found.evaluated, found.clause) == (1, "")
        engine.sql(f"delete from demo.t where id >= {before * 10}")


def test_deleted_rows_raise_nothing(engine: Engine) -> None:
    """Rows that a bitmap hides, and old versions of rows, are not computed: neither in filters nor joins nor totals."""
    engine.sql("create table demo.t (id int not null, s string, x int, primary key (id))")
    engine.sql(
        "insert into demo.t select int(id), if(id % 9 = 0, 'bad', string(id)), int(id % 9) from range(1, 999)"
    )
    engine.sql("delete from demo.t where x = 0 and id < 500")
    engine.sql("update demo.t set s = string(id), x = 1 where x = 0")
    for text, wanted in {
        "select sum(cast(s as int)), count(*) from demo.t": None,
        "select count(*) from demo.t where cast(s as int) > 0 and 10 / x > 0": 943,
        "select count(*) from demo.t a join demo.t b on cast(a.s as int) = b.id where 10 / b.x > 0": 943,
        "select count(*) from (select 10 / x as y, max(cast(s as int)) over (partition by x) as m from demo.t)": 943,
    }.items():
        with with_setting(engine.spark, ANSI, "true"):
            found = engine.sql(text).rows[0]
        assert wanted is None or found[0] == wanted, text
    with with_setting(engine.spark, ANSI, "true"):
        assert engine.sql("update demo.t set x = 10 div x where cast(s as int) > 0").report is not None


def test_casts_of_old_files_are_those_of_the_format_in_both_modes(spark: SparkSession) -> None:
    """Every pair of types that an old file may be read as: Spark's view gives what the Arrow reader gives."""
    compared = 0
    for old, values in list(VALUES.items())[:: examples(2, 1)]:
        for new in (*VALUES, "TIMESTAMP(6)"):
            before, after = parse_type(old), parse_type(new)
            try:
                check_cast(before, after, column="c")
                array = pa.array(values, pa.string() if "DECIMAL" in old else None).cast(
                    type_to_arrow(before)
                )
                wanted = [repr(one) for one in cast_column(array, before, after).to_pylist()]
            except TablestoreError:
                continue  # refused by both, or values that do not fit
            schemas = [TableSchema(n, (DataField(0, "c", one),), 1) for n, one in enumerate((before, after))]
            spark.createDataFrame(pa.table({"c": array})).createOrReplaceTempView("old_rows")
            for setting in ("true", "false"):
                with with_setting(spark, ANSI, setting):
                    text = f"select {select_columns(*schemas)} from old_rows as {ROWS}"
                    found = [repr(one) for one in spark.sql(text).toArrow().column(0).to_pylist()]
                assert found == wanted, (old, new, setting)
            compared += 1
    spark.catalog.dropTempView("old_rows")
    assert compared > examples(20, 40)


@pytest.mark.nightly  # by day the values and casts of this file
def test_everything_of_ours_is_the_same_in_both_modes(engine: Engine) -> None:
    """Writes with conditions, statements, changes, past states and system tables: the same rows with and without."""
    found = []
    for number, setting in enumerate(("true", "false")):
        with with_setting(engine.spark, ANSI, setting):
            found.append(_history(engine, f"h{number}"))
    assert found[0] == found[1]
    assert all(found[0])


def _history(engine: Engine, database: str) -> list[object]:
    engine.create_database(database)
    name = f"{database}.t"
    engine.sql(
        f"create table {name} (id bigint not null, d decimal(20,9), f double, m map<string,int>, a array<int>, "
        "s struct<v:smallint>, primary key (id)) tblproperties ('bucket' = '3', 'changelog-producer' = 'lookup')"
    )
    engine.sql(
        f"insert into {name} select id, id / 1000000000BD, id / 7, map('k', int(id)), array(int(id)), "
        "named_struct('v', int(id)) from range(-50, 50)"
    )
    engine.sql(f"delete from {name} where id % 3 = 0")
    engine.sql(f"update {name} set d = -d, s.v = 7 where m['none'] is null and get(a, 3) is null and id > 0")
    rows = f"select id, 5 as v from range(40, 60) union all select {2**62}, 6"
    engine.sql(
        f"merge into {name} t using ({rows}) q on t.id = q.id when matched then update set a = array(q.v) "
        "when not matched then insert (id, f) values (q.id, q.v)"
    )
    table = pa.table({"id": [1, 2, 3], "f": [1.0, None, -0.0]})
    engine.write(
        name, table, WriteSpec(delete_when="f is null", checks={"small": "f < 10"}, missing_columns="null")
    )
    queries = [
        f"select * from {name}",
        f"select * from {name} version as of 2",
        f"select * from {database}__changes_1_to_4.t",
        f"select column_name, data_type from information_schema.columns where table_schema = '{database}'",
    ]
    return [sorted(map(repr, engine.sql(one).rows)) for one in queries]


MOMENT = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - a TIMESTAMP_NTZ
# (from, to) of the table in docs/sql.md → value and column in SQL, what is stored or the error; then the same in Python
STORED: dict[tuple[str, str], tuple[str, str, str, object, pa.DataType, object]] = {
    ("DECIMAL, DOUBLE, FLOAT", "integer"): ("1.9", "int", "1", 1.9, pa.int32(), None),
    ("number", "integer, beyond its range"): ("3000000000", "int", "TS1526", 3000000000, pa.int32(), None),
    ("DECIMAL", "DECIMAL of a smaller scale"): (
        "1.2345", "decimal(6,2)", "1.23", Decimal("1.2345"), pa.decimal128(6, 2), None,
    ),
    ("number", "DECIMAL, beyond its precision"): (
        "12345.6", "decimal(6,2)", "TS1526", Decimal("12345.6"), pa.decimal128(6, 2), None,
    ),
    ("DOUBLE", "FLOAT, beyond its range"): ("1e300", "float", "inf", 1e300, pa.float32(), None),
    ("TIMESTAMP", "DATE"): ("timestamp '2026-01-02 03:04:05'", "date", "2026-01-02", MOMENT, pa.date32(), None),
    ("DATE", "TIMESTAMP"): (
        "date '2026-01-02'", "timestamp_ntz", "2026-01-02 00:00:00",
        date(2026, 1, 2), pa.timestamp("us"), datetime(2026, 1, 2),  # noqa: DTZ001
    ),
    ("any atomic type", "STRING"): ("date '2026-01-02'", "string", "2026-01-02", 12, pa.string(), "12"),
    ("STRING", "number"): ("'12'", "int", "TS2156", "12", pa.int32(), 12),
    ("STRING", "DATE, TIMESTAMP"): ("'2026-01-02'", "date", "TS2156", "2026-01-02", pa.date32(), date(2026, 1, 2)),
    ("STRING", "BINARY"): ("'a'", "binary", "TS2156", "a", pa.binary(), b"a"),
    ("BOOLEAN", "number"): ("true", "int", "TS2156", True, pa.int32(), 1),
    ("TIMESTAMP", "number"): ("timestamp '2026-01-02 03:04:05'", "bigint", "TS2156", MOMENT, pa.int64(), None),
    ("number", "BOOLEAN"): ("1", "boolean", "TS2156", 2, pa.bool_(), None),
    ("number", "TIMESTAMP"): ("1", "timestamp", "TS2156", 1, pa.timestamp("us"), None),
}  # fmt: skip


@pytest.mark.parametrize("setting", ["true", pytest.param("false", marks=pytest.mark.nightly)])
def test_values_are_stored_as_spark_stores_them(engine: Engine, setting: str) -> None:
    """By INSERT, UPDATE and MERGE, in both modes: what Spark's own INSERT into a parquet table refuses is refused, what
    it stores is stored, and what overflows raises. LEGACY stores all that can be cast.
    """
    spark = engine.spark
    with with_setting(spark, ANSI, setting):
        for number, (value, type_, wanted, *_) in enumerate(list(STORED.values())[:: examples(3, 1)]):
            name, query = f"demo.s{number}", f"(select 1 as id, {value} as v) q on t.id = q.id"
            engine.sql(f"create table {name} (id int not null, v {type_}, primary key (id))")
            engine.sql(f"insert into {name} (id) values (1)")
            spark.sql(f"create table reference{number} (v {type_}) using parquet")
            insert = f"insert into reference{number} select {value}"
            for text in (
                f"insert into {name} values (2, {value})",
                f"update {name} set v = {value}",
                f"merge into {name} t using {query} when matched then update set v = q.v",
            ):
                if wanted.startswith("TS"):
                    with pytest.raises(TablestoreError, match=wanted):
                        engine.sql(text)
                    assert engine.sql(f"select count(v) from {name}").rows == ((0,),)
                else:
                    engine.sql(text)
                    assert str(engine.sql(f"select max(v) from {name}").rows[0][0]) == wanted, text
            if wanted == "TS2156":
                with pytest.raises(AnalysisException, match="CANNOT_SAFELY_CAST"):
                    spark.sql(insert)
            elif wanted != "TS1526":
                spark.sql(insert)
                assert str(spark.table(f"reference{number}").first()[0]) == wanted
            spark.sql(f"drop table reference{number}")
        with with_setting(spark, "spark.sql.storeAssignmentPolicy", "LEGACY"):
            engine.sql("create table demo.legacy (v int)")
            engine.sql("insert into demo.legacy values ('12')")
            with pytest.raises(FixData, match="TS1526"):
                engine.sql("insert into demo.legacy values ('x')")


def test_the_page_says_what_is_stored() -> None:
    """The table of docs/sql.md has these rows, the codes of SQL in them, and what Python writes store or refuse."""
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text("utf-8")
    table = page[page.index("| from | to | SQL statement") :].split("\n\n")[0].splitlines()[2:]
    rows = {
        tuple(cells[:2]): cells[2:]
        for cells in ([one.strip() for one in row.split("|")[1:-1]] for row in table)
    }
    assert set(rows) == set(STORED)
    for pair, (_, _, wanted, value, type_, kept) in STORED.items():
        assert (wanted == rows[pair][0]) == wanted.startswith("TS"), pair
        column = pa.chunked_array([pa.array([value])])
        assert ("refused" in rows[pair][1]) == (kept is None), pair
        if kept is None:
            with pytest.raises(pa.ArrowInvalid):
                safe_cast(column, type_)
        else:
            assert safe_cast(column, type_).to_pylist() == [kept], pair


def test_every_computation_of_ours_is_known() -> None:
    """A module or macro that makes Spark compute or cast is in the table with what proves it; a new one fails here."""
    roots = {
        "": (
            Path(tablestore_engine.__file__).parent,
            "*.py",
            ("spark", "warehouse", "queryplan", "api", "catalog"),
        ),
        "adapter ": (Path(tablestore.__file__).parent, "*.py", (".",)),
        "macros ": (Path(next(iter(dbt.include.tablestore.__path__))) / "macros", "*.sql", (".",)),
    }
    found = {
        prefix + str(path.relative_to(root))
        for prefix, (root, pattern, parts) in roots.items()
        for part in parts
        for path in (root / part).rglob(pattern)
        if any(
            _COMPUTES.search(line) and not _NOT_SPARK.search(line) for line in path.read_text().splitlines()
        )
    }
    assert found == set(SAME)
