"""Builds one model or seed: checks its config, plans, writes, stages or publishes.

Steps      read_settings (no I/O) → plan (reads columns) → write (one snapshot, staged or published)
INVARIANT  nothing is written before read_settings and plan have accepted the whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import agate
from dbt_common.invocation import get_invocation_id

from dbt.adapters.tablestore.adapter_response import TablestoreResponse, describe_commit
from dbt.adapters.tablestore.config.changed_keys_config import as_built
from dbt.adapters.tablestore.config.contract_and_docs import read_comments, read_contract
from dbt.adapters.tablestore.config.custom_strategies import builds_on_staged
from dbt.adapters.tablestore.config.keyless_models import is_replaced, refuse_changes
from dbt.adapters.tablestore.config.keys_of_other_adapters import IgnoredKeys
from dbt.adapters.tablestore.config.model_config import read_settings
from dbt.adapters.tablestore.credentials import log_settings
from dbt.adapters.tablestore.gate.gate_state import Rebuild
from dbt.adapters.tablestore.gate.publish_coordinator import PublishCoordinator
from dbt.adapters.tablestore.inputs.changed_rows_sql import applied_select
from dbt.adapters.tablestore.inputs.partial_runs import EmptyRuns, is_empty, no_keys, refuse_sample
from dbt.adapters.tablestore.inputs.stream_explanation import NamedType, explain_streams
from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.model_graph import check_topics
from dbt.adapters.tablestore.node_looks import NodeLooks
from dbt.adapters.tablestore.pinned_reads import retry_published
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings, model_spec
from dbt.adapters.tablestore.plan.run_context import (
    InputContext,
    RunContext,
    SeedContext,
)
from dbt.adapters.tablestore.plan.topic_contract import plan_model
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.batch_queries import AnalyzedQuery, BatchQueries
from dbt.adapters.tablestore.write.changed_keys_models import ChangedKeysModels
from dbt.adapters.tablestore.write.data_tests import DataTests
from dbt.adapters.tablestore.write.dbt_retry import PendingWrites, find_retried
from dbt.adapters.tablestore.write.dbt_snapshots import VersionRows, no_merge, snapshot_job, snapshot_settings
from dbt.adapters.tablestore.write.model_commits import ModelCommits
from dbt.adapters.tablestore.write.model_job import (
    ModelJob,
    ModelRun,
    PlannedModel,
    Work,
    compiled_for_no_table,
    read_situation,
)
from dbt.adapters.tablestore.write.node_versions import NodeVersions, but_own
from dbt.adapters.tablestore.write.python_models import PythonModels
from dbt.adapters.tablestore.write.replacement import must_replace
from dbt.adapters.tablestore.write.seeds import seed_job
from tablestore_engine.api import Engine, TablestoreError
from tablestore_engine.spi import (
    BROKERS,
    NoRows,
    OrderedLock,
    Rank,
    ReadLog,
    Staged,
    StagedSnapshotClosed,
    StagedSnapshotMissing,
    StagedVersionMissing,
)


class ModelWriter:
    """Holds the invocation's publish coordinator and the settings that come from the profile and the command line."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        config: Any,  # noqa: ANN401 - dbt's untyped config
        databases: Callable[[], tuple[str, ...]],
    ) -> None:
        self._engine = engine
        self._config = config
        self._databases = databases
        self.coordinator = PublishCoordinator(engine)
        target = Path(getattr(config, "project_target_path", "target"))
        self._pending = PendingWrites(target, find_retried(target))
        self.ignored = IgnoredKeys()
        self._jobs: dict[str, list[ModelJob]] = {}
        self._lock = OrderedLock("models of this run", Rank.PROCESS)
        self.looks = NodeLooks(engine)
        self.pinned = NodeVersions(self.looks, config, self.coordinator, databases, self._adopt)
        self.inputs, self.streams = self.pinned.inputs, self.pinned.streams
        self.python = PythonModels(engine, self.pinned, config)
        settings_of = partial(self.read_settings, nodes={})
        self.tests = DataTests(
            engine, target, self.coordinator, self.pinned, databases, self.python, settings_of
        )
        self._commits = ModelCommits(engine, config, self._pending, self.pinned)
        self.changed_keys = ChangedKeysModels(self.looks.engine, self.inputs)
        self.batches = BatchQueries(engine, self.pinned)
        self._empty = EmptyRuns()

    def _adopt(self) -> None:
        self.coordinator.adopt(lambda: self._pending.retried_runs(get_invocation_id()), self._databases)

    def read_settings(self, model: Mapping[str, Any], nodes: Mapping[str, Any]) -> ModelSettings:
        """Of a model, seed or snapshot. Raises TS1810-TS1825 before anything is written."""
        if model.get("resource_type") == "snapshot":
            return snapshot_settings(model)
        found, name, node = as_built(model), str(model["name"]), str(model["unique_id"])
        contract = read_contract(model)
        if contract.primary_key and not (found.get("primary_key") or found.get("unique_key")):
            found = {**found, "primary_key": list(contract.primary_key)}
        if is_replaced(model):
            found = {**found, "materialized": "table"}
        self.ignored.tell(name, found)
        table = read_settings(name, found, log_settings(self._config.credentials).get(BROKERS))
        options = dict(table.options)
        if options.get("log.system") == "kafka":
            check_topics(nodes, node, options.get("kafka.topic"))
        comment, columns = read_comments(model)
        return ModelSettings(node, table, contract, comment, tuple(sorted(columns.items())))

    def plan(self, run: ModelRun) -> PlannedModel:
        self.looks.resume()
        return self.pinned.retry(run.settings.node, lambda: PlannedModel(run, self._plan(run)))

    def _plan(self, run: ModelRun) -> BuildPlan:
        relation, settings, sql, columns = run.relation, run.settings, run.sql, run.query.columns
        query, context = sql, run.context
        follows = self.inputs.has_inputs(settings.node) or self.streams.follows(settings.node)
        if follows and settings.table.materialized == "table":
            raise refuse_changes(relation.table_name)
        if follows or settings.table.affected is not None:
            refuse_sample(self._config, settings.node)
        if settings.table.streaming is not None and not is_empty(self._config):
            self.streams.plan(settings, sql, context.compiled or sql, columns)
        if follows:
            self.inputs.check_columns(settings.node, sql)
            retracted = self.streams.retracted(settings.node)
            query, columns = applied_select(
                relation.table_name, sql, columns, settings.table.primary_key, retracted
            )
        situation = read_situation(self.looks.engine(), relation, query, columns, context)
        if settings.table.affected is not None and is_empty(self._config):
            none = no_keys(relation.table_name, settings.table.affected.key)
            situation = replace(situation, affected=none)
        elif settings.table.affected is not None:
            situation = self.changed_keys.followed(run, situation)
        plan = plan_model(settings, situation)
        if is_empty(self._config) and not self.python.has(settings.node):  # dbt limits no input of Python
            plan = self._empty.keep_rows(plan, settings.node, is_keyed=bool(settings.table.primary_key))
        return plan

    def stream(
        self,
        relation: TablestoreRelation,
        columns_of: Callable[[str], Sequence[NamedType]],
        context: InputContext,
    ) -> TablestoreRelation:
        """What stands for an input that a streaming model follows; `dbt compile` also says who runs the query.

        Raises FixRequest TS1843, Unsupported TS1844.
        """
        model, explained = context.model, context.explained
        found = self.streams.stream(relation, context)
        if explained is not None and self.streams.begins_explaining(str(model["unique_id"])):
            settings, sql = self.read_settings(model, context.nodes), explained(str(model["raw_code"]))
            logger.info(explain_streams(self.streams, settings, sql, columns_of))
        return found

    def keeps_query(
        self, relation: TablestoreRelation, settings: ModelSettings, text: str, query: str
    ) -> bool:
        """Whether a streaming model stays as it is; not with --empty, whose text is another. Raises TS1846, TS1860."""
        if is_empty(self._config):
            return False
        is_kept = self.streams.is_kept(
            settings.node, relation.table_name, text, query, settings.table.streaming
        )
        if is_kept:
            self._publish_free(relation.table_name, settings.node)
        return is_kept

    # --- writing ---

    def write(self, planned: PlannedModel, context: RunContext) -> TablestoreResponse:
        """One snapshot of the model's rows; of a streaming model one for each range."""
        run, plan = planned.run, planned.plan
        settings = run.settings

        def again() -> Work:
            fresh = self._plan_again(planned).plan
            return model_spec(settings, fresh), self._rows(settings.node, fresh)

        rows = run.query.empty or self._rows(settings.node, plan)
        work = (model_spec(settings, plan), rows)
        job = ModelJob(run.relation, settings, plan, work, again, context, run.query.reads)
        try:
            response = self._commit(job)
        finally:
            self._finish(settings.node)
        context = replace(context, existing=run.relation)
        while (taken := self.streams.taken(settings.node)) and taken.has_more and response.staged is None:
            planned = self._plan_next(planned)
            work = (model_spec(settings, planned.plan), planned.plan.select)
            job = replace(job, plan=planned.plan, work=work, context=context)
            response.join(self._commit(job))
        return response

    def _rows(self, node: str, plan: BuildPlan) -> Any:  # noqa: ANN401 - SQL text, or rows
        return self.inputs.known_rows(node, plan) or self.python.written(node, plan)

    def _finish(self, node: str) -> None:
        """What was kept for the node's query is not needed any more."""
        self.inputs.finish(node)
        self.python.finish(node)

    def _plan_next(self, planned: PlannedModel) -> PlannedModel:
        """The next range of a model's streams: its table is there by now, and nothing is replaced."""
        run = planned.run
        context = replace(run.context, existing=run.relation, full_refresh=False)
        plan = replace(planned.plan, action=Action.INCREMENT)
        return self._plan_again(PlannedModel(replace(run, context=context), plan))

    def _plan_again(self, known: PlannedModel) -> PlannedModel:
        """The same SQL on what is there now. Raises RetryError TS1879 when it was compiled for another situation."""
        run, node = known.run, known.run.settings.node
        if known.plan.action is Action.CREATE:
            raise compiled_for_no_table(run.relation.table_name, node)
        self.looks.begin()
        self.python.run_again(node)
        self.looks.begin()
        found = retry_published(
            lambda: but_own(self.pinned.of(node), run.relation),
            lambda *, versions: self.looks.engine().query_columns(run.sql, versions=versions),
        )
        columns = tuple((column.name, column.type_text) for column in found)
        return self.plan(replace(run, query=AnalyzedQuery(columns, run.query.reads)))

    def write_seed(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        table: agate.Table,
        context: SeedContext,
    ) -> TablestoreResponse:
        """The seed's rows replace what was there."""
        zone = self._config.credentials.session_zone
        self.pinned.of(settings.node)  # before the first look
        return self._commit(seed_job(self.looks.engine(), relation, settings, table, context, zone))

    def _commit(self, job: ModelJob) -> TablestoreResponse:
        """One snapshot, staged or published; then publish the staged snapshots that waited for this write."""
        name = job.relation.table_name
        response: TablestoreResponse | None = None
        try:
            with nullcontext() if job.batch is None else self.coordinator.batch(name):
                while response is None:
                    staged = self._place(job)
                    replaces = must_replace(self._engine(), job, is_staged=staged is not None)
                    try:
                        report = self._commits.write(job, staged, job.work, replaces=replaces)
                    except StagedVersionMissing:  # another thread has published changes that the query names
                        if job.plan.action is Action.CREATE:
                            raise
                        job = replace(job, work=job.again())
                    except (StagedSnapshotMissing, StagedSnapshotClosed):  # no test waits any more
                        if job.batch is None or staged is None:
                            raise
                        job = replace(job, work=job.again())
                    else:
                        response = self._settle(job, staged, describe_commit(report), replaces=replaces)
        except TablestoreError:  # others' batches may wait for this one, and need it no more
            with suppress(TablestoreError):  # told already, of each table
                self._publish_free(name)
            raise
        self._publish_free(name, job.settings.node)
        return response

    def _publish_free(self, table: str, node: str | None = None) -> None:
        for line in self.coordinator.publish_free(table, node):
            logger.info(line)

    def _place(self, job: ModelJob) -> Staged | None:
        """Where the rows wait, when what an earlier run has left is done; None: they are published at once."""
        name = job.relation.table_name
        staged = self._plan_staged(name, job.settings, job, job.context, job.reads)
        self.coordinator.finish_pending(name)
        self.coordinator.clear_unpublished(name, staged)
        return staged

    def _settle(
        self, job: ModelJob, staged: Staged | None, response: TablestoreResponse, *, replaces: bool
    ) -> TablestoreResponse:
        """What is committed is entered in the book of what waits, or ends what waited."""
        self._tell(response, job)
        if staged is not None and response.staged is not None:
            self.coordinator.add(staged, response, self._rebuild_of(job, staged, replaces=replaces))
        elif staged is None or job.batch is None:  # nothing changed; other batches may wait, or come
            self.coordinator.forget(
                job.relation.table_name, is_unchanged=staged is not None, is_batch=job.batch is not None
            )
        return response

    def _tell(self, response: TablestoreResponse, job: ModelJob) -> None:
        """What run_results.json says besides."""
        self.changed_keys.tell_evaluated(response, job.settings.node, job.plan)
        if isinstance(job.work[1], NoRows):
            response.tell_no_input()
        taken = self.streams.taken(job.settings.node)
        if taken is not None:
            response.tell_ranges(taken.ranges, taken.rows, str(taken))
            if taken.figures is not None:
                response.tell_state(taken.figures.late, taken.figures.state_rows, taken.figures.state_bytes)

    def _plan_staged(
        self, name: str, settings: ModelSettings, job: ModelJob | None, context: RunContext, reads: ReadLog
    ) -> Staged | None:
        """How the node's rows wait; None when they are published at once."""
        self.coordinator.start(context.invocation)
        return self.coordinator.plan_staged(
            node=settings.node,
            table=name,
            policy=settings.table.publish,
            nodes=context.nodes,
            selected=self._pending.selected(context.selected),
            reads=reads.reads(),
            batch=None if job is None else job.batch,
            begins=job is None or job.plan.action is not Action.INCREMENT,
        )

    def _rebuild_of(self, job: ModelJob, staged: Staged, *, replaces: bool) -> Rebuild:
        """How the table is staged once more: with all batches that this invocation has staged."""
        with self._lock:
            jobs = self._jobs.setdefault(job.relation.table_name, [])
            jobs[:] = [*jobs, job] if job.batch is not None else [job]

        def rebuild(number: int) -> None:
            if job.batch is not None:
                self.coordinator.begin_again(job.relation.table_name)
            fresh = self.coordinator.plan_again(staged)
            for each in tuple(jobs):
                again = replace(each, attempt=number)
                response = describe_commit(self._commits.write(again, fresh, each.again(), replaces=replaces))
                self._finish(each.settings.node)
                if response.staged is not None or each.batch is None:
                    self.coordinator.add(fresh, response, rebuild)

        return rebuild

    def write_snapshot(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        rows: VersionRows,
        context: RunContext,
        reads: ReadLog,
    ) -> TablestoreResponse:
        """One run of a dbt snapshot, staged with what it reads; no rows are no commit."""
        try:
            return self._commit(snapshot_job(relation, settings, rows, context, self.inputs, reads))
        finally:
            self._finish(settings.node)

    def check_in_place(
        self, relation: TablestoreRelation, settings: ModelSettings, context: RunContext, reads: ReadLog
    ) -> None:
        """Before statements change a table. Raises Unsupported TS1883, TS1898 when its rows had to be staged."""
        planned = self._plan_staged(relation.table_name, settings, None, context, reads)
        if planned is not None:
            is_snapshot = settings.table.materialized == "snapshot"
            raise (no_merge if is_snapshot else builds_on_staged)(planned)
