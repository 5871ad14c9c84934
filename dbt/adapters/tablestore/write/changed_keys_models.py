"""Models by incremental_strategy='changed_keys': what a run of one evaluates, and what dbt's log says of it.

CHANGE     the run of a `changed_keys` model, and its warnings
INVARIANT  a run that compares all rows warns once, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt.adapters.tablestore.adapter_response import TablestoreResponse
from dbt.adapters.tablestore.inputs.changed_inputs import ChangedInputs
from dbt.adapters.tablestore.inputs.changed_keys_explanation import explain_changed_keys
from dbt.adapters.tablestore.inputs.changed_keys_strategy import Evaluation, ModelQuery
from dbt.adapters.tablestore.messages import TerminalMessages, WarnedOnce
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan, Situation
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.run_context import PlanContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import Engine, WriteMode
from tablestore_engine.spi import ReadLog

logger = TerminalMessages("Tablestore")


class ChangedKeysModels:
    """Of one invocation."""

    def __init__(self, engine: Callable[[], Engine], inputs: ChangedInputs) -> None:
        self._engine, self._inputs = engine, inputs
        self._warned = WarnedOnce(logger)

    def followed(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        situation: Situation,
        context: PlanContext,
        reads: ReadLog,
    ) -> Situation:
        """With the keys that changes of the inputs affect; `reads`: what the model's query reads."""
        assert settings.table.affected is not None
        tables = tuple(sorted({one.table for one in reads.reads()}))
        text = context.compiled or situation.sql
        query = ModelQuery(relation.table_name, situation.sql, text, settings.table.affected, settings.node)
        is_new = not situation.table_exists or situation.full_refresh
        found = self._inputs.follow(settings.node, relation, query, tables, is_new=is_new)
        for warning in found.warnings:
            logger.warning(f"{relation.table_name}: {warning}")
        if found.is_chosen:
            logger.info(f"{relation.table_name}: all rows are computed, which is cheaper: {found.reason}")
        elif found.reason and not is_new:
            text = f"{relation.table_name}: all rows are compared: {found.reason}"
            self._warned.warn(text, text)
        sql = f"select * from `{found.rows_view}`" if found.rows_view else situation.sql
        return replace(situation, sql=sql, affected=found.affected)

    def tell_evaluated(self, response: TablestoreResponse, node: str, plan: BuildPlan) -> None:
        """What run_results.json says: deltas, the query for the affected keys, or all rows, and why."""
        followed = self._inputs.followed(node)
        if followed is None:
            return
        expected = followed.choice.estimates
        response.seconds_expected = {"changes": expected.changes, "all rows": expected.whole}
        if followed.moment_ms is not None:
            response.tell_moment(followed.moment_ms)
        if plan.action is not Action.INCREMENT:
            response.tell_evaluated("all rows", "", None)
        elif followed.affected is not None and plan.mode is WriteMode.UPSERT:
            assert followed.evaluation is not None
            _tell_restricted(response, followed.evaluation)
        else:
            response.tell_evaluated("all rows", followed.reason or "its columns changed", None)

    def explain(self, name: str, text: str, settings: ModelSettings) -> None:
        """In `dbt compile`: how the model follows its inputs. Raises FixRequest TS1870, TS1871, TS1872."""
        if settings.table.affected is None:
            return
        query = ModelQuery(name, text, text, settings.table.affected)
        for line in explain_changed_keys(self._engine(), query):
            (logger.warning if line.is_warning else logger.info)(line.text)

    def warn_is_incremental(self, name: str) -> None:
        """Once for each model: its query is written as for a full refresh."""
        self._warned.warn(
            f"is_incremental() of {name}",
            f"model {name}: is_incremental() is false with incremental_strategy='changed_keys', whose query is "
            "always the full one; remove the branch",
        )


def _tell_restricted(response: TablestoreResponse, found: Evaluation) -> None:
    if not found.has_deltas:
        response.tell_evaluated("affected keys", "", found.keys, found.no_deltas)
        return
    response.tell_evaluated("deltas", "", found.keys)
    response.keys_evaluated = found.evaluated
