"""One write of a model: what it was planned from, and how it is planned again after another writer's commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.gate.microbatches import commit_identifier, span_of
from dbt.adapters.tablestore.plan.build_plan import BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.run_context import PlanContext, RunContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.batch_queries import AnalyzedQuery
from tablestore_engine.api import RetryError, WriteSpec
from tablestore_engine.spi import ReadLog

Work = tuple[WriteSpec, Any]  # and SQL text or an Arrow table


@dataclass(frozen=True)
class PlannedModel:
    """A plan, and what it was made from: the model's SQL, what Spark says of it, what the macros said."""

    plan: BuildPlan
    sql: str
    query: AnalyzedQuery
    context: PlanContext


@dataclass(frozen=True)
class ModelJob:
    """One write: `work` is what to write, `again` plans it for the newest snapshot, after another writer's commit.
    `batch`: its interval; `reads`: of its query.
    """

    relation: TablestoreRelation
    settings: ModelSettings
    plan: BuildPlan
    work: Work
    again: Callable[[], Work]
    invocation: str
    identifier: int
    batch: str | None
    reads: ReadLog


def job_of(
    relation: TablestoreRelation,
    settings: ModelSettings,
    plan: BuildPlan,
    work: Work,
    again: Callable[[], Work],
    context: RunContext,
    reads: ReadLog,
) -> ModelJob:
    """Of one model, or of one of its batches."""
    identifier, batch = commit_identifier(context.batch), span_of(context.batch)
    return ModelJob(relation, settings, plan, work, again, context.invocation, identifier, batch, reads)


def compiled_for_no_table(name: str, node: str) -> RetryError:
    """TS1879."""
    return RetryError(
        "TS1879",
        f"model {name} cannot be planned again in this run",
        why="its SQL was compiled for a table that did not exist, and another writer has created the table meanwhile",
        fix=f"dbt build --select {node.rsplit('.', maxsplit=1)[-1]}",
    )
