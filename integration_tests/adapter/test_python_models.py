"""Python models: what their code reads and gives, how it fails, and that their rows take the way of a query's rows."""

from __future__ import annotations

import datetime as dt
import shutil
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from integration_tests.adapter.conftest import Shop
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tests.doses import case_rows, cases

ENDLESS = "select a.id, count(*) as n from range(10000000) a cross join range(10000000) b group by a.id"
VALUES = (
    "select * from values"
    " (1, 9007199254740993L, 1.10BD, timestamp'2026-03-01 10:00:00.123456', timestamp_ntz'2026-03-01 10:00:00.000001',"
    " date'2026-03-01', x'00ff', array(1, 2), named_struct('a', 1, 'b', 'x'), true, 'grün', 1.5D),"
    " (2, null, null, null, null, null, null, null, named_struct('a', null, 'b', null), null, null, null)"
    " as t(id, big, price, at, local_at, day, raw, list, pair, flag, text, number)"
)
RETURNS = "def model(dbt, session):\n    dbt.config(dataframe='{}')\n    return dbt.ref('src')\n"
MERGED = """
def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id", wanted=7)
    new = dbt.ref("src")
    if dbt.is_incremental:
        known = session.sql(f"select max(version) from {dbt.this}").collect()[0][0]
        new = new.filter(new.version > known)
    assert str(dbt.this).replace("`", "") == f"{dbt.this.schema}.{dbt.this.identifier}" and dbt.this.database is None
    return new.withColumn("wanted", new.id * 0 + dbt.config.get("wanted"))
"""
FAILS = """


# the first lines of the file are blank
class Prices:
    def of(self, row):
        return 1 / row


def model(dbt, session):
    return Prices().of(0)
"""
NEXT = """
import polars as pl


def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    last = 0
    if dbt.is_incremental:
        last = session.sql(f"select max(id) from {dbt.this}").first()[0]
    return pl.DataFrame({"id": [last + 1]})
"""
TRIPLES = """
from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.functions import udf

FACTOR = 3


@dataclass
class Price:
    amount: int

    def times(self) -> int:
        return self.amount * FACTOR


def triple(n):
    return Price(n).times()


def model(dbt, session):
    f = udf(triple, "int")
    return session.sql("select 2 as n").select(f("n").alias("n"))
"""


@pytest.fixture
def bare(shop: Shop) -> Shop:
    """A project without models and seeds."""
    shutil.rmtree(shop.folder / "models")
    shutil.rmtree(shop.folder / "seeds")
    return shop


def source(shop: Shop, sql: str) -> None:
    """What the next build of `src` gives."""
    shop.write("models/src.sql", "{{ config(materialized='table') }} " + sql)


def message(shop: Shop, name: str = "m") -> str:
    """What run_results.json says of a node."""
    return str(shop.results()[name]["message"])


@pytest.mark.parametrize("kind", cases(["spark", "pandas", "polars", "arrow"], 2))
def test_frame_of_each_kind_keeps_rows_and_types(bare: Shop, kind: str) -> None:
    """From dbt.ref() through the frame into a table: the values and the types of the columns are those of the input."""
    source(bare, VALUES)
    bare.write("models/m.py", RETURNS.format(kind))
    bare.dbt("run")
    columns = {
        name: [(c.name, c.type_text) for c in bare.engine.columns(f"demo.{name}")] for name in ("src", "m")
    }
    if kind == "pandas":  # its dictionaries hold Python's integers, which are 64 bits wide
        columns["src"][8] = ("pair", "struct<`a`:bigint,`b`:string>")
    assert columns["m"] == columns["src"]
    assert bare.rows("select * from demo.m order by id") == bare.rows("select * from demo.src order by id")
    first = bare.rows("select big, price, local_at, raw from demo.m where id = 1")[0]
    moment = dt.datetime.fromisoformat("2026-03-01T10:00:00.000001")
    assert first == (9007199254740993, Decimal("1.10"), moment, b"\x00\xff")


