"""Incremental strategies that a macro of the project writes, by dbt's contract."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop

INSERT_NEW = """
{% macro get_incremental_insert_new_sql(arg_dict) %}
  {%- set names = arg_dict.dest_columns | map(attribute='quoted') | join(', ') -%}
  insert into {{ arg_dict.target_relation }} ({{ names }})
  select {{ names }} from {{ arg_dict.temp_relation }} new
  where not exists (
    select 1 from {{ arg_dict.target_relation }} old
    where old.{{ arg_dict.unique_key }} = new.{{ arg_dict.unique_key }}
    {% for one in arg_dict.incremental_predicates or [] %} and {{ one }} {% endfor %}
  )
{% endmacro %}
"""
TWO_STATEMENTS = """
{% macro get_incremental_swap_sql(arg_dict) %}
  delete from {{ arg_dict.target_relation }} where id in (select id from {{ arg_dict.temp_relation }});
  insert into {{ arg_dict.target_relation }} select * from {{ arg_dict.temp_relation }}
{% endmacro %}
"""
CONFIG = "{{ config(materialized='incremental', incremental_strategy='%s', unique_key='id'%s) }}\n"


@pytest.fixture
def feed(shop: Shop) -> Shop:
    """A table that a model follows."""
    shop.write("macros/insert_new.sql", INSERT_NEW)
    shop.write("macros/swap.sql", TWO_STATEMENTS)
    shop.engine.sql("create schema demo")
    shop.engine.sql("create table demo.feed as select 1 as id, 'a' as v")
    return shop


def model(shop: Shop, strategy: str, more: str = "", text: str = "select * from demo.feed") -> None:
    """The model m."""
    shop.write("models/m.sql", CONFIG % (strategy, more) + text)


def rows(shop: Shop) -> list[tuple[object, ...]]:
    """Of the model."""
    return sorted(shop.rows("select * from demo.m"))


def test_the_macro_decides_what_is_written(feed: Shop) -> None:
    """The first run is the query; later ones are the macro's statement, with the key as it says, not as a key."""
    model(feed, "insert_new")
    feed.dbt("run", "--select", "m")
    feed.engine.sql("insert overwrite demo.feed values (1, 'changed'), (2, 'b'), (2, 'c')")
    feed.dbt("run", "--select", "m")
    assert rows(feed) == [(1, "a"), (2, "b"), (2, "c")]
    assert feed.engine.table("demo.m").facts().primary_key == ()
    assert "m__dbt_tmp" not in feed.tables()
    assert feed.response("m")["rows_inserted"] == 2
    feed.dbt("run", "--select", "m", "--full-refresh")
    assert rows(feed) == [(1, "changed"), (2, "b"), (2, "c")]


@pytest.mark.nightly  # by day the macro decides what is written
def test_several_statements_and_is_incremental(feed: Shop) -> None:
    """Each is a commit; the model's own branch for later runs is taken."""
    text = "select * from demo.feed {% if is_incremental() %} where id > 1 {% endif %}"
    model(feed, "swap", text=text)
    feed.dbt("run", "--select", "m")
    feed.engine.sql("insert overwrite demo.feed values (1, 'x'), (2, 'b')")
    for _ in range(2):
        feed.dbt("run", "--select", "m")
        assert rows(feed) == [(1, "a"), (2, "b")]


def test_a_new_column_is_appended_first(feed: Shop) -> None:
    """on_schema_change is dbt's, before the macro runs."""
    model(feed, "insert_new", ", on_schema_change='append_new_columns'")
    feed.dbt("run", "--select", "m")
    model(
        feed,
        "insert_new",
        ", on_schema_change='append_new_columns'",
        "select id + 1 as id, v, 7 as w from demo.feed",
    )
    feed.dbt("run", "--select", "m")
    assert rows(feed) == [(1, "a", None), (2, "a", 7)]
    model(feed, "insert_new", ", on_schema_change='fail'", "select id, v, w, 1 as x from demo.m")
    feed.dbt("run", "--select", "m", ok=False)


def test_tests_come_too_late_and_a_warning_says_so(feed: Shop) -> None:
    """In dbt build too; a model that asks to be staged, or reads staged rows, is refused."""
    feed.write("models/m.yml", "models: [{name: m, columns: [{name: id, data_tests: [not_null]}]}]")
    model(feed, "insert_new")
    feed.dbt("build", "--select", "m")
    feed.dbt("build", "--select", "m")
    assert "its strategy changes the table before its tests have run" in "\n".join(feed.shown)
    model(feed, "insert_new", ", publish='on_tests'")
    feed.dbt("run", "--select", "m", ok=False)
    assert "TS1874" in feed.log
    feed.write(
        "models/parent.sql", "{{ config(materialized='table', publish='manual') }} select 5 as id, 'p' as v"
    )
    model(feed, "insert_new", text="select * from {{ ref('parent') }}")
    feed.dbt("build", "--select", "parent", "m", ok=False)
    assert "TS1898" in feed.log
    assert rows(feed) == [(1, "a")]


def test_a_strategy_without_its_macro_is_refused(feed: Shop) -> None:
    """The macro's name is in the error."""
    model(feed, "insert_nwe")
    feed.dbt("run", "--select", "m", ok=False)
    assert "get_incremental_insert_nwe_sql" in feed.log
    assert "m" not in feed.tables()


@pytest.mark.nightly  # by day the macro decides what is written
def test_a_failing_macro_leaves_the_table(feed: Shop) -> None:
    """An error of its SQL is the model's; the next run goes on."""
    model(feed, "insert_new", ", incremental_predicates=['old.nothing = 1']")
    feed.dbt("run", "--select", "m")
    feed.dbt("run", "--select", "m", ok=False)
    assert rows(feed) == [(1, "a")]
    model(feed, "insert_new")
    feed.dbt("run", "--select", "m")
    assert "m__dbt_tmp" not in feed.tables()
