"""Builds one model or seed: checks its config, plans, writes, stages or publishes.

Names      ModelSettings   a model's table settings with its contract and comments
           ModelWriter     the engine's user behind the macros; one per invocation
Steps      read_settings (no I/O) → plan (reads columns) → write (one snapshot, staged or published)
INVARIANT  nothing is written before read_settings and plan have accepted the whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import agate
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.tablestore.build import Action, Batch, BuildPlan, Columns, Situation, plan_build
from dbt.adapters.tablestore.contract import Contract, read_comments, read_contract
from dbt.adapters.tablestore.gate import Verdict
from dbt.adapters.tablestore.model_config import TableSettings, read_settings
from dbt.adapters.tablestore.model_graph import check_topics
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.replacement import replace_table
from dbt.adapters.tablestore.response import TablestoreResponse, describe_commit
from dbt.adapters.tablestore.seeds import seed_to_arrow
from dbt.adapters.tablestore.staging import StagingDesk, staged_properties
from dbt.adapters.tablestore.translate import as_dbt_errors
from dbt.adapters.tablestore.versions import check_as_of_names, read_as_of, versions_of
from tablestore_engine.api import Engine, OnSchemaChange, TableSpec, WriteMode, WriteReport, WriteSpec
from tablestore_engine.errors import FixRequest, Unsupported

logger = AdapterLogger("Tablestore")


@dataclass(frozen=True)
class ModelSettings:
    """Everything that the model's YAML and config() say about its table."""

    node: str
    table: TableSettings
    contract: Contract
    comment: str | None
    column_comments: tuple[tuple[str, str], ...]


