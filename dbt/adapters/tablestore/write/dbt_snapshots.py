"""One run of a dbt snapshot as a write: what its table is, which rows it gets, when it is published.

WHY        a snapshot that reads staged rows of the same build is staged with them (decision 0011). It has no gates of
           its own unless its config says `publish`: a state that a red test keeps out of a history is lost for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.tablestore.config.contract_and_docs import Contract, read_comments
from dbt.adapters.tablestore.config.model_config import PUBLISH_POLICIES, TableSettings
from dbt.adapters.tablestore.config.value_shapes import read_choice
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings, model_spec
from dbt.adapters.tablestore.plan.run_context import RunContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_job import ModelJob, Work, compiled_for_no_table, job_of
from tablestore_engine.api import OnSchemaChange, Unsupported, WriteMode
from tablestore_engine.spi import Staged


def snapshot_settings(model: Mapping[str, Any]) -> ModelSettings:
    """The table's key is dbt's id of a version, by the name that the config gives it. Raises FixRequest TS1811."""
    name, config = str(model["name"]), model.get("config") or {}
    publish = read_choice(name, "publish", config, PUBLISH_POLICIES, "always")
    named = config.get("snapshot_table_column_names") or config.get("snapshot_meta_column_names") or {}
    key = str(named.get("dbt_scd_id") or "dbt_scd_id")
    comment, columns = read_comments(model)
    table = TableSettings(materialized="snapshot", primary_key=(key,), publish=publish)
    return ModelSettings(str(model["unique_id"]), table, Contract(), comment, tuple(sorted(columns.items())))


def snapshot_job(
    relation: TablestoreRelation, settings: ModelSettings, sql: str, context: RunContext
) -> ModelJob:
    """`sql`: all rows of a new table, else those to upsert."""
    is_new = context.existing is None
    action = Action.CREATE if is_new else Action.INCREMENT
    mode = WriteMode.OVERWRITE_TABLE if is_new else WriteMode.UPSERT
    changes = OnSchemaChange.REPLACE if is_new else OnSchemaChange.APPEND_NEW_COLUMNS
    plan = BuildPlan(action, sql, mode, changes)
    work = (model_spec(settings, plan), sql)

    def again() -> Work:
        if is_new:
            raise compiled_for_no_table(relation.table_name, settings.node)
        return work

    return job_of(relation, settings, plan, work, again, context)


def no_merge(staged: Staged) -> Unsupported:
    """TS1883: the table has another key than dbt's, and the run would have to be staged."""
    name = staged.table
    short = name.rsplit(".", maxsplit=1)[-1]
    parents = ", ".join(sorted({read.table for read in staged.parents}))
    why = f"it reads rows of {parents} that are not published yet" if parents else "its config says publish"
    fix = (
        f"publish {parents} first, then run `dbt snapshot --select {short}`" if parents else "remove publish"
    )
    return Unsupported(
        "TS1883",
        f"snapshot {name} cannot be staged",
        why=f"{why}; its table has another key than dbt's id of a version, so MERGE changes it, which is not staged",
        fix=fix,
    )
