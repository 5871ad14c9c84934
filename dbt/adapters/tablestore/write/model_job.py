"""One write of a model: what it was planned from, and how it is planned again after another writer's commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.gate.microbatches import commit_identifier, span_of
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.run_context import PlanContext, RunContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import RetryError, WriteSpec

Work = tuple[WriteSpec, Any]  # and SQL text or an Arrow table


@dataclass(frozen=True)
class PlannedModel:
    """What a model's plan was made from."""

    sql: str
    context: PlanContext
    action: Action


@dataclass(frozen=True)
class ModelJob:
    """One write: `work` is what to write, `again` plans it anew after somebody else's commit. `batch`: its interval."""

    relation: TablestoreRelation
    settings: ModelSettings
    plan: BuildPlan
    work: Work
    again: Callable[[], Work]
    invocation: str
    identifier: int
    batch: str | None


def job_of(
    relation: TablestoreRelation,
    settings: ModelSettings,
    plan: BuildPlan,
    work: Work,
    again: Callable[[], Work],
    context: RunContext,
) -> ModelJob:
    """Of one model, or of one of its batches."""
    identifier, batch = commit_identifier(context.batch), span_of(context.batch)
    return ModelJob(relation, settings, plan, work, again, context.invocation, identifier, batch)


def compiled_for_no_table(name: str, node: str) -> RetryError:
    """TS1879."""
    return RetryError(
        "TS1879",
        f"model {name} cannot be planned again in this run",
        why="its SQL was compiled for a table that did not exist, and another writer has created the table meanwhile",
        fix=f"dbt build --select {node.rsplit('.', maxsplit=1)[-1]}",
    )