def test_incremental_model_reads_its_table_and_merges(bare: Shop) -> None:
    """dbt.this, is_incremental and config; the second run changes one row, adds one, and leaves the rest."""
    source(bare, "select * from values (1, 1), (2, 1) as t(id, version)")
    bare.write("models/m.py", MERGED)
    bare.dbt("run")
    source(bare, "select * from values (1, 1), (2, 2), (3, 2) as t(id, version)")
    bare.dbt("run")
    assert bare.rows("select * from demo.m order by id") == [(1, 1, 7), (2, 2, 7), (3, 2, 7)]
    assert (bare.response("m")["rows_inserted"], bare.response("m")["rows_updated"]) == (1, 1)
    source(bare, "select 9 as id, 1 as version")
    bare.dbt("run", "--full-refresh")
    assert bare.rows("select id from demo.m") == [(9,)]


@pytest.mark.parametrize(
    ("config", "expected"),
    case_rows(
        [
            ("incremental_strategy='append'", [(1, "a"), (1, "b"), (2, "a"), (3, "b")]),
            ("incremental_strategy='delete+insert', unique_key='id'", [(1, "b"), (2, "a"), (3, "b")]),
            ("incremental_strategy='insert_overwrite', partition_by=['id']", [(1, "b"), (2, "a"), (3, "b")]),
            (
                "incremental_strategy='delete+insert', unique_key='id', incremental_predicates=['id < 2']",
                [(1, "b"), (2, "a"), (3, "b")],
            ),
            ("unique_key='id', merge_exclude_columns=['v']", [(1, "a"), (2, "a"), (3, "b")]),
        ],
        2,
    ),
)
def test_incremental_strategies_take_the_rows(
    bare: Shop, config: str, expected: list[tuple[int, str]]
) -> None:
    """Also those that write a query around the model's."""
    text = (
        "import pandas as pd\n\ndef model(dbt, session):\n    dbt.config(materialized='incremental', {})\n"
        "    return pd.DataFrame({}, columns=['id', 'v'])\n"
    )
    bare.write("models/m.py", text.format(config, [(1, "a"), (2, "a")]))
    bare.dbt("run")
    bare.write("models/m.py", text.format(config, [(1, "b"), (3, "b")]))
    bare.dbt("run")
    assert bare.rows("select * from demo.m order by 1, 2") == expected


def test_new_column_follows_on_schema_change(bare: Shop) -> None:
    """append_new_columns adds it; ignore leaves it out."""
    text = (
        "def model(dbt, session):\n    dbt.config(materialized='incremental', unique_key='id', on_schema_change='{}')\n"
        "    return session.sql('select {}')\n"
    )
    bare.write("models/m.py", text.format("ignore", "1 as id"))
    bare.dbt("run")
    bare.write("models/m.py", text.format("ignore", "2 as id, 5 as n"))
    bare.dbt("run")
    assert [column.name for column in bare.engine.columns("demo.m")] == ["id"]
    bare.write("models/m.py", text.format("append_new_columns", "3 as id, 5 as n"))
    bare.dbt("run")
    assert bare.rows("select * from demo.m order by id") == [(1, None), (2, None), (3, 5)]


def test_result_without_rows_makes_an_empty_table(bare: Shop) -> None:
    """With its columns."""
    source(bare, "select 1 as id, 'a' as v")
    bare.write("models/m.py", RETURNS.format("polars").replace("('src')", "('src').clear()"))
    bare.dbt("run")
    assert bare.rows("select count(*) from demo.m") == [(0,)]
    assert [column.name for column in bare.engine.columns("demo.m")] == ["id", "v"]


def test_rows_of_gated_parent_are_read_while_staged(bare: Shop) -> None:
    """A red test of the parent holds back the model that has read its staged rows; both go out together."""
    bare.output["threads"] = 1
    gate = (
        "models: [{{name: src, columns: [{{name: id, data_tests: [{{relationships: {{arguments:"
        " {{to: ref('known'), field: id}}, config: {{where: 'id < {}'}}}}}}]}}]}}]"
    )
    bare.write("models/known.sql", "{{ config(materialized='table') }} select explode(sequence(1, 9)) as id")
    bare.write("models/gates.yml", gate.format(99))
    source(bare, "select 1 as id")
    bare.write("models/m.py", RETURNS.format("arrow"))
    bare.dbt("build")
    source(bare, "select 12 as id")
    bare.dbt("build", ok=False)
    assert bare.rows("select * from demo.m") == [(1,)]
    assert bare.response("m")["published"] is False
    assert "built from staged rows of demo.src" in bare.response("m")["reason"]
    bare.write("models/gates.yml", gate.format(10))
    bare.dbt("retry")
    assert bare.rows("select * from demo.m") == [(12,)]
    assert bare.engine.staged("demo") == ()


