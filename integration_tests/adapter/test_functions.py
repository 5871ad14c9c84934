"""dbt's resource type `function`: built before the models that call it, read like a view, in the same run and later."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteSpec

NET_YAML = """
functions:
  - name: net
    description: It's the price without tax
    config: {volatility: deterministic, persist_docs: {relation: true}}
    arguments:
      - {name: price, data_type: bigint}
      - {name: factor, data_type: bigint, default_value: 2}
    returns: {data_type: bigint}
"""
GATES = """
models:
  - name: src
    columns:
      - name: id
        data_tests:
          - relationships: {arguments: {to: ref('known'), field: id}}
"""
NEWEST_YAML = "functions: [{name: newest, returns: {data_type: bigint}}]"
CHANGED_KEYS = (
    "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='id') }}"
)
KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))
SOURCES = "sources: [{name: raw, schema: demo, tables: [{name: lines}, {name: rates}]}]"


@pytest.fixture
def net(shop: Shop) -> Shop:
    """A project with the function `net` alone."""
    for name in ("models", "seeds"):
        shutil.rmtree(shop.folder / name)
    shop.write("functions/net.yml", NET_YAML)
    shop.write("functions/net.sql", "price * factor -- with the factor\n")
    return shop


def test_function_is_used_by_models_views_tests_and_hooks(net: Shop) -> None:
    """In one build, in a later command that builds no function, and through dbt show."""
    net.write("models/t.sql", "{{ config(materialized='table', post_hook=\"create or replace view demo.hooked as "
              "select demo.net(5) as n\") }} select {{ function('net') }}(10) as n")  # fmt: skip
    net.write("models/v.sql", "select {{ function('net') }}(n, 3) as n from {{ ref('t') }}")
    net.write("tests/net.sql", "select * from {{ ref('v') }} where {{ function('net') }}(n) <> 120")
    net.dbt("build")
    assert net.rows("select n from demo.t union all select n from demo.v order by 1") == [(20,), (60,)]
    assert net.rows("select n from demo.hooked") == [(10,)]
    assert net.results()["net"]["status"] in ("pass", "success")
    net.write("functions/net.sql", "price * factor + 1")
    net.dbt("build", "--select", "resource_type:function", "--exclude", "resource_type:test")
    assert net.rows("select n from demo.v") == [(61,)]
    net.dbt("run", "--select", "t")
    assert net.rows("select n from demo.t") == [(21,)]
    net.dbt("show", "--inline", "select {{ function('net') }}(price => 1, factor => 7) as shown")
    assert "8" in net.log
    net.dbt("docs", "generate")


def test_function_has_its_comment_and_is_no_relation_of_a_model(net: Shop) -> None:
    """A model of the function's name keeps its table over two builds."""
    net.write("models/net.sql", "{{ config(materialized='incremental', unique_key='id') }} select 1 as id "
              "{% if is_incremental() %} union all select 2 {% endif %}")  # fmt: skip
    net.write("models/calls.sql", "select {{ function('net') }}(id) as n from {{ ref('net') }}")
    net.dbt("build")
    net.dbt("build")
    assert net.rows("select n from demo.calls order by 1") == [(2,), (4,)]
    lines = [row[0] for row in net.rows("describe function demo.net")]
    assert "Comment:       It's the price without tax" in lines
    assert "Deterministic: true" in lines
    net.write("models/net.sql", "{{ config(materialized='view') }} select 5 as id")
    net.dbt("build")
    assert net.rows("select n from demo.calls") == [(10,)]


def test_function_may_have_a_schema_of_its_own(net: Shop) -> None:
    """dbt makes the schemas of models alone."""
    net.write("functions/net.yml", NET_YAML.replace("config: {", "config: {schema: tools, "))
    net.write("models/t.sql", "select {{ function('net') }}(10) as n")
    net.dbt("build")
    assert net.engine.functions("demo_tools") == ("net",)
    assert net.rows("select n from demo.t") == [(20,)]


@pytest.mark.parametrize(
    ("body", "error"),
    [("price * missing", "UNRESOLVED_COLUMN"), ("{{ function('net') }}(price)", "ycle"), ("", "TS1501")],
)
def test_wrong_function_changes_nothing(net: Shop, body: str, error: str) -> None:
    """The former one stays; what depends on it is skipped."""
    net.write("models/t.sql", "{{ config(materialized='table') }} select {{ function('net') }}(10) as n")
    net.dbt("build")
    net.write("functions/net.sql", body)
    net.dbt("build", ok=False)
    assert error in net.log
    assert net.rows("select demo.net(10)") == [(20,)]


# --- staged rows ---------------------------------------------------------------------------------


