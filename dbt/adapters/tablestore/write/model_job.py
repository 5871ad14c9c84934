"""One write of a model: what is there when it is planned, and how it is planned again after another writer's commit.

INVARIANT  the table is looked up once: columns, keys and options are of one schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.tablestore.gate.microbatches import commit_identifier, read_batch, span_of
from dbt.adapters.tablestore.plan.build_plan import BuildPlan, Columns, Situation
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.layout_changes import ModelLayout
from dbt.adapters.tablestore.plan.run_context import PlanContext, RunContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.batch_queries import AnalyzedQuery
from tablestore_engine.api import Engine, RetryError, WriteSpec
from tablestore_engine.spi import ReadLog, shown_columns

Work = tuple[WriteSpec, Any]  # and SQL text or an Arrow table


@dataclass(frozen=True)
class ModelRun:
    """What the macros ask for: a model's SQL, what Spark says of it, and what is there."""

    relation: TablestoreRelation
    settings: ModelSettings
    sql: str
    query: AnalyzedQuery
    context: PlanContext


@dataclass(frozen=True)
class PlannedModel:
    run: ModelRun
    plan: BuildPlan


@dataclass(frozen=True)
class ModelJob:
    """One write: `work` is what to write, `again` plans it for the newest snapshot, after another writer's commit.
    `reads`: of its query; `attempt`: how often it was staged before.
    """

    relation: TablestoreRelation
    settings: ModelSettings
    plan: BuildPlan
    work: Work
    again: Callable[[], Work]
    context: RunContext
    reads: ReadLog
    attempt: int = 0

    @property
    def batch(self) -> str | None:
        """Its interval; None outside microbatch runs."""
        return span_of(self.context.batch)

    @property
    def identifier(self) -> int:
        """Of its commit, of all that this invocation makes."""
        return commit_identifier(self.context.batch) + self.attempt


def read_situation(
    engine: Engine,
    relation: TablestoreRelation,
    sql: str,
    columns: Columns,
    context: PlanContext,
) -> Situation:
    """`sql`, `columns`: of the model's query."""
    existing = context.existing
    is_there = existing is not None and existing.is_table
    if existing is None and context.batch is not None:  # batches of a table that nobody has seen may wait
        is_there = not context.full_refresh
    seen = engine.find_seen_table(relation.table_name) if is_there else None
    situation = Situation(
        relation.table_name,
        sql,
        columns,
        full_refresh=context.full_refresh,
        batch=read_batch(context.batch, context.event_time),
    )
    if seen is None:
        return situation
    known = seen.schema
    return replace(
        situation,
        table_exists=True,
        table_columns=tuple((c.name, c.type_text) for c in shown_columns(known)),
        table_layout=ModelLayout(known.primary_keys, known.partition_keys, dict(known.options)),
    )


def compiled_for_no_table(name: str, node: str) -> RetryError:
    return RetryError(
        "TS1879",
        f"model {name} cannot be planned again in this run",
        why="its SQL was compiled for a table that did not exist, and another writer has created the table meanwhile",
        fix=f"dbt build --select {node.rsplit('.', maxsplit=1)[-1]}",
    )