def test_name_that_is_no_ref_is_known_as_read(bare: Shop) -> None:
    """The first rows of `src` wait for a test that fails; what has read them by name waits, too, in both languages."""
    bare.output["threads"] = 1
    bare.write("models/known.sql", "{{ config(materialized='table') }} select 2 as id")
    bare.write(
        "models/gates.yml",
        "models: [{name: src, columns: [{name: id, data_tests: [{relationships: {arguments:"
        " {to: ref('waits'), field: id}}}]}]}]",
    )
    bare.write(
        "models/waits.sql",
        "{{ config(materialized='table') }} -- {{ ref('y') }} {{ ref('z') }}\n select 2 as id",
    )
    source(bare, "select 1 as id")
    bare.write(
        "models/y.sql",
        "-- depends_on: {{ ref('known') }}\n{{ config(materialized='table') }} select * from demo.src",
    )
    bare.write(
        "models/z.py",
        "def model(dbt, session):\n    known = dbt.ref('known')\n    return session.table('demo.src')\n",
    )
    bare.dbt("build", ok=False)
    answers = [bare.response(name) for name in ("y", "z")]
    assert [answer.get("published") for answer in answers] == [False, False]
    assert {"y", "z"} & bare.tables() == set()


def test_own_failing_test_holds_the_rows_back(bare: Shop) -> None:
    """The gate of a Python model is that of any model."""
    bare.write("models/m.yml", "models: [{name: m, columns: [{name: id, data_tests: [not_null]}]}]")
    bare.write("models/m.py", "def model(dbt, session):\n    return session.sql('select 1 as id')\n")
    bare.dbt("build")
    text = "def model(dbt, session):\n    return session.sql('select cast(null as int) as id')\n"
    bare.write("models/m.py", text)
    bare.dbt("build", ok=False)
    assert bare.rows("select * from demo.m") == [(1,)]


def test_code_runs_again_when_its_plan_is_made_again(bare: Shop) -> None:
    """Somebody commits to the table while its tests run: the next rows are computed from that, tested and published."""
    bare.write("models/m.yml", "models: [{name: m, columns: [{name: id, data_tests: [not_null]}]}]")
    bare.write("models/m.py", NEXT)
    bare.dbt("build")

    def commit(line: str) -> None:
        if "START test" in line and bare.rows("select max(id) from demo.m") == [(1,)]:
            table = bare.engine.table("demo.m")
            table.write(pa.table({"id": [70]}, table.schema.arrow_schema()))

    bare.on_line = commit
    bare.dbt("build")
    assert "planned and tested again" in bare.log
    assert bare.rows("select id from demo.m order by id") == [(1,), (70,), (71,)]


@pytest.mark.parametrize(
    "way",
    [
        "auto",
        pytest.param("portable", marks=pytest.mark.nightly),
        pytest.param("native", marks=(pytest.mark.folders, pytest.mark.nightly)),
    ],
)
def test_parent_with_deleted_rows_is_read_as_sql_reads_it(bare: Shop, way: str) -> None:
    """Updated and deleted versions of keys lie in its files; conditions of the code leave files out, never rows.

    The ways of reading are those of object stores, too.
    """
    bare.output["spark"]["read_way"] = way
    config = "{{ config(materialized='tablestore', primary_key='id', delete_when='n < 0') }} "
    bare.write("models/src.sql", config + "select id, id * 10 as n from range(1, 2001)")
    bare.dbt("run")
    bare.write("models/src.sql", config + "select id, if(id % 2 = 0, -1, id) as n from range(1, 1001)")
    condition = "n > 500 and n < 10100"
    table = "{{ config(materialized='table') }} "
    bare.write("models/q.sql", table + f"select * from {{{{ ref('src') }}}} where {condition}")
    of_polars = f"sql('select * from self where {condition}')"
    for kind, narrowed in (("spark", f"where('{condition}')"), ("polars", of_polars)):
        bare.write(f"models/{kind}.py", RETURNS.format(kind).rstrip() + f".{narrowed}\n")
    bare.dbt("run")
    expected = bare.rows("select * from demo.q order by id")
    assert len(expected) > 100
    assert bare.rows("select * from demo.spark order by id") == expected
    assert bare.rows("select * from demo.polars order by id") == expected