@pytest.fixture
def gated(net: Shop) -> Shop:
    """Model `src`, whose gate runs after its children; ids 1 to 9 are known. `newest` reads it, `child` calls that."""
    net.output["threads"] = 1
    net.write("models/gates.yml", GATES)
    net.write("models/known.sql", "{{ config(materialized='table') }} select explode(sequence(1, 9)) as id")
    net.write("functions/newest.yml", NEWEST_YAML)
    net.write("functions/newest.sql", "(select max(id) from {{ ref('src') }})")
    net.write("models/child.sql", "{{ config(materialized='table') }} select {{ function('newest') }}() as n")
    return net


def source(shop: Shop, newest: int) -> None:
    """What the next build of `src` gives."""
    shop.write(
        "models/src.sql",
        "{{ config(materialized='tablestore', primary_key='id') }} "
        f"select explode(array(1, {newest})) as id",
    )


@pytest.mark.nightly  # by day a data test that reads staged rows, below
def test_staged_rows_are_read_through_a_function(gated: Shop) -> None:
    """By the nodes below it: the model is published with its parent, or waits with it; others see the old rows."""
    source(gated, 5)
    gated.dbt("build")
    assert gated.rows("select n from demo.child") == [(5,)]
    source(gated, 7)
    gated.dbt("build")
    assert gated.rows("select n from demo.child") == [(7,)]
    source(gated, 70)
    gated.dbt("build", ok=False)
    assert gated.rows("select n, demo.newest() from demo.child") == [(7, 7)]
    assert "demo.child NOT published" in gated.log
    source(gated, 8)
    gated.dbt("build")
    assert gated.rows("select n from demo.child") == [(8,)]


def test_data_test_reads_staged_rows_through_a_function(gated: Shop) -> None:
    """Its parents are the function and the model that it gates."""
    (gated.folder / "models" / "child.sql").unlink()
    gated.write(
        "tests/fits.sql", "-- depends_on: {{ ref('src') }}\nselect 1 where {{ function('newest') }}() > 7"
    )
    source(gated, 6)
    gated.dbt("build")
    assert gated.rows("select max(id) from demo.src") == [(6,)]
    source(gated, 8)
    gated.dbt("build", ok=False)
    assert gated.rows("select max(id) from demo.src") == [(6,)]


# --- incremental and streaming models ------------------------------------------------------------


def put(shop: Shop, table: str, *rows: tuple[int, int]) -> None:
    """Somebody's commit: id, n."""
    found = pa.table({"id": [one for one, _ in rows], "n": [n for _, n in rows]})
    shop.engine.write(f"demo.{table}", found, KEYED)


@pytest.mark.nightly  # by day spark/test_functions.py; test_changed_keys_soundness.py
def test_changed_keys_model_calls_functions(net: Shop) -> None:
    """A pure one is followed by deltas; a table below one is an input; another definition compares all rows."""
    net.write("models/sources.yml", SOURCES)
    net.write("functions/rate.yml", "functions: [{name: rate, arguments: [{name: k, data_type: bigint}], "
              "returns: {data_type: bigint}}]")  # fmt: skip
    net.write("functions/rate.sql", "(select max(n) from {{ source('raw', 'rates') }} where id = k)")
    config = CHANGED_KEYS
    net.write("models/pure.sql", f"{config} select id, {{{{ function('net') }}}}(n) as n "
              "from {{ source('raw', 'lines') }}")  # fmt: skip
    net.write("models/rated.sql", f"{config} select id, n * coalesce({{{{ function('rate') }}}}(id), 1) as n "
              "from {{ source('raw', 'lines') }}")  # fmt: skip
    net.write("models/tests.yml", "models: [{name: pure, data_tests: [equals_full_refresh]}, "
              "{name: rated, data_tests: [equals_full_refresh]}]")  # fmt: skip
    put(net, "lines", *((n, n) for n in range(1, 9)))
    put(net, "rates", (1, 10), (2, 20))
    net.dbt("build")
    put(net, "lines", (3, 33))
    put(net, "rates", (2, 200))
    net.dbt("build")
    assert net.rows("select n from demo.pure where id = 3") == [(66,)]
    assert net.rows("select n from demo.rated where id in (2, 3) order by id") == [(400,), (33,)]
    net.write("functions/net.sql", "price * factor + 1")
    net.dbt("build", "--exclude", "pure")
    net.dbt("build", "--select", "pure")
    assert net.rows("select n from demo.pure where id in (3, 4) order by id") == [(67,), (9,)]
    assert net.response("pure")["evaluated"] == "all rows"
    put(net, "lines", (4, 44))
    net.dbt("build", "--select", "pure")
    assert net.response("pure")["evaluated"] == "deltas"


