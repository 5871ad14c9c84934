"""One commit of a model: what it reads at which state, what it moves, who it is known by.

Steps      positions of inputs and streams → the write's spec → rows, of a query with state by its own run → the engine
INVARIANT  rows, positions and state are one commit.
INVARIANT  what a contract asks of the written rows is looked at before readers see them (UniqueCheck).
CHANGE     the unique constraint of a contract
Unique     the rows are staged → a query looks for values that occur twice among all rows of the table → published, if
           readers still see the rows that it was planned on; else all of it again (decision 0075)
           A model that is staged for its tests has the query before the first test, and is dropped when it fails.
INVARIANT  what readers see has passed the query: publishing is the claim on the very base of the staged rows.
INVARIANT  NULLs are not equal, as in SQL: a row with a NULL in one of the columns repeats nothing.
CRASH      staged, not published: the staged snapshot waits for a test that never runs, and nobody publishes it. The
           next build of the model drops it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dbt.adapters.tablestore.gate.gate_state import branch_of
from dbt.adapters.tablestore.inputs.partial_runs import is_empty
from dbt.adapters.tablestore.inputs.run_choice import NODE_PROPERTY, RUNS_PROPERTY
from dbt.adapters.tablestore.inputs.stream_inputs import Taken
from dbt.adapters.tablestore.messages import WarnedOnce
from dbt.adapters.tablestore.plan.build_plan import Action
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.write.dbt_retry import PendingWrites
from dbt.adapters.tablestore.write.model_job import ModelJob, Work
from dbt.adapters.tablestore.write.node_versions import NodeVersions, but_own
from tablestore_engine.api import (
    Engine,
    FixData,
    OutcomeUnknown,
    PublishPending,
    RetryError,
    TablestoreError,
    TableVersion,
    WriteMode,
    WriteReport,
)
from tablestore_engine.spi import (
    FORGET_ALL,
    ROWS_BEFORE,
    ROWS_READ,
    PositionStep,
    RepeatedKeys,
    Staged,
    StagedSnapshotOvertaken,
    StagedVersionMissing,
    stage_properties,
    versioned_database,
)

Write = Callable[[Staged | None, Work], WriteReport]
GATE = "unique constraint of the contract"
_SAMPLES = 5
_TRIES = 20


def unimplied(settings: ModelSettings) -> tuple[tuple[str, ...], ...]:
    """Column sets that must be unique and do not contain the primary key, which the table enforces by itself."""
    key = {name.lower() for name in settings.table.primary_key}
    sets = dict.fromkeys(settings.contract.unique)
    return tuple(one for one in sets if not key or not key <= {name.lower() for name in one})


def why_unchecked(settings: ModelSettings) -> str | None:
    """Models that commit many times in a run: a query over the whole table would follow each commit."""
    if settings.table.streaming is not None:
        return "a streaming model"
    return "a microbatch model" if settings.table.strategy == "microbatch" else None


class UniqueCheck:
    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._warned = WarnedOnce()

    def sets(self, job: ModelJob) -> tuple[tuple[str, ...], ...]:
        """Columns that a query must check, after one warning of those that nothing enforces."""
        sets, unchecked = unimplied(job.settings), why_unchecked(job.settings)
        if sets and unchecked is not None:
            self._warn(job, sets, unchecked)
            return ()
        return sets

    def write(
        self, job: ModelJob, staged: Staged | None, work: Work, sets: Sequence[Sequence[str]], write: Write
    ) -> WriteReport:
        """The report of `write`, whose rows no reader sees before the query has passed. Raises FixData TS1808."""
        if staged is None:
            return self._publish_checked(job, sets, work, write)
        report = write(staged, work)
        if report.staged is not None:
            self._check(job.relation.table_name, staged.name, sets)
        return report

    def _publish_checked(
        self, job: ModelJob, sets: Sequence[Sequence[str]], work: Work, write: Write
    ) -> WriteReport:
        table, name = job.relation.table_name, f"unique_{branch_of(job.context.invocation)}"
        plan = Staged(table, name, "", 0, job.settings.node, "auto", (GATE,))
        refused: TablestoreError | None = None
        for number in range(_TRIES):
            report = write(plan, work if number == 0 else job.again())
            if report.staged is None:
                return report
            self._check(table, name, sets)
            item = self._find(table, name)
            if item is None:  # another run of the model has dropped it
                continue
            try:
                done = self._publish(item)
            except (OutcomeUnknown, PublishPending):  # it may be in the table, or is
                raise
            except StagedSnapshotOvertaken as error:
                refused = error
                self._drop(table, name)
            except TablestoreError:
                self._drop(table, name)
                raise
            else:
                return replace(done, **report.counts())
        raise refused or gone(job.settings.node, table)

    def _check(self, table: str, stage: str, sets: Sequence[Sequence[str]]) -> None:
        """Raises FixData TS1808; then the staged rows are dropped."""
        for columns in sets:
            found = self._engine().sql(repeated_values(table, stage, columns)).rows
            if found:
                self._drop(table, stage)
                raise violation(table, columns, found)

    def _find(self, table: str, stage: str) -> Staged | None:
        item = self._engine().gate.find(table, stage)
        return None if item is None or item.is_out else item

    def _publish(self, item: Staged) -> WriteReport:
        if not item.is_beside:
            return self._engine().table(item.table).publish_staged(item.name)
        (done,) = self._engine().gate.publish((item,))
        if done.report is None or done.error is not None:
            assert done.error is not None  # it says why nothing was published
            raise done.error
        return done.report

    def _drop(self, table: str, stage: str) -> None:
        item = self._find(table, stage)
        if item is not None:
            self._engine().gate.drop(item)

    def _warn(self, job: ModelJob, sets: Sequence[Sequence[str]], unchecked: str) -> None:
        names = "; ".join(", ".join(one) for one in sets)
        self._warned.warn(
            job.settings.node,
            f"{job.relation.table_name}: the unique constraint on {names} is not enforced, since this is {unchecked}: "
            "add a unique data test, or make these columns the key",
        )


def repeated_values(table: str, stage: str, columns: Sequence[str]) -> str:
    """SQL of the values that occur more than once among all rows that would be published."""
    database, name = table.split(".", maxsplit=1)
    place = f"{_quoted(versioned_database(database, TableVersion(branch=stage)))}.{_quoted(name)}"
    names = [_quoted(one) for one in columns]
    known = " and ".join(f"{one} is not null" for one in names)
    return (
        f"select {', '.join(names)}, count(*) from {place} where {known} group by {', '.join(names)} "
        f"having count(*) > 1 order by count(*) desc limit {_SAMPLES}"
    )


def violation(table: str, columns: Sequence[str], found: Collection[Sequence[Any]]) -> FixData:
    """TS1808. `found`: values, and how often each occurs."""
    samples = "; ".join(
        ", ".join(f"{name} = {value!r}" for name, value in zip(columns, row, strict=False))
        + f" in {row[-1]} rows"
        for row in found
    )
    return FixData(
        "TS1808",
        f"rows of {table} break the unique constraint on {', '.join(columns)}",
        why=f"values that occur more than once: {samples}",
        fix="correct the rows, or the constraint in the model's YAML; the table is as it was",
    )


def gone(node: str, table: str) -> RetryError:
    return RetryError(
        "TS1549",
        f"the rows that this run wrote to {table} are gone before they were published",
        why="their unique constraint was being checked, and another process dropped the staged snapshot each time",
        fix=f"run one build of the model at a time: dbt run --select {node.rsplit('.', maxsplit=1)[-1]}",
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


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

    def write(
        self, job: ModelJob, staged: Staged | None, work: Work, *, replaces: bool = False
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
            self._pending.keep(
                job.context.invocation, node, self._pending.user_of(job.context.invocation, node)
            )
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
        self, job: ModelJob, staged: Staged | None, work: Work, *, replaces: bool, whole: bool
    ) -> WriteReport:
        """`whole`: all that its streams have, since it waits for tests."""
        spec, rows = work
        node, action = job.settings.node, job.plan.action
        properties = {"dbt.invocation": job.context.invocation, NODE_PROPERTY: node}
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
            commit_user=self._pending.user_of(job.context.invocation, node),
            commit_identifier=job.identifier + (0 if taken is None else taken.number),
            properties=properties if staged is None else {**properties, **stage_properties(staged)},
            positions=steps,
            always=followed is not None and bool(followed.foreign),  # so that it is compared once
        )
        versions = self._pinned.of(node)
        if job.batch is None:  # a batch sees the batches before it
            versions = but_own(versions, job.relation)
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