@pytest.mark.nightly  # by day test_log.py: red rows never reach the topic
def test_changelog_of_a_python_model_goes_to_kafka(bare: Shop, broker: BrokerInfo) -> None:
    """Each change is one message; a run that changes one row sends one more."""
    bare.output["log"] = {"kafka.bootstrap.servers": broker.url}
    config = "materialized='incremental', unique_key='id', log_system='kafka', kafka_topic='python_model'"
    text = (
        "import polars as pl\n\n\ndef model(dbt, session):\n    dbt.config({})\n"
        "    return pl.DataFrame({}, schema=['id', 'v'], orient='row')\n"
    )
    bare.write("models/m.py", text.format(config, [(1, "a"), (2, "a")]))
    bare.dbt("run")
    bare.write("models/m.py", text.format(config, [(1, "a"), (2, "b")]))
    bare.dbt("run")
    assert bare.rows("select * from demo.m order by id") == [(1, "a"), (2, "b")]
    assert bare.engine.count_log_messages("demo.m") == 2 + 2  # an update is -U and +U


def test_past_state_is_read_in_sql_of_the_session(bare: Shop) -> None:
    """A query of the session knows the tables of the warehouse, and their versions."""
    source(bare, "select 1 as id")
    bare.dbt("run")
    source(bare, "select 2 as id")
    bare.write("models/never_read.sql", "{{ config(materialized='table') }} select 3 as id")
    bare.dbt("run", "--select", "src", "never_read")
    bare.write(
        "models/m.py",
        "def model(dbt, session):\n"
        "    now = dbt.ref('src')\n"
        "    past = session.sql(f'select * from {dbt.this.schema}.src version as of 1')\n"
        "    again = session.table('demo.src').union(session.read.table('demo.never_read'))\n"
        "    return now.union(past).union(again)\n",
    )
    bare.dbt("run", "--select", "m")
    assert bare.rows("select id from demo.m order by id") == [(1,), (2,), (2,), (3,)]


def test_error_names_line_of_the_users_file(bare: Shop) -> None:
    """Blank lines at its begin count; nothing is written, and dbt fails as for SQL."""
    bare.write("models/m.py", FAILS)
    bare.dbt("run", ok=False)
    assert "TS1896 Python model m failed: ZeroDivisionError: division by zero" in message(bare)
    assert "models/m.py, line 7, in of: return 1 / row" in message(bare)
    assert "Runtime Error in model m" in bare.log
    assert bare.tables() == set()


def test_input_that_dbt_did_not_see_is_explained(bare: Shop) -> None:
    """dbt reads the text of the file, and finds no call inside an expression."""
    source(bare, "select 1 as id")
    bare.write(
        "models/n.py", "def model(dbt, session):\n    return session.range(1 if dbt.ref('src') else 2)\n"
    )
    bare.dbt("run", "--select", "src", "n", ok=False)
    assert "KeyError: 'src'" in message(bare, "n")
    assert "models/n.py, line 2, in model" in message(bare, "n")
    assert "assign them to variables" in message(bare, "n")


def test_error_in_a_worker_of_spark_names_the_line(bare: Shop) -> None:
    """A function that runs in Spark when the rows are written."""
    bare.write(
        "models/m.py",
        "\n\nfrom pyspark.sql.functions import udf\n\n\ndef model(dbt, session):\n"
        "    f = udf(lambda n: 1 // n, 'int')\n"
        "    return session.sql('select 0 as n').select(f('n').alias('n'))\n",
    )
    bare.dbt("run", ok=False)
    assert "ZeroDivisionError" in message(bare)
    assert 'File "models/m.py", line 7' in message(bare)
    assert bare.tables() == set()


