"""What breaks consumers of a topic is refused where the model has a contract."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.tablestore.config.contract_and_docs import Contract
from dbt.adapters.tablestore.config.model_config import TableSettings
from dbt.adapters.tablestore.plan.build_plan import Columns, Situation
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.layout_changes import ModelLayout
from dbt.adapters.tablestore.plan.topic_contract import is_wider, plan_model
from tablestore_engine.errors import FixRequest

OLD: Columns = (("id", "int"), ("v", "string"), ("n", "decimal(10,2)"))
LOG = {"log.system": "kafka"}
TABLE = TableSettings(
    "incremental", primary_key=("id",), strategy="merge", on_schema_change="sync_all_columns"
)
SETTINGS = ModelSettings("model.p.m", TABLE, Contract(columns=OLD), None, ())


def situation(columns: Columns, *, full: bool = False, options: dict[str, str] = LOG) -> Situation:
    """The table has OLD."""
    layout = ModelLayout(("id",), (), options)
    return Situation("demo.m", "select", columns, True, OLD, layout, full_refresh=full)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ((("id", "int"), ("v", "string")), "column n is gone"),
        ((("id", "int"), ("v", "int"), ("n", "decimal(10,2)")), "column v was string and becomes int"),
        (
            (("id", "int"), ("v", "string"), ("n", "decimal(9,2)")),
            r"column n was decimal\(10,2\) and becomes",
        ),
        ((("id", "int"), ("v", "string"), ("n", "decimal(12,3)")), "column n was"),
    ],
)
def test_what_breaks_consumers_is_refused(columns: Columns, why: str) -> None:
    """In a later run and in a full refresh; not without a contract, not without a topic, not where it is allowed."""
    for full in (False, True):
        with pytest.raises(FixRequest, match=rf"TS1877(.|\n)*{why}"):
            plan_model(SETTINGS, situation(columns, full=full))
    allowed = replace(SETTINGS, table=replace(TABLE, contract_changes="allowed"))
    for settings, options in (
        (allowed, LOG),
        (replace(SETTINGS, contract=Contract()), LOG),
        (SETTINGS, {}),
    ):
        plan_model(settings, situation(columns, options=options, full=True))


@pytest.mark.parametrize(
    "columns",
    [
        (*OLD, ("new", "string")),
        (("n", "decimal(10,2)"), ("v", "string"), ("id", "int")),
        (("id", "bigint"), ("v", "string"), ("n", "decimal(12,2)")),
    ],
)
def test_what_consumers_can_read_is_no_break(columns: Columns) -> None:
    """New columns, another order, wider numbers."""
    for full in (False, True):
        plan_model(SETTINGS, situation(columns, full=full))


def test_another_key_is_a_break() -> None:
    """Messages of one row would no longer have one key."""
    settings = replace(SETTINGS, table=replace(TABLE, primary_key=("id", "v")))
    with pytest.raises(FixRequest, match=r"TS1877(.|\n)*the key was"):
        plan_model(settings, situation(OLD, full=True))


def test_a_type_that_is_kept_breaks_nothing() -> None:
    """on_schema_change='ignore' keeps the table's type; 'append_new_columns' keeps columns that the query lacks."""
    kept = replace(SETTINGS, table=replace(TABLE, on_schema_change="ignore"))
    plan_model(kept, situation((("id", "int"), ("v", "int"), ("n", "decimal(10,2)"))))
    added = replace(SETTINGS, table=replace(TABLE, on_schema_change="append_new_columns"))
    plan_model(added, situation((("id", "int"), ("v", "string"))))
    with pytest.raises(FixRequest, match="TS1877"):
        plan_model(added, situation((("id", "int"), ("v", "int"), ("n", "decimal(10,2)"))))


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [("int", "bigint", True), ("bigint", "int", False), ("float", "double", True), ("int", "double", False),
     ("decimal(5,2)", "decimal(7,2)", True), ("decimal(5,2)", "decimal(7,3)", False), ("date", "timestamp", False)],
)  # fmt: skip
def test_wider(before: str, after: str, wider: bool) -> None:
    """Only where no reader of the former type loses a value."""
    assert is_wider(before, after) is wider