class ModelWriter:
    """Holds the invocation's staging desk and the settings that come from the profile and the command line."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        config: Any,  # noqa: ANN401 - dbt's untyped config
        databases: Callable[[], tuple[str, ...]],
    ) -> None:
        self._engine = engine
        self._config = config
        self._databases = databases
        self._desk = StagingDesk(engine)
        self._is_as_of_checked = False
        self._as_of = read_as_of(getattr(config, "cli_vars", None) or {}, config.credentials.schema)

    # --- config and plan ---

    def refuse_streaming(self, name: str) -> None:
        """Always raises."""
        raise Unsupported(
            "TS1821",
            f"model {name}: materialized='streaming' is not built yet",
            why="continuous queries come in a later version",
            fix="use materialized='tablestore' and run dbt on a schedule",
        )

    def read_settings(self, model: Mapping[str, Any], nodes: Mapping[str, Any]) -> ModelSettings:
        """Raises TS1810-TS1825 before anything is written."""
        config, name = model["config"], str(model["name"])
        brokers = (self._config.credentials.log or {}).get("kafka.bootstrap.servers")
        contract = read_contract(model)
        if contract.primary_key and not (config.get("primary_key") or config.get("unique_key")):
            config = {**config, "primary_key": list(contract.primary_key)}
        table = read_settings(name, config, None if brokers is None else str(brokers))
        if dict(table.options).get("log.system") == "kafka":
            check_topics(nodes, str(model["unique_id"]), dict(table.options).get("kafka.topic"))
        comment, column_comments = read_comments(model)
        return ModelSettings(
            str(model["unique_id"]), table, contract, comment, tuple(sorted(column_comments.items()))
        )

    def plan(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        sql: str,
        columns: Columns,
        facts: Mapping[str, Any],
    ) -> BuildPlan:
        """`facts`: existing (relation or None), full_refresh, batch (dbt's model.batch or None)."""
        engine, existing = self._engine(), facts.get("existing")
        table = engine.find_table(relation.table_name) if existing is not None and existing.is_table else None
        situation = Situation(
            name=relation.table_name, sql=sql, columns=columns, full_refresh=bool(facts.get("full_refresh"))
        )
        if table is not None:
            known = table.facts()
            situation = replace(
                situation,
                table_exists=True,
                table_columns=tuple((c.name, c.type_text) for c in engine.columns(relation.table_name)),
                table_key=known.primary_key,
                table_partition_by=known.partition_by,
                batch=_read_batch(facts.get("batch"), facts.get("event_time")),
            )
        return plan_build(settings.table, situation)

    # --- writing ---

    def write(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        plan: BuildPlan,
        context: Mapping[str, Any],
    ) -> TablestoreResponse:
        """One snapshot of the model's rows. `context`: nodes, selected, invocation, existing."""
        spec = WriteSpec(
            table=_table_spec(settings),
            mode=plan.mode,
            delete_when=settings.table.delete_when,
            checks=dict(settings.contract.checks),
            on_schema_change=plan.on_schema_change,
        )
        return self._commit(relation, settings, plan.action, spec, plan.select, context)

    def write_seed(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        table: agate.Table,
        context: Mapping[str, Any],
    ) -> TablestoreResponse:
        """The seed's rows replace what was there."""
        zone = (self._config.credentials.spark.get("conf") or {}).get("spark.sql.session.timeZone", "UTC")
        rows, types = seed_to_arrow(
            table,
            context.get("column_types") or {},
            zone=str(zone),
            quote_columns=bool(context.get("quote_columns")),
        )
        spec = WriteSpec(
            table=_table_spec(settings),
            mode=WriteMode.OVERWRITE_TABLE,
            checks=dict(settings.contract.checks),
            on_schema_change=OnSchemaChange.REPLACE,
        )
        situation = Situation(relation.table_name, "", types)
        plan = plan_build(settings.table, situation)
        return self._commit(relation, settings, plan.action, spec, rows, context)

    def _commit(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        action: Action,
        spec: WriteSpec,
        rows: Any,  # noqa: ANN401 - SQL text or an Arrow table
        context: Mapping[str, Any],
    ) -> TablestoreResponse:
        name, invocation = relation.table_name, str(context.get("invocation") or "")
        self._desk.start(invocation)
        staged = self._desk.plan_staged(
            node=settings.node,
            table=name,
            policy=settings.table.publish,
            nodes=context.get("nodes") or {},
            selected=context.get("selected") or (),
        )
        if staged is not None and context.get("batch"):
            raise Unsupported(
                "TS1833",
                f"model {name}: microbatch together with publishing after tests is not built yet",
                why="each interval is a snapshot of its own, and a staged one cannot be built upon",
                fix="set publish='always' on the model",
            )
        self._desk.clear_unpublished(settings.node)
        replaces = _must_replace(relation, action, context.get("existing"), is_staged=staged is not None)
        properties = {"dbt.invocation": invocation, "dbt.node": settings.node}
        spec = replace(
            spec,
            stage=None if staged is None else staged.name,
            commit_user=f"dbt-{invocation}" if invocation else None,
            commit_identifier=_commit_identifier(context.get("batch")),
            properties=properties if staged is None else {**properties, **staged_properties(staged)},
        )
        versions = self.versions_for(settings.node)
        report: WriteReport = (
            replace_table(self._engine(), name, rows, spec, versions)
            if replaces
            else self._engine().write(name, rows, spec, versions=versions)
        )
        if staged is None or report.staged is None:  # nothing changed: there is nothing to hold back
            self._desk.forget(settings.node, str(relation.schema))
        else:
            self._desk.add(staged)
        return describe_commit(report)

    # --- publishing ---

    def record(self, test: str, verdict: Verdict) -> tuple[str, ...]:
        """Outcome of a data test; lines for the log."""
        return self._desk.record(test, verdict, self._databases(), elsewhere=frozenset(self._as_of))

    def publish(self, nodes: frozenset[str]) -> tuple[str, ...]:
        """Let manual ones go."""
        return self._desk.publish_asked(nodes, self._databases())

    def take_held_back(self) -> tuple[str, ...]:
        """Lines about what stays unpublished; a second call has nothing to say."""
        return self._desk.take_held_back()

    def versions_for(self, node: str) -> Mapping[str, Any]:
        """table -> version that statements of this node read instead of the current one."""
        pins = versions_of(self._desk.branches_for(node, self._databases()))
        if not node.startswith("test."):
            return pins
        self.check_as_of()
        return {**pins, **self._as_of}

    @as_dbt_errors()
    def check_as_of(self) -> None:
        """Once per invocation, before anything runs. Raises TS1875 for a name that is no table."""
        if not self._is_as_of_checked:
            check_as_of_names(self._as_of, self._engine())
            self._is_as_of_checked = True


def _must_replace(
    relation: TablestoreRelation, action: Action, existing: TablestoreRelation | None, *, is_staged: bool
) -> bool:
    """Whether a view of the name, or a table with another key, gives way: neither can be turned into this table."""
    is_view = existing is not None and existing.is_view
    if not is_view and action != Action.RECREATE:
        return False
    if is_staged:
        what = "takes the place of a view" if is_view else "changes its key or partitions"
        raise FixRequest(
            "TS1832",
            f"table {relation.table_name} {what} and is published only after its tests",
            why="it is another relation than the one readers have: it cannot be staged beside that one",
            fix="run once without its tests (dbt run) or with publish='always', or drop the old one first",
        )
    if not is_view:
        logger.warning(
            f"{relation.table_name}: key or partitions changed; the table is made anew, its history ends"
        )
    return True


def _table_spec(settings: ModelSettings) -> TableSpec:
    return TableSpec(
        primary_key=settings.table.primary_key,
        partition_by=settings.table.partition_by,
        options=dict(settings.table.options),
        comment=settings.comment,
        column_comments=dict(settings.column_comments),
        not_null=settings.contract.not_null,
    )


def _commit_identifier(batch: Any) -> int:  # noqa: ANN401 - dbt's BatchContext
    """One write per model and invocation; with microbatch one per interval, told apart by its start."""
    start = (batch if isinstance(batch, Mapping) else vars(batch)).get("event_time_start") if batch else None
    return 1 if start is None else int(start.timestamp())


def _read_batch(batch: Any, event_time: str | None) -> Batch | None:  # noqa: ANN401 - dbt's BatchContext
    """dbt's microbatch interval; absent outside microbatch runs."""
    if not batch or not event_time:
        return None
    given = batch if isinstance(batch, Mapping) else vars(batch)
    return Batch(event_time, str(given["event_time_start"]), str(given["event_time_end"]))
