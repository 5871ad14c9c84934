"""What projects of other adapters bring along: strategies, foreign keys, unit tests, macros."""

from __future__ import annotations

import json

from integration_tests.adapter.conftest import Shop


def test_append_appends(shop: Shop) -> None:
    """append with a unique_key adds rows, whatever keys they have; with a primary key it is refused."""
    shop.write(
        "models/m.sql",
        "{{ config(materialized='incremental', incremental_strategy='append', unique_key='id') }} select 1 as id",
    )
    for _ in range(2):
        shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(1,), (1,)]
    shop.write(
        "models/m.sql",
        "{{ config(materialized='incremental', incremental_strategy='append', primary_key='id') }} select 1 as id",
    )
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1823" in shop.log


def test_tablestore_model_without_a_key_is_replaced_by_each_run(shop: Shop) -> None:
    """Its rows are those of its query; a branch of its text or a strategy lets it grow, a branch in a macro not."""
    head = "{{ config(materialized='tablestore') }} select 1 as id"
    shop.write("macros/later.sql", "{% macro later() %}{{ return(is_incremental()) }}{% endmacro %}")
    shop.write("models/plain.sql", head)
    shop.write("models/hidden.sql", head + "{% if later() %} where false{% endif %}")
    shop.write("models/branch.sql", head + "{% if is_incremental() %} union all select 2{% endif %}")
    shop.write("models/strategy.sql", head.replace("') }}", "', incremental_strategy='append') }}"))
    shop.write("models/reads.sql", head.replace("select 1 as id", "select id from {{ news() }}"))
    shop.write("macros/news.sql", "{% macro news() %}{{ return(changes(ref('plain'))) }}{% endmacro %}")
    for _ in range(2):
        shop.dbt("run", "--select", "plain hidden branch strategy")
    rows = {
        name: shop.rows(f"select id from demo.{name} order by id") for name in ("plain", "hidden", "branch")
    }
    assert rows == {"plain": [(1,)], "hidden": [(1,)], "branch": [(1,), (1,), (2,)]}
    assert shop.rows("select count(*) from demo.strategy") == [(2,)]
    shop.dbt("run", "--select", "reads", ok=False)
    assert "TS2072" in shop.log


def test_a_strategy_for_the_whole_project(shop: Shop) -> None:
    """+incremental_strategy: merge concerns incremental models; a table of the same project is built."""
    shop.write("models/m.sql", "{{ config(materialized='table') }} select 1 as id")
    path = shop.folder / "dbt_project.yml"
    path.write_text(path.read_text() + "\nmodels:\n  shop:\n    +incremental_strategy: merge\n")
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [(1,)]


def test_keys_of_others_are_named_once(shop: Shop) -> None:
    """file_format, cluster_by and grants mean something elsewhere and nothing here: one warning each for two tables
    and a view.
    """
    grants = "grants={'select': ['someone']}"
    shop.write("models/v.sql", "{{ config(materialized='view', " + grants + ") }} select 1 as id")
    for name in ("m", "n"):
        shop.write(
            f"models/{name}.sql",
            "{{ config(materialized='table', file_format='delta', cluster_by=['id'], my_team='x', "
            + grants
            + ") }} select 1 as id",
        )
    shop.dbt("run", "--select", "m", "n", "v")
    warned = [line for line in shop.lines if "is ignored" in line]
    assert len(warned) == 3
    assert any("'grants'" in line for line in warned)
    assert any("'file_format'" in line for line in warned)
    assert any("'cluster_by'" in line for line in warned)
    shop.write(
        "models/m.sql",
        "{{ config(materialized='incremental', unique_key='id', not_matched_by_source_action='delete') }}"
        " select 1 as id",
    )
    shop.dbt("run", "--select", "m", ok=False)
    assert "TS1858" in shop.log


def test_a_materialized_view_equals_its_query_after_each_run(shop: Shop) -> None:
    """A table by changed_keys: a later run follows changes; without a key it is refused by name."""
    shop.engine.sql("create schema demo")
    shop.engine.sql("create table demo.feed (id int, c string, n int, primary key (id))")
    shop.engine.sql("insert into demo.feed values (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)")
    source = "sources: [{name: raw, schema: demo, tables: [{name: feed}]}]"
    shop.write("models/feed.yml", source)
    text = "select c, sum(n) as n from {{ source('raw', 'feed') }} group by c"
    config = "{{ config(materialized='materialized_view', unique_key='c', affected_limit=1.0) }}\n"
    shop.write("models/m.sql", config + text)
    shop.dbt("run", "--select", "m")
    shop.engine.sql("insert into demo.feed values (2, 'b', 5), (4, 'c', 1)")
    shop.dbt("run", "--select", "m")
    assert sorted(shop.rows("select * from demo.m")) == [("a", 1), ("b", 8), ("c", 1)]
    assert shop.response("m")["evaluated"] == "deltas"
    shop.dbt("docs", "generate")
    shop.write("models/m.sql", "{{ config(materialized='materialized_view') }}\n" + text)
    shop.dbt("run", "--select", "m", ok=False)
    message = shop.results()["m"]["message"]
    assert "TS1881" in message
    assert "in macro" not in message