def test_functions_and_classes_of_the_file_reach_spark_workers(bare: Shop) -> None:
    """No worker can import the module of a model; its functions are sent whole, with what they use."""
    bare.write("models/m.py", TRIPLES)
    bare.dbt("run")
    assert bare.rows("select n from demo.m") == [(6,)]


def test_exit_in_the_code_is_an_error_of_the_model(bare: Shop) -> None:
    """The other models of the run are built."""
    bare.write("models/m.py", "import sys\n\n\ndef model(dbt, session):\n    sys.exit(3)\n    return None\n")
    bare.write("models/k.py", "def model(dbt, session):\n    raise KeyboardInterrupt\n    return None\n")
    source(bare, "select 1 as id")
    bare.dbt("run", ok=False)
    assert "SystemExit: 3" in message(bare)
    assert "KeyboardInterrupt" in message(bare, "k")
    assert bare.tables() == {"src"}


def test_missing_packages_are_named_before_the_code_runs(bare: Shop) -> None:
    """With the command that installs them; a version that does not fit is missing, too."""
    bare.write(
        "models/m.py",
        "def model(dbt, session):\n"
        "    dbt.config(packages=['no-such-thing', 'pandas>=99', 'pyarrow>=1', 'dateutil'])\n"
        "    raise AssertionError('it ran')\n    return None\n",
    )
    bare.dbt("run", ok=False)
    assert "TS1892" in message(bare)
    assert "pip install no-such-thing 'pandas>=99'" in message(bare)
    assert "it ran" not in bare.log


def test_two_threads_run_two_models_at_once(bare: Shop) -> None:
    """Each waits until the other one runs; a name that both give is each one's own."""
    text = (
        "import time\nfrom pathlib import Path\n\nNAME = {!r}\nFOLDER = Path({!r})\n\n\ndef model(dbt, session):\n"
        "    (FOLDER / NAME).touch()\n    end = time.monotonic() + 120\n"
        "    while not (FOLDER / {!r}).exists() and time.monotonic() < end:\n        time.sleep(0.05)\n"
        "    assert (FOLDER / {!r}).exists()\n"
        "    return session.createDataFrame([(NAME,)], ['name'])\n"
    )
    folder = bare.folder / "met"
    folder.mkdir()
    for name, other in (("a", "b"), ("b", "a")):
        bare.write(f"models/{name}.py", text.format(name, str(folder), other, other))
    bare.dbt("run")
    assert bare.rows("select name from demo.a union all select name from demo.b order by 1") == [
        ("a",),
        ("b",),
    ]


def test_contract_of_a_python_model_is_refused_by_dbt(bare: Shop) -> None:
    """When it parses the project: dbt offers contracts to SQL alone, so no model promises what nobody checks."""
    bare.write(
        "models/m.yml",
        "models: [{name: m, config: {contract: {enforced: true}}, columns: [{name: id, data_type: bigint}]}]",
    )
    bare.write("models/m.py", "def model(dbt, session):\n    return session.sql('select 1 as id')\n")
    with pytest.raises(AssertionError, match="Expected 'sql' but found 'python'"):
        bare.dbt("run")


@pytest.mark.parametrize(
    ("config", "code", "expected"),
    case_rows(
        [
            ("materialized='view'", "TS1893", "materialized='view'"),
            ("materialized='streaming', unique_key='id'", "TS1893", "materialized='streaming'"),
            (
                "materialized='incremental', unique_key='id', incremental_strategy='changed_keys'",
                "TS1893",
                "changed_keys",
            ),
            (
                "materialized='table', dataframe='pandsa'",
                "TS1891",
                "expected one of spark, pandas, polars, arrow",
            ),
            ("materialized='table', packages=['a b']", "TS1894", "a b"),
            ("materialized='table'", "TS1897", "returned polars.LazyFrame"),
        ],
        2,
    ),
)
def test_refused_models_write_nothing(bare: Shop, config: str, code: str, expected: str) -> None:
    """Each with its reason; the code runs in the last case only."""
    bare.write(
        "models/m.py",
        f"import polars as pl\n\n\ndef model(dbt, session):\n    dbt.config({config})\n"
        "    return pl.LazyFrame({'id': [1]})\n",
    )
    bare.dbt("run", ok=False)
    assert code in message(bare)
    assert expected in message(bare)
    assert "in macro" not in message(bare)
    assert bare.tables() == set()


