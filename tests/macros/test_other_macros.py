"""Macros that other macros of dbt call, rendered with stand-ins for dbt's context."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader

from dbt.include.tablestore import PACKAGE_PATH

ORDERS = SimpleNamespace(
    render=lambda: "demo.orders",
    type="table",
    schema="demo",
)
OTHER = SimpleNamespace(render=lambda: "demo.o2")
ADD_REMOVE = "tablestore__alter_relation_add_remove_columns"
COLUMN = SimpleNamespace(quoted="`v`", data_type="int", name="v")


def render(file: str, name: str, *arguments: Any, **context: Any) -> str:
    """The statements a macro sends, or else its text, on one line."""
    sent: list[str] = []

    def statement(*_: Any, caller: Any = None, **__: Any) -> str:
        sent.append(" ".join(caller().split()))
        return ""

    environment = Environment(loader=FileSystemLoader(f"{PACKAGE_PATH}/macros"), extensions=["jinja2.ext.do"])
    environment.globals.update(
        statement=statement,
        adapter=SimpleNamespace(quote=lambda n: f"`{n}`"),
        execute=True,
        return_=str,
        **context,
    )
    text = getattr(environment.get_template(file).module, name)(*arguments)
    return "; ".join(sent) or " ".join(text.split())


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        (
            "tablestore__create_table_as",
            (False, ORDERS, "select 1"),
            "create or replace table demo.orders using tablestore as select 1",
        ),
        ("tablestore__drop_relation", (ORDERS,), "drop table if exists demo.orders"),
        ("tablestore__truncate_relation", (ORDERS,), "truncate table demo.orders"),
        ("tablestore__rename_relation", (ORDERS, OTHER), "alter table demo.orders rename to demo.o2"),
        ("tablestore__create_schema", (ORDERS,), "create schema if not exists `demo`"),
        ("tablestore__drop_schema", (ORDERS,), "drop schema if exists `demo` cascade"),
        (
            "tablestore__alter_column_type",
            (ORDERS, "v", "bigint"),
            "alter table demo.orders alter column `v` type bigint",
        ),
        (ADD_REMOVE, (ORDERS, [COLUMN], None), "alter table demo.orders add columns (`v` int)"),
        (
            ADD_REMOVE,
            (ORDERS, [COLUMN], [COLUMN]),
            "alter table demo.orders add columns (`v` int); alter table demo.orders drop columns (`v`)",
        ),
        (ADD_REMOVE, (ORDERS, [], None), ""),
    ],
)
def test_statements_of_tables(name: str, arguments: tuple[Any, ...], text: str) -> None:
    """Each is one statement of the router's language."""
    assert render("adapters/tables.sql", name, *arguments) == text


def test_snapshots_are_one_merge() -> None:
    """New versions are inserted with the source's values, ended ones get only their end."""
    names = {"dbt_valid_to": "dbt_valid_to", "dbt_scd_id": "dbt_scd_id"}
    text = render(
        "materializations/snapshot_merge.sql",
        "tablestore_snapshot_merge_text",
        ORDERS,
        SimpleNamespace(**names),
        ["`id`", "`v`"],
        "select 1",
        config=SimpleNamespace(get=lambda _: None),
    )
    assert text == (
        "merge into demo.orders as DBT_INTERNAL_DEST using ( select 1 ) as DBT_INTERNAL_SOURCE"
        " on DBT_INTERNAL_SOURCE.dbt_scd_id = DBT_INTERNAL_DEST.dbt_scd_id"
        " when matched and DBT_INTERNAL_DEST.dbt_valid_to is null"
        " and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')"
        " then update set dbt_valid_to = DBT_INTERNAL_SOURCE.dbt_valid_to"
        " when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'"
        " then insert (`id`, `v`) values (DBT_INTERNAL_SOURCE.`id`, DBT_INTERNAL_SOURCE.`v`)"
    )


def test_the_end_of_open_versions_may_be_a_date() -> None:
    """dbt_valid_to_current: rows with that end, or none, are open."""
    text = render(
        "materializations/snapshot_merge.sql",
        "tablestore_snapshot_merge_text",
        ORDERS,
        SimpleNamespace(dbt_valid_to="vt", dbt_scd_id="s"),
        ["`id`"],
        "select 1",
        config=SimpleNamespace(
            get=lambda key: "date '9999-12-31'" if key == "dbt_valid_to_current" else None
        ),
    )
    assert (
        "when matched and (DBT_INTERNAL_DEST.vt is null or DBT_INTERNAL_DEST.vt = date '9999-12-31') and"
        in text
    )


def test_hooks_run_without_transactions() -> None:
    """Both kinds run, each when it is asked for; no COMMIT is sent."""
    hooks = [
        {"sql": "select 1", "transaction": True},
        {"sql": "select 2", "transaction": False},
        {"sql": " ", "transaction": False},
    ]
    assert render("adapters/hooks.sql", "run_hooks", hooks, False, render=str) == "select 2"
    assert render("adapters/hooks.sql", "run_hooks", hooks, True, render=str) == "select 1"