def test_a_unit_test_of_joined_unions(shop: Shop) -> None:
    """Fixtures of two rows are unions; counted over a cross join, pyspark 4.3.0 itself loses such a plan's tasks."""
    shop.write("models/a.sql", "select 1 as id, 'x' as v")
    shop.write("models/b.sql", "select 1 as id, 2 as n")
    two = "{{ ref('a') }} a cross join {{ ref('b') }} b"
    shop.write("models/m.sql", f"select a.id, count(*) as n from {two} group by a.id")
    shop.write(
        "models/u.yml",
        "unit_tests: [{name: u, model: m, given: [{input: ref('a'), rows: [{id: 1, v: p}, {id: 2, v: q}]},"
        " {input: ref('b'), rows: [{id: 1, n: 5}, {id: 2, n: 6}]}],"
        " expect: {rows: [{id: 1, n: 2}, {id: 2, n: 2}]}}]",
    )
    shop.dbt("build", "--select", "a", "b", "m")
    assert shop.results()["m"]["status"] == "success"


def test_types_of_columns_are_known(shop: Shop) -> None:
    """is_integer, is_string and is_numeric answer for Spark's types."""
    shop.write(
        "models/m.sql",
        "{{ config(materialized='table') }} select 1Y as a, 1S as b, 1 as c, 1L as d, 1.5BD as e, 1.5F as f, 1.5D as g,"
        " 'x' as h, true as i, cast('x' as varchar(3)) as j",
    )
    shop.write(
        "macros/kinds.sql",
        "{% macro kinds() %}{% for c in adapter.get_columns_in_relation(ref('m')) %}"
        "{% do log(c.name ~ '=' ~ [c.is_integer(), c.is_numeric(), c.is_float(), c.is_number(), c.is_string()],"
        " info=True) %}"
        "{% endfor %}{% endmacro %}",
    )
    shop.write("models/k.sql", "{{ kinds() }} select 1 as id from {{ ref('m') }}")
    shop.dbt("run", "--select", "m")
    shop.dbt("compile", "--select", "k")
    integer, text = "=[True, False, False, True, False]", "=[False, False, False, False, True]"
    floating = "=[False, False, True, True, False]"
    for expected in (
        *(name + integer for name in "abcd"),
        "e=[False, True, False, True, False]",
        *(name + floating for name in "fg"),
        *(name + text for name in "hj"),
        "i=[False, False, False, False, False]",
    ):
        assert expected in shop.log


def test_listagg_keeps_its_order(shop: Shop) -> None:
    """order_by_clause orders, and limit_num takes the first ones of that order."""
    ordered = "{{ dbt.listagg('v', \"'; '\", 'order by n desc') }}"
    first = "{{ dbt.listagg('v', \"'; '\", 'order by n desc', 2) }}"
    shop.write(
        "models/m.sql",
        f"{{{{ config(materialized='table') }}}} select {ordered} as every, {first} as two"
        " from values ('b', 2), ('a; c', 3), ('d', 1), (null, 4) as t(v, n)",
    )
    shop.dbt("run", "--select", "m")
    assert shop.rows("select * from demo.m") == [("a; c; b; d", "a; c; b")]
    assert "not supported" not in shop.log


def test_show_as_json_keeps_names_and_bytes(shop: Shop) -> None:
    """A struct has its names, an array of structs too, binary is hex text, in dbt show --output json."""
    sql = "select named_struct('a', 1, 'b', array(named_struct('c', 'x'))) as s, unhex('00FF') as b, map('k', 2) as m"
    shop.dbt("show", "--inline", sql, "--output", "json")
    text = next(line for line in shop.lines if '"show"' in line)
    (row,) = json.loads(text)["show"]
    assert json.loads(row["s"]) == {"a": 1, "b": [{"c": "x"}]}
    assert row["b"] == "00FF"
    assert json.loads(row["m"]) == {"k": 2}


def test_a_run_without_news_says_so(shop: Shop) -> None:
    """The same rows again: the line reads 'nothing changed', not three zeros."""
    shop.write("models/m.sql", "{{ config(materialized='table', primary_key='id') }} select 1 as id")
    for _ in range(2):
        shop.dbt("run", "--select", "m")
    assert "nothing changed" in shop.results()["m"]["message"]
    assert "+0" not in shop.log


def test_a_config_error_has_no_stack_of_macros(shop: Shop) -> None:
    """What the user reads is the error; our macros are none of his business."""
    shop.write("models/m.sql", "{{ config(materialized='tablestore', primarykey='id') }} select 1 as id")
    shop.dbt("run", "--select", "m", ok=False)
    message = shop.results()["m"]["message"]
    assert "TS1810" in message
    assert "macro" not in message
