"""One commit of a model: what it reads at which state, what it moves, who it is known by.

Steps      positions of inputs and streams → the write's spec → rows, of a query with state by its own run → the engine
INVARIANT  rows, positions and state are one commit.
INVARIANT  what a contract asks of the written rows is looked at before readers see them (unique_check).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dbt.adapters.tablestore.gate.publish_coordinator import StagePlan
from dbt.adapters.tablestore.inputs.partial_runs import is_empty
from dbt.adapters.tablestore.inputs.run_choice import NODE_PROPERTY, RUNS_PROPERTY
from dbt.adapters.tablestore.inputs.stream_inputs import Taken
from dbt.adapters.tablestore.plan.build_plan import Action
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.dbt_retry import PendingWrites
from dbt.adapters.tablestore.write.model_job import ModelJob, Work
from dbt.adapters.tablestore.write.node_versions import NodeVersions
from dbt.adapters.tablestore.write.unique_check import UniqueCheck
from tablestore_engine.api import Engine, PublishPending, TableVersion, WriteMode, WriteReport
from tablestore_engine.spi import (
    FORGET_ALL,
    ROWS_BEFORE,
    ROWS_READ,
    PositionStep,
    RepeatedKeys,
    StagedVersionMissing,
)


class ModelCommits:
    """Of one invocation; `config` is dbt's."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        config: Any,  # noqa: ANN401 - dbt's untyped config
        pending: PendingWrites,
        pinned: NodeVersions,
    ) -> None:
        self._engine, self._config, self._pending = pinned.looks.engine, config, pending
        self._pinned, self._inputs, self._streams = pinned, pinned.inputs, pinned.streams
        self._unique = UniqueCheck(engine)

    def versions_but(self, node: str, relation: TablestoreRelation) -> dict[str, TableVersion]:
        """What the model reads; its own table as others see it, not as it was staged before."""
        return {
            table: version for table, version in self._pinned.of(node).items() if table != relation.table_name
        }

    def write(
        self, job: ModelJob, staged: StagePlan | None, work: Work, *, replaces: bool = False
    ) -> WriteReport:
        """`replaces`: the table gives its place to a new one. Raises what writes raise, FixData TS1808."""
        node, whole = job.settings.node, staged is not None
        sets = self._unique.sets(job)
        try:
            while True:
                pins = self._pinned.of(node)
                try:
                    if not sets:
                        return self._write(job, staged, work, replaces=replaces, whole=whole)
                    write = partial(self._write, job, replaces=replaces, whole=whole)
                    return self._unique.write(job, staged, work, sets, write)
                except StagedVersionMissing:  # once more when another thread has published what it reads
                    if self._pinned.of(node) == pins:
                        raise
        except PublishPending:
            self._pending.keep(job.invocation, node, self._pending.user_of(job.invocation, node))
            raise
        finally:
            self._pinned.looks.end()

    def _take(
        self, node: str, name: str, action: Action, *, whole: bool
    ) -> tuple[Taken | None, Mapping[str, TableVersion], Mapping[str, PositionStep]]:
        """What the inputs mean in this commit, and the positions behind that; with --empty nothing is read."""
        if is_empty(self._config):
            return None, self._inputs.pins(node), {}
        taken = self._streams.take(node, name, action, whole=whole)
        return (
            taken,
            *(self._inputs.take(node, name, action) if taken is None else (taken.versions, taken.steps)),
        )

    def _write(
        self, job: ModelJob, staged: StagePlan | None, work: Work, *, replaces: bool, whole: bool
    ) -> WriteReport:
        """`whole`: all that its streams have, since it waits for tests."""
        spec, rows = work
        node, action = job.settings.node, job.plan.action
        properties = {"dbt.invocation": job.invocation, NODE_PROPERTY: node}
        followed = self._inputs.followed(node)
        if followed is not None and action is Action.INCREMENT and spec.mode is WriteMode.UPSERT:
            properties[ROWS_BEFORE] = followed.rows_version
            if followed.rows_read is not None:
                properties[ROWS_READ] = followed.rows_read
        if followed is not None and staged is None:  # a staged snapshot gets the time of its publication
            properties[RUNS_PROPERTY] = followed.runs
        name = job.relation.table_name
        taken, meant, moved = self._take(node, name, action, whole=whole)
        steps = {**(FORGET_ALL if action.replaces else {}), **moved}
        spec = replace(
            spec,
            stage=None if staged is None else staged.name,
            beside=replaces,
            builds_on_stage=staged is not None and job.batch is not None,
            commit_user=self._pending.user_of(job.invocation, node),
            commit_identifier=job.identifier + (0 if taken is None else taken.number),
            properties=properties if staged is None else {**properties, **staged.properties},
            positions=steps,
            always=followed is not None and bool(followed.foreign),  # so that it is compared once
        )
        versions = (
            self.versions_but(node, job.relation)
            if job.batch is None
            else self._pinned.of(node)  # a batch sees the batches before it
        )
        versions = {**versions, **meant}
        key = job.settings.table.primary_key
        with self._streams.stated(node, name, rows, versions, key) as (rows, state):
            spec = replace(spec, positions={**steps, **state})
            try:
                return self._engine().write(name, rows, spec, versions=versions)
            except RepeatedKeys:
                ordered = self._streams.by_snapshot(node, str(rows), key)
                if ordered is None:
                    raise
                return self._engine().write(name, ordered, spec, versions=versions)
