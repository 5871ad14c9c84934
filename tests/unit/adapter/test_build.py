"""What a run does to its table: the plan for each situation, and the refusals before it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dbt.adapters.tablestore.config.model_config import TableSettings
from dbt.adapters.tablestore.plan.build_plan import Action, Microbatch, Situation, diff_columns, plan_build
from dbt.adapters.tablestore.plan.layout_changes import ModelLayout, list_changes
from tablestore_engine.api import Interval, OnSchemaChange, SameKeys, WriteMode
from tablestore_engine.errors import FixRequest

COLUMNS = (("id", "bigint"), ("v", "string"))
NEW = Situation("demo.orders", "select 1", COLUMNS)
OLD = replace(NEW, table_exists=True, table_columns=COLUMNS, table_layout=ModelLayout(key=("id",)))
BARE = replace(OLD, table_layout=ModelLayout())
KEYED = TableSettings("incremental", primary_key=("id",), strategy="merge")
TABLE = replace(KEYED, materialized="table")
APPEND = TableSettings("incremental")
DAY = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("settings", "situation", "action", "mode", "change"),
    [
        (KEYED, NEW, Action.CREATE, WriteMode.UPSERT, OnSchemaChange.REPLACE),
        (APPEND, NEW, Action.CREATE, WriteMode.APPEND, OnSchemaChange.REPLACE),
        (KEYED, replace(OLD, full_refresh=True), Action.REPLACE, WriteMode.OVERWRITE_TABLE, OnSchemaChange.REPLACE),
        (TABLE, OLD, Action.REPLACE, WriteMode.OVERWRITE_TABLE, OnSchemaChange.REPLACE),
        (TABLE, BARE, Action.RECREATE, WriteMode.OVERWRITE_TABLE, OnSchemaChange.REPLACE),
        (KEYED, OLD, Action.INCREMENT, WriteMode.UPSERT, OnSchemaChange.IGNORE),
        (APPEND, BARE, Action.INCREMENT, WriteMode.APPEND, OnSchemaChange.IGNORE),
        (replace(KEYED, strategy="append"), OLD, Action.INCREMENT, WriteMode.UPSERT, OnSchemaChange.IGNORE),
        (
            TableSettings("incremental", strategy="delete+insert", delete_key=("id",)),
            BARE, Action.INCREMENT, WriteMode.REPLACE, OnSchemaChange.IGNORE,
        ),
        (
            TableSettings("incremental", strategy="delete+insert", delete_key=("id",), predicates=("id > 1",)),
            BARE, Action.INCREMENT, WriteMode.OVERWRITE_TABLE, OnSchemaChange.IGNORE,
        ),
        (
            TableSettings("incremental", strategy="delete+insert"),
            BARE, Action.INCREMENT, WriteMode.APPEND, OnSchemaChange.IGNORE,
        ),
        (
            TableSettings("x", partition_by=("v",), strategy="insert_overwrite", on_schema_change="sync_all_columns"),
            replace(BARE, table_layout=ModelLayout(partition_by=("v",))),
            Action.INCREMENT, WriteMode.OVERWRITE_PARTITIONS, OnSchemaChange.SYNC_ALL_COLUMNS,
        ),
    ],
)  # fmt: skip
def test_plan(
    settings: TableSettings, situation: Situation, action: Action, mode: WriteMode, change: OnSchemaChange
) -> None:
    """Each situation has one action, one mode and one schema rule."""
    plan = plan_build(settings, situation)
    assert (plan.action, plan.mode, plan.on_schema_change) == (action, mode, change)


@pytest.mark.parametrize(
    ("settings", "situation", "code"),
    [
        (TableSettings("table", primary_key=("order_id",)), NEW, "TS1822"),
        (TableSettings("table", partition_by=("dt",)), NEW, "TS1822"),
        (TableSettings("table", primary_key=("id",), options=(("sequence.field", "ts"),)), NEW, "TS1822"),
        (TableSettings("incremental", delete_key=("x",), strategy="delete+insert"), BARE, "TS1822"),
        (KEYED, BARE, "TS1826"),
        (replace(KEYED, partition_by=("v",)), OLD, "TS1826"),
        (KEYED, replace(OLD, table_columns=(*COLUMNS, ("old", "int"))), "TS1828"),
        (replace(KEYED, on_schema_change="fail"), replace(OLD, columns=(*COLUMNS, ("new", "int"))), "TS1827"),
        (
            replace(KEYED, on_schema_change="fail"),
            replace(OLD, table_columns=(("id", "int"), ("v", "string"))),
            "TS1827",
        ),
        (TableSettings("tablestore", strategy="microbatch"), BARE, "TS1829"),
        (TableSettings("tablestore", strategy="microbatch"), NEW, "TS1829"),
        (
            TableSettings("incremental", strategy="microbatch"),
            replace(NEW, batch=Microbatch("at", *DAY)),
            "TS1886",
        ),
        (
            TableSettings("incremental", strategy="microbatch"),
            replace(NEW, batch=Microbatch("v", *DAY)),
            "TS1886",
        ),
    ],
)
def test_refusals(settings: TableSettings, situation: Situation, code: str) -> None:
    """A plan that would write something wrong is no plan."""
    with pytest.raises(FixRequest) as caught:
        plan_build(settings, situation)
    assert caught.value.code == code


def test_columns_are_compared_without_case() -> None:
    """Spark's names have no case, so ID is id."""
    assert diff_columns((("ID", "int"),), (("id", "int"),)) == ((), (), ())
    assert diff_columns((("a", "int"), ("b", "int")), (("b", "bigint"), ("c", "int"))) == (
        ("a",),
        ("c",),
        ("b",),
    )


