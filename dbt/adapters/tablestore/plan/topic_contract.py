"""A model with an enforced contract and a topic keeps what consumers of the topic rely on.

Breaks     a column is gone · a type is no longer read by who read the former one · the key of the messages is another
Not        new columns, wider numbers, another order of columns
INVARIANT  pure. It is decided before anything is written; `contract_changes='allowed'` says that consumers know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan, Situation, diff_columns, plan_build
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from tablestore_engine.api import FixRequest

_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def plan_model(settings: ModelSettings, situation: Situation) -> BuildPlan:
    """plan_build(), and TS1877 for a plan that breaks consumers of the model's topic."""
    plan = plan_build(settings.table, situation)
    is_kept = settings.contract.columns and situation.table_layout.has_log and situation.table_exists
    if is_kept and settings.table.contract_changes != "allowed":
        broken = tuple(find_breaks(settings, situation, plan))
        if broken:
            raise FixRequest(
                "TS1877",
                f"model {situation.name} changes what consumers of its topic rely on",
                why="; ".join(broken),
                fix="keep the column as it was, give the model another version and topic, or set "
                "contract_changes='allowed' once they are ready",
            )
    return plan


def find_breaks(settings: ModelSettings, situation: Situation, plan: BuildPlan) -> Iterator[str]:
    """In words."""
    rule = "sync_all_columns" if plan.action is not Action.INCREMENT else settings.table.on_schema_change
    _, removed, retyped = diff_columns(situation.columns, situation.table_columns)
    if rule == "sync_all_columns":
        yield from (f"column {name} is gone" for name in removed)
    if rule in ("sync_all_columns", "append_new_columns"):
        old = {name.lower(): kind for name, kind in situation.table_columns}
        new = {name.lower(): kind for name, kind in situation.columns}
        for name in retyped:
            before, after = old[name.lower()], new[name.lower()]
            if not is_wider(before, after):
                yield f"column {name} was {before} and becomes {after}"
    for change in plan.changes:
        if change.what == "primary_key":
            yield f"the key was {change.present} and becomes {change.wanted}"


def is_wider(before: str, after: str) -> bool:
    """Whether each value of the former Spark type is one of the new type, which readers of numbers accept."""
    for line in _WIDER:
        if before in line and after in line:
            return line.index(after) >= line.index(before)
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(after)
    return old is not None and new is not None and old[2] == new[2] and int(new[1]) >= int(old[1])