def test_ephemeral_parent_is_refused(bare: Shop) -> None:
    """dbt would write its SQL into the Python text."""
    bare.write("models/src.sql", "{{ config(materialized='ephemeral') }} select 1 as id")
    bare.write("models/m.py", RETURNS.format("spark"))
    bare.dbt("run", ok=False)
    assert "TS1893" in message(bare)
    assert "materialized='view' or 'table' on src" in message(bare)


def test_submission_options_of_other_adapters_are_warned_of(bare: Shop) -> None:
    """They say where code runs; here it runs in the process of dbt."""
    bare.write(
        "models/m.py",
        "def model(dbt, session):\n    dbt.config(submission_method='job_cluster', cluster_id='c1')\n"
        "    return session.sql('select 1 as id')\n",
    )
    bare.dbt("run")
    warned = [line for line in bare.lines if "is ignored" in line]
    assert [
        name for name in ("submission_method", "cluster_id") if any(f"'{name}'" in one for one in warned)
    ] == [
        "submission_method",
        "cluster_id",
    ]


def test_comments_reach_the_table(bare: Shop) -> None:
    """persist_docs of a Python model."""
    bare.write(
        "models/m.yml",
        "models: [{name: m, description: of Python, config: {persist_docs: {relation: true, columns: true}},"
        " columns: [{name: id, description: its number}]}]",
    )
    bare.write("models/m.py", "def model(dbt, session):\n    return session.sql('select 1 as id')\n")
    bare.dbt("run")
    assert bare.engine.columns("demo.m")[0].comment == "its number"
    assert bare.engine.table("demo.m").schema.comment == "of Python"


def test_names_of_rows_are_gone_after_the_run(bare: Shop) -> None:
    """Also those of a model whose plan was refused."""
    bare.write("models/m.py", "def model(dbt, session):\n    return session.sql('select 1 as id')\n")
    bare.write(
        "models/n.py",
        "def model(dbt, session):\n    dbt.config(materialized='incremental', unique_key='other')\n"
        "    return session.sql('select 1 as id')\n",
    )
    bare.dbt("run", ok=False)
    assert "TS1822" in message(bare, "n")
    views = bare.engine.spark.sql("show views").collect()  # listTables() fails in plans that are interpreted
    assert not [one for one in views if one["viewName"].startswith("tablestore_rows")]


@pytest.mark.nightly  # by day tests/unit/adapter/test_interruption.py, and a signal in a query in test_interrupts.py
@pytest.mark.parametrize(
    "body",
    ["import time\n    time.sleep(600)", f"session.sql({ENDLESS!r}).toArrow()"],
    ids=["python", "spark"],
)
def test_signal_ends_dbt_while_a_model_runs(body: str, tmp_path: Path) -> None:
    """Code that hears nothing of it is abandoned after 8 s, a job of Spark is cancelled at once; nothing is written."""
    output = {"type": "tablestore", "warehouse": "./warehouse", "schema": "demo", "threads": 2}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump({"p": {"target": "t", "outputs": {"t": output}}}))
    (tmp_path / "dbt_project.yml").write_text("name: p\nversion: '1.0'\nprofile: p\n")
    (tmp_path / "models").mkdir()
    begin = "    from pathlib import Path\n    Path('begun').touch()\n"
    (tmp_path / "models/m.py").write_text(f"def model(dbt, session):\n{begin}    {body}\n    return None\n")
    command = [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", "run", "--profiles-dir", "."]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        while process.poll() is None and not (tmp_path / "begun").exists():
            time.sleep(0.1)
        time.sleep(1)  # the code runs by then; a signal before it would end dbt, too
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=300)[0]
    finally:
        process.kill()
    print(f"{time.monotonic() - sent:.1f} s until dbt has ended")  # a figure, no check
    assert process.returncode == 2, text  # dbt's own status for an interrupted run
    assert not list(tmp_path.glob("warehouse/demo.db/*"))