def test_volatile_function_is_refused_in_changed_keys(net: Shop) -> None:
    """As rand() is, whatever the function declares."""
    net.write("models/sources.yml", SOURCES)
    net.write("functions/net.sql", "price + cast(rand() * 10 as bigint)")
    net.write("models/m.sql", f"{CHANGED_KEYS} select id, {{{{ function('net') }}}}(n) as n "
              "from {{ source('raw', 'lines') }}")  # fmt: skip
    put(net, "lines", (1, 1))
    put(net, "rates", (1, 1))
    net.dbt("build", ok=False)
    assert "rand()" in net.log
    assert net.engine.find_table("demo.m") is None


@pytest.mark.nightly  # by day models, views and tests that call one, above
def test_streaming_model_calls_functions(net: Shop) -> None:
    """Each change once; in totals with state too; the next range has the body of the next run."""
    net.write("models/sources.yml", SOURCES)
    net.write("models/copy.sql", "{{ config(materialized='streaming', unique_key='id') }} "
              "select id, {{ function('net') }}(n) as n, _row_kind, _snapshot_id "
              "from {{ stream(source('raw', 'lines')) }}"
              )  # fmt: skip
    net.write("models/totals.sql", "{{ config(materialized='streaming', unique_key='k') }} "
              "select {{ function('net') }}(id % 2) as k, count(*) as n from {{ stream(source('raw', 'rates')) }} "
              "group by {{ function('net') }}(id % 2)")  # fmt: skip
    added = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
    net.engine.write("demo.rates", pa.table({"id": [1, 2], "n": [1, 2]}), added)
    put(net, "lines", (1, 1), (2, 2))
    net.dbt("build")
    assert net.rows("select id, n from demo.copy order by id") == [(1, 2), (2, 4)]
    assert net.rows("select k, n from demo.totals order by k") == [(0, 1), (2, 1)]
    put(net, "lines", (2, 3))
    net.engine.sql("delete from demo.lines where id = 1")
    net.engine.write("demo.rates", pa.table({"id": [3], "n": [3]}), added)
    net.dbt("build")
    assert net.rows("select id, n from demo.copy order by id") == [(2, 6)]
    assert net.rows("select k, n from demo.totals order by k") == [(0, 1), (2, 2)]


@pytest.mark.nightly  # by day test_stream_positions.py: a temporary function
def test_other_function_is_another_query_of_a_streaming_model(net: Shop) -> None:
    """State was made by the former body: refused; without state the config decides."""
    net.write("models/sources.yml", SOURCES)
    net.write("functions/inner.yml", "functions: [{name: inner, returns: {data_type: bigint}}]")
    net.write("functions/inner.sql", "1")
    net.write("functions/net.sql", "price * {{ function('inner') }}()")
    net.write("models/totals.sql", "{{ config(materialized='streaming', unique_key='k') }} "
              "select {{ function('net') }}(id) as k, count(*) as n "
              "from {{ stream(source('raw', 'lines')) }} group by 1"
              )  # fmt: skip
    net.write("models/copy.sql", "{{ config(materialized='streaming', on_configuration_change='fail') }} "
              "select {{ function('net') }}(id) as k from {{ stream(source('raw', 'lines')) }}")  # fmt: skip
    added = WriteSpec(table=TableSpec(options={"bucket": "-1"}))
    net.engine.write("demo.lines", pa.table({"id": [1, 2], "n": [1, 2]}), added)
    put(net, "rates", (1, 1))
    net.dbt("build")
    net.dbt("build")
    net.write("functions/inner.sql", "2")
    net.dbt("build", ok=False)
    assert "TS1860" in net.log
    assert "TS1846" in net.log
    net.dbt("build", "--full-refresh")
    assert net.rows("select k from demo.totals order by k") == [(2,), (4,)]


def test_functions_of_a_dropped_schema_are_gone(net: Shop) -> None:
    """With CASCADE, as dbt drops schemas."""
    net.dbt("build")
    net.write("macros/gone.sql", "{% macro gone() %}{% do adapter.drop_schema(api.Relation.create(schema='demo')) %}"
              "{% endmacro %}")  # fmt: skip
    net.dbt("run-operation", "gone")
    assert net.engine.functions("demo") == ()
    assert not list(Path(net.folder).rglob("functions/net.json"))


def test_nodes_of_the_graph_include_functions(net: Shop) -> None:
    """dbt has them apart; a node waits for tables that it reads through one."""
    net.write(
        "macros/ids.sql", "{% macro ids() %}{% do log(tablestore_nodes() | list, info=true) %}{% endmacro %}"
    )
    net.dbt("run-operation", "ids")
    assert "function.shop.net" in net.log
