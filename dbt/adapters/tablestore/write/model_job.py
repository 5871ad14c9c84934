"""One write of a model: what it was planned from, and how it is planned anew after somebody else's commit.

Names      PlannedModel   SQL, facts and action of a plan
           ModelJob       one write; job_of makes it from what the materialization says
           compiled_for_no_table   the error of one that cannot be planned again
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.tablestore.gate.microbatches import commit_identifier, span_of
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import WriteSpec
from tablestore_engine.errors import RetryError

Work = tuple[WriteSpec, Any]  # and SQL text or an Arrow table


@dataclass(frozen=True)
class PlannedModel:
    """What a model's plan was made from."""

    sql: str
    facts: Mapping[str, Any]
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
    context: Mapping[str, Any],
) -> ModelJob:
    """`context`: invocation, batch (dbt's model.batch or None)."""
    invocation, batch = str(context.get("invocation") or ""), context.get("batch")
    return ModelJob(
        relation, settings, plan, work, again, invocation, commit_identifier(batch), span_of(batch)
    )


def compiled_for_no_table(name: str, node: str) -> RetryError:
    """TS1879."""
    return RetryError(
        "TS1879",
        f"model {name} cannot be planned again in this run",
        why="its SQL was compiled for a table that did not exist, and somebody has made the table meanwhile",
        fix=f"dbt build --select {node.rsplit('.', maxsplit=1)[-1]}",
    )
