"""Macros rendered with stand-ins for dbt's context: the SQL a user finds in target/run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader

from dbt.adapters.tablestore.config.contract_and_docs import Contract
from dbt.adapters.tablestore.config.model_config import TableSettings
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.include.tablestore import PACKAGE_PATH
from tablestore_engine.api import Interval, OnSchemaChange, SameKeys, WriteMode

RELATION = SimpleNamespace(render=lambda: "demo.orders")


def macro(name: str, file: str = "materializations/statement.sql") -> Any:
    """One macro of the package, with the few names it uses."""
    environment = Environment(loader=FileSystemLoader(f"{PACKAGE_PATH}/macros"), extensions=["jinja2.ext.do"])
    environment.globals.update(
        get_quoted_csv=lambda names: ", ".join(f"`{name}`" for name in names),
        adapter=SimpleNamespace(quote=lambda name: f"`{name}`"),
    )
    return getattr(environment.get_template(file).module, name)


def settings(table: TableSettings, contract: Contract | None = None, comment: str | None = None) -> Any:
    """What tablestore_settings returns."""
    return SimpleNamespace(table=table, contract=contract or Contract(), comment=comment)


def plan(action: Action, mode: WriteMode = WriteMode.UPSERT) -> BuildPlan:
    """A plan around a small query."""
    return BuildPlan(action, "select 1 as id", mode, OnSchemaChange.REPLACE)


def test_create_carries_key_partitions_and_options() -> None:
    """The statement makes the same table by hand."""
    table = TableSettings(
        "tablestore",
        primary_key=("id", "dt"),
        partition_by=("dt",),
        options=(("log.system", "kafka"), ("x", "it's")),
    )
    assert macro("tablestore_statement")(RELATION, settings(table, comment="a 'b'"), plan(Action.CREATE)) == (
        "create or replace table demo.orders\n"
        "using tablestore\n"
        "partitioned by (`dt`)\n"
        "comment 'a \\'b\\''\n"
        "tblproperties (\n"
        "  'primary-key' = 'id,dt',\n"
        "  'log.system' = 'kafka',\n"
        "  'x' = 'it\\'s'\n"
        ")\n"
        "as\n"
        "select 1 as id"
    )


def test_create_without_anything_is_short() -> None:
    """No empty clauses."""
    assert macro("tablestore_statement")(
        RELATION, settings(TableSettings("table")), plan(Action.REPLACE)
    ) == ("create or replace table demo.orders\nusing tablestore\nas\nselect 1 as id")


def test_a_contract_becomes_columns_key_and_checks() -> None:
    """What is enforced can be read in the statement."""
    contract = Contract((("id", "int"), ("v", "string")), ("id",), ("id",), (("positive", "id > 0"),))
    assert macro("tablestore_statement")(
        RELATION, settings(TableSettings("table"), contract), plan(Action.CREATE)
    ) == (
        "create or replace table demo.orders (\n"
        "  `id` int not null,\n"
        "  `v` string,\n"
        "  primary key (`id`),\n"
        "  constraint positive check (id > 0)\n"
        ")\n"
        "using tablestore\nas\nselect 1 as id"
    )


@pytest.mark.parametrize(
    ("mode", "head"),
    [
        (WriteMode.UPSERT, "insert into demo.orders"),
        (WriteMode.APPEND, "insert into demo.orders"),
        (WriteMode.OVERWRITE_TABLE, "insert overwrite table demo.orders"),
        (WriteMode.OVERWRITE_PARTITIONS, "insert overwrite table demo.orders partition (`dt`)"),
    ],
)
def test_later_runs_are_inserts(mode: WriteMode, head: str) -> None:
    """Each write mode has its statement."""
    table = TableSettings("incremental", partition_by=("dt",))
    text = macro("tablestore_statement")(RELATION, settings(table), plan(Action.INCREMENT, mode))
    assert text == f"{head}\nselect 1 as id"


def test_deletes_of_a_batch_are_told() -> None:
    """INSERT has no word for delete_when, so a comment says it."""
    table = TableSettings("incremental", delete_when="op =\n'd'")
    text = macro("tablestore_statement")(RELATION, settings(table), plan(Action.INCREMENT))
    assert text == "-- rows that mean delete: op = 'd'\ninsert into demo.orders\nselect 1 as id"


def test_a_replacing_run_shows_its_delete_and_its_insert() -> None:
    """Microbatch and delete+insert: two statements by hand, one snapshot in the run."""
    interval = Interval("at", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    made = BuildPlan(
        Action.INCREMENT, "select 1 as id", WriteMode.REPLACE, OnSchemaChange.IGNORE, replaces=interval
    )
    shown = macro("tablestore_statement")(RELATION, settings(TableSettings("incremental")), made)
    assert shown.split(";\n") == [
        (
            "delete from demo.orders where `at` >= timestamp '2026-01-01 00:00:00+00:00'"
            " and `at` < timestamp '2026-01-02 00:00:00+00:00'"
        ),
        "insert into demo.orders\nselect 1 as id",
    ]
    keys = replace(made, replaces=SameKeys(("id", "v")))
    shown = macro("tablestore_statement")(RELATION, settings(TableSettings("incremental")), keys)
    assert shown.startswith(
        "delete from demo.orders where (`id`, `v`) in (select `id`, `v` from (\nselect 1 as id\n));"
    )
