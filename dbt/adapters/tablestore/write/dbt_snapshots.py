"""One run of a dbt snapshot as a write: what its table is, which rows it gets, when it is published.

CHANGE     which keys a later run of a dbt snapshot compares
Rule       a later run compares the keys that changes of the source affect, by the proof of changed_keys. Without one,
           and where a key is an expression, all keys are compared. A source row that is as it was gives no version:
           dbt's strategies compare it with the version that it made.
WHY        a snapshot that reads staged rows of the same build is staged with them (decision 0011). It has no gates of
           its own unless its config says `publish`: a state that a red test keeps out of a history is lost for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.column import TablestoreColumn
from dbt.adapters.tablestore.config.changed_keys_config import Affected
from dbt.adapters.tablestore.config.contract_and_docs import Contract, read_comments
from dbt.adapters.tablestore.config.model_config import PUBLISH_POLICIES, TableSettings
from dbt.adapters.tablestore.config.value_shapes import read_choice
from dbt.adapters.tablestore.inputs.changed_inputs import ChangedInputs
from dbt.adapters.tablestore.inputs.changed_keys_strategy import ModelQuery
from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings, model_spec
from dbt.adapters.tablestore.plan.run_context import RunContext, SnapshotQuery
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_job import ModelJob, Work, compiled_for_no_table
from tablestore_engine.api import OnSchemaChange, Unsupported, WriteMode
from tablestore_engine.spi import ReadLog, Staged


@dataclass(frozen=True)
class VersionRows:
    """`sql`: all rows of a new table, else those to upsert. `tables`: what the source reads, if it is followed."""

    sql: str
    query: SnapshotQuery
    tables: tuple[str, ...] = ()


def snapshot_settings(model: Mapping[str, Any]) -> ModelSettings:
    """The table's key is dbt's id of a version, by the name that the config gives it. Raises FixRequest TS1811."""
    name, config = str(model["name"]), model.get("config") or {}
    publish = read_choice(name, "publish", config, PUBLISH_POLICIES, "always")
    named = config.get("snapshot_table_column_names") or config.get("snapshot_meta_column_names") or {}
    key = str(named.get("dbt_scd_id") or "dbt_scd_id")
    comment, columns = read_comments(model)
    table = TableSettings(materialized="snapshot", primary_key=(key,), publish=publish)
    return ModelSettings(str(model["unique_id"]), table, Contract(), comment, tuple(sorted(columns.items())))


def read_versions(
    name: str,
    sql: str,
    query: SnapshotQuery,
    columns_of: Callable[[str, ReadLog], Iterable[TablestoreColumn]],
) -> VersionRows:
    """Of one run. The source is followed if its key consists of columns and it does not read the table `name`."""
    reads = ReadLog()
    columns = {one.column.lower() for one in columns_of(query.sql, reads)} if query.sql else set()
    tables = tuple(sorted({one.table for one in reads.reads()}))
    follows = {one.lower() for one in query.key} <= columns and name not in tables
    return VersionRows(sql, query, tables if follows else ())


def snapshot_job(
    relation: TablestoreRelation,
    settings: ModelSettings,
    rows: VersionRows,
    context: RunContext,
    inputs: ChangedInputs,
    reads: ReadLog,
) -> ModelJob:
    """Changes of the source are read again each time that it is planned."""
    is_new = context.existing is None
    action = Action.CREATE if is_new else Action.INCREMENT
    mode = WriteMode.OVERWRITE_TABLE if is_new else WriteMode.UPSERT
    changes = OnSchemaChange.REPLACE if is_new else OnSchemaChange.APPEND_NEW_COLUMNS
    plan = BuildPlan(action, rows.sql, mode, changes)

    def planned() -> Work:
        return model_spec(settings, plan), _followed(relation, settings.node, rows, inputs, is_new=is_new)

    def again() -> Work:
        if is_new:
            raise compiled_for_no_table(relation.table_name, settings.node)
        return planned()

    return ModelJob(relation, settings, plan, planned(), again, context, reads)


def _followed(
    relation: TablestoreRelation, node: str, rows: VersionRows, inputs: ChangedInputs, *, is_new: bool
) -> str:
    if not rows.tables:
        return rows.sql
    query, affected = rows.query, Affected(rows.query.key, rows.query.key)
    asked = ModelQuery(relation.table_name, query.sql, query.text, affected, node, query.view, is_asked=False)
    found = inputs.follow(node, relation, asked, rows.tables, is_new=is_new)
    if found.affected is not None:
        return (
            query.restricted
            if found.evaluation is not None and found.evaluation.views
            else f"select * from (\n{rows.sql}\n) where false"
        )
    if found.reason and not is_new:
        logger.info(f"{relation.table_name}: all keys are compared: {found.reason}")
    return rows.sql


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
