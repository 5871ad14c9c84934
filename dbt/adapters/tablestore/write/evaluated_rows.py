"""What run_results.json says of a changed_keys model: whether all rows were evaluated, and why."""

from __future__ import annotations

from dbt.adapters.tablestore.adapter_response import TablestoreResponse
from dbt.adapters.tablestore.inputs.changed_keys_inputs import Followed
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from tablestore_engine.api import WriteMode


def tell_evaluated(response: TablestoreResponse, followed: Followed | None, plan: BuildPlan) -> None:
    """`followed`: None for models that do not follow changes by key."""
    if followed is None:
        return
    if plan.action is Action.INCREMENT and plan.mode is WriteMode.UPSERT:
        response.tell_evaluated("affected keys", "", followed.keys)
    elif plan.action is Action.INCREMENT:
        response.tell_evaluated("all rows", followed.reason or "its columns changed", None)
    else:
        response.tell_evaluated("all rows", "", None)
