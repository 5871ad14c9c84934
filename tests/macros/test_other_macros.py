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
        {
            "statement": statement,
            "adapter": SimpleNamespace(quote=lambda n: f"`{n}`"),
            "execute": True,
            "return_": str,
            **context,
        }
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


def test_snapshot_with_another_key_is_one_merge() -> None:
    """Versions that begin are inserted whole, ended ones get only their end; new columns are added before."""
    added: list[object] = []
    present, new = SimpleNamespace(name="id", quoted="`id`"), SimpleNamespace(name="v", quoted="`v`")
    text = render(
        "materializations/snapshot_merge.sql",
        "tablestore_snapshot_merge",
        ORDERS,
        SimpleNamespace(dbt_valid_to="ends", dbt_scd_id="version"),
        "select 1",
        adapter=SimpleNamespace(
            get_columns_in_relation=lambda _: [present],
            get_column_schema_from_query=lambda _: [present, new],
        ),
        get_empty_subquery_sql=str,
        alter_relation_add_remove_columns=lambda _, columns, __: added.extend(columns),
    )
    assert added == [new]
    assert text == (
        "merge into demo.orders as DBT_INTERNAL_DEST using ( select 1 ) as DBT_INTERNAL_SOURCE"
        " on DBT_INTERNAL_SOURCE.version = DBT_INTERNAL_DEST.version"
        " when matched then update set ends = DBT_INTERNAL_SOURCE.ends"
        " when not matched then insert (`id`, `v`) values (DBT_INTERNAL_SOURCE.`id`, DBT_INTERNAL_SOURCE.`v`)"
    )


@pytest.mark.parametrize(
    ("current", "text"),
    [(None, "(vt is null)"), ("date '9999-12-31'", "(vt is null or vt = date '9999-12-31')")],
)
def test_the_end_of_open_versions_may_be_a_date(current: str | None, text: str) -> None:
    """dbt_valid_to_current: rows with that end, or none, are open."""
    config = SimpleNamespace(get={"dbt_valid_to_current": current}.get)
    names = SimpleNamespace(dbt_valid_to="vt")
    file = "materializations/snapshot_rows.sql"
    assert render(file, "tablestore_snapshot_is_open", names, config=config) == text


def test_hooks_run_without_transactions() -> None:
    """Both kinds run, each when it is asked for; no COMMIT is sent."""
    hooks = [
        {"sql": "select 1", "transaction": True},
        {"sql": "select 2", "transaction": False},
        {"sql": " ", "transaction": False},
    ]
    assert render("adapters/hooks.sql", "run_hooks", hooks, False, render=str) == "select 2"
    assert render("adapters/hooks.sql", "run_hooks", hooks, True, render=str) == "select 1"