def test_microbatch_replaces_its_interval() -> None:
    """The query stays as it is; which rows give way is said by the interval, in UTC."""
    settings = TableSettings("incremental", strategy="microbatch")
    columns = (*COLUMNS, ("At", "timestamp"))
    plan = plan_build(settings, replace(BARE, columns=columns, batch=Microbatch("at", *DAY)))
    assert (plan.mode, plan.select) == (WriteMode.REPLACE, BARE.sql)
    assert plan.replaces == Interval("at", *DAY)


def test_delete_insert_replaces_the_keys_of_its_rows() -> None:
    """No scan of the table in the query: the store looks for the keys."""
    settings = TableSettings("incremental", strategy="delete+insert", delete_key=("id",))
    plan = plan_build(settings, BARE)
    assert (plan.select, plan.replaces) == (BARE.sql, SameKeys(("id",)))


STRUCTS = "map<string,array<struct<`a`:int,`b`:decimal(10,2),`c`:struct<`d`:int>>>>"
PREDICATED = TableSettings(
    "incremental", strategy="delete+insert", delete_key=("id",), predicates=("id > 1",)
)


@pytest.mark.parametrize(
    ("given", "is_refused"),
    [
        ("map<string,array<struct<a:int,b:decimal(10,2),c:struct<d:int>>>>", False),
        ("map<string,array<struct<A:int,b:decimal(12,2),c:struct<d:bigint>>>>", False),
        ("map<string,array<struct<b:decimal(10,2),a:int,c:struct<d:int>>>>", True),
        ("map<string,array<struct<a:int,b:decimal(10,2),c:struct<e:int>>>>", True),
        ("string", True),
    ],
)
def test_delete_insert_with_predicates_needs_the_fields_of_the_table(given: str, is_refused: bool) -> None:
    """Its query is a UNION ALL, in which Spark takes fields by position: another order would swap values."""
    situation = replace(
        BARE,
        columns=(*COLUMNS, ("s", given), ("new", "struct<x:int>")),
        table_columns=(*COLUMNS, ("S", STRUCTS)),
    )
    if is_refused:
        with pytest.raises(FixRequest, match="TS1833"):
            plan_build(PREDICATED, situation)
    else:
        plan_build(PREDICATED, situation)
    plan_build(replace(PREDICATED, predicates=()), situation)


def test_struct_of_the_table_is_no_other_type() -> None:
    """Types of tables have backticks, types of queries have none: `fail` refused each second run of such a model."""
    settings = TableSettings("incremental", on_schema_change="fail")
    same = replace(BARE, columns=(("s", STRUCTS.replace("`", "")),), table_columns=(("s", STRUCTS),))
    assert plan_build(settings, same).on_schema_change is OnSchemaChange.FAIL
    other = replace(same, columns=(("s", STRUCTS.replace("`", "").replace("a:int", "a:bigint")),))
    with pytest.raises(FixRequest, match="TS1827"):
        plan_build(settings, other)


def test_changes_of_the_layout() -> None:
    """What the model asks otherwise, and options it no longer names; a new log, buckets left out or `auto` are none."""
    settings = TableSettings("table", primary_key=("id",), options=(("bucket", "4"), ("kafka.topic", "t")))
    table = ModelLayout(
        key=("ID",),
        options={"bucket": "2", "sequence.field": "v", "write-only": "true", "target-file-size": "1 mb"},
    )
    changes = list_changes(settings, table)
    assert [(one.what, one.present, one.wanted, one.is_asked) for one in changes] == [
        ("bucket", "2", "4", True),
        ("sequence.field", "v", None, False),
    ]
    assert (
        list_changes(TableSettings("table", primary_key=("id",)), ModelLayout(("id",), (), {"bucket": "8"}))
        == ()
    )
    chosen = TableSettings("table", primary_key=("id",), options=(("bucket", "auto"),))
    assert list_changes(chosen, ModelLayout(("id",), (), {"bucket": "8"})) == ()
    theirs = {"log.changelog-mode": "all", "num-levels": "6", "deletion-vectors.enabled": "false"}
    assert list_changes(TableSettings("table", primary_key=("id",)), ModelLayout(("id",), (), theirs)) == ()
    logged = ModelLayout(
        ("id",), (), {"log.system": "kafka", "kafka.topic": "t", "log.changelog-mode": "all"}
    )
    unlogged = list_changes(TableSettings("table", primary_key=("id",)), logged)
    assert [one.what for one in unlogged] == ["log.system", "kafka.topic"]
    wanted = TableSettings(
        "table", primary_key=("id",), options=(("log.system", "kafka"), ("kafka.topic", "u"))
    )
    assert [one.what for one in list_changes(wanted, logged)] == ["kafka.topic"]
