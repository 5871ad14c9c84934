"""`{{ changes(ref('orders')) }}`: the rows of an input that changed since the model's last commit.

CHANGE     the range of changes that `changes()` returns
Steps      compiling: the position in the model's own table → the range behind it, up to the input's newest snapshot
           or what is staged of it in this run; SQL has a name that never changes, as for stream() · each statement of
           the model: the name means that range · writing: the end of the range goes into the commit
INVARIANT  one model sees one range of an input, however often it is asked for; compiled SQL says nothing of positions.
INVARIANT  rows and position are one commit (decision 0039): whoever else has moved the position meanwhile wins, and
           this run says so (TS1471).
INVARIANT  what was staged again is read again: its changes, and with them the position, are others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.tablestore.config.model_config import INCREMENTAL
from dbt.adapters.tablestore.inputs.changed_keys_inputs import Followed, read_followed
from dbt.adapters.tablestore.inputs.changed_keys_strategy import ModelQuery
from dbt.adapters.tablestore.inputs.exchanged_columns import check_columns
from dbt.adapters.tablestore.inputs.full_refresh_query import made_otherwise
from dbt.adapters.tablestore.inputs.position_steps import (
    QUERY,
    TIME,
    TO_NOW,
    begun,
    changes_name,
    check_begin,
    moved,
)
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.run_context import InputContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import Engine, FixRequest, Table, TableVersion, WriteMode
from tablestore_engine.spi import MOMENT, ChangesInput, KnownRows, OrderedLock, PositionStep, Rank

VersionsFor = Callable[[str], Mapping[str, TableVersion]]


@dataclass(frozen=True)
class _Asked:
    """One input of a model: its relation without a version, and its range behind `position`."""

    relation: TablestoreRelation
    found: ChangesInput
    position: str | None


@dataclass
class _NodeInputs:
    """What a model or a test has found out in this run. `known`: positions of the model's table; `pins`: at which
    state a test reads the inputs of a model.
    """

    asked: dict[str, _Asked] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    followed: Followed | None = None
    pins: dict[str, TableVersion] = field(default_factory=dict)


class ChangedInputs:
    """REQUIRES that one thread builds a model."""

    def __init__(self, engine: Callable[[], Engine], versions_for: VersionsFor) -> None:
        self._engine, self._versions_for = engine, versions_for
        self._nodes: dict[str, _NodeInputs] = {}
        self._digests: dict[str, str] = {}  # table → of its query in this run
        self._lock = OrderedLock("inputs of models", Rank.PROCESS)

    def _of(self, node: str) -> _NodeInputs:
        with self._lock:
            return self._nodes.setdefault(node, _NodeInputs())

    def changes(self, relation: TablestoreRelation, context: InputContext) -> TablestoreRelation:
        """What stands for the input in the model's SQL. Raises FixRequest TS1835, TS1470, TS1474."""
        target, model, full_refresh = context.target, context.model, context.full_refresh
        _check_model(model, relation)
        assert target is not None
        node, name = str(model["unique_id"]), relation.table_name
        own = self._of(node)
        if name not in own.asked:
            table = self._find(relation, model)
            positions = self._positions(target, full_refresh=full_refresh)
            position = None if full_refresh else positions.get(table.source)
            pins = self._versions_for(node)
            found = table.plan_changes(position, branch=_branch(pins, name), only=True)
            table.hold_changes(f"dbt-{target.schema}-{target.identifier}", found)
            own.asked[name], own.known = _Asked(relation, found, position), positions
        return relation.replace(version=TO_NOW)

    def has_inputs(self, node: str) -> bool:
        """Whether the model asked for changes."""
        return bool(self._of(node).asked)

    def check_columns(self, node: str, query: str) -> None:
        """Before changes() of a model are written. Raises FixRequest TS2011."""
        for name, one in self._of(node).asked.items():
            check_columns(self._engine(), node, query, name, one.found, self._versions_for(node))

    def versions(self, node: str, pins: Mapping[str, TableVersion]) -> dict[str, TableVersion]:
        """What the names of a model's changes mean now. `pins`: which staged snapshots its statements read.

        A range of published snapshots stays as it is; what was staged may be staged again, or published.
        """
        asked = self._of(node).asked
        for name, one in asked.items():
            if one.found.between.branch is not None:
                table = self._engine().table(name)
                found = table.plan_changes(one.position, branch=_branch(pins, name), only=True)
                asked[name] = replace(one, found=found)
        return _meant(asked)

    def take(
        self, node: str, target: str, action: Action
    ) -> tuple[dict[str, TableVersion], dict[str, PositionStep]]:
        """For the model's commit: what the names mean in it, and the positions behind that. Raises TS1841."""
        self._versions_for(node)  # looks at what is staged
        own = self._of(node)
        asked, followed = own.asked, own.followed
        if followed is not None:
            steps, pins = followed.steps, dict(followed.pins)
            if not action.begins:
                return pins, dict(steps)
            ends = {**followed.reached, **{source: step.after for source, step in steps.items()}}
            return pins, begun(ends, replaces=action.replaces)
        found = {name: one.found for name, one in asked.items()}
        if action.begins:
            ends = {one.source: one.step.after for one in found.values() if one.step is not None}
            return _meant(asked), begun(ends, replaces=action.replaces)
        steps = moved(node, own.known, found)
        if asked and all(one.position is None for one in asked.values()):
            table = self._engine().find_table(target)
            if table is not None and not table.schema.primary_keys:  # rows with a key take their own place
                check_begin(node, target, table)
        return _meant(asked), steps

    def follow(
        self,
        node: str,
        target: TablestoreRelation,
        query: ModelQuery,
        tables: tuple[str, ...],
        *,
        is_new: bool,
    ) -> Followed:
        """Of a changed_keys model, or of the source of a dbt snapshot. `tables`: what it reads.

        Raises FixRequest TS1839, TS1870, TS1871, TS1872.
        """
        model = target.table_name
        if model in tables:
            raise FixRequest(
                "TS1839",
                f"model {model} reads itself",
                why="its rows are those of its query over other tables, for the keys that changes affect",
                fix="write the query as for a full refresh, without is_incremental() and this",
            )
        self.finish(node)
        versions = self._versions_for(node)
        branches = {table: version.branch for table, version in versions.items()}
        followed = read_followed(self._engine(), query, tables, branches.get, is_new=is_new)
        for table, found in followed.inputs:
            table.hold_changes(f"dbt-{target.schema}-{target.identifier}", found)
        self._of(node).followed = followed
        with self._lock:
            self._digests[model] = followed.digest
        return followed

    def followed(self, node: str) -> Followed | None:
        """Of a changed_keys model or a dbt snapshot that is planned in this run."""
        return self._of(node).followed

    def compare_all(self, node: str, reason: str) -> None:
        """The keys of a followed model are of no use: all rows are compared, since `reason`."""
        own = self._of(node)
        if own.followed is not None and own.followed.evaluation is not None:
            evaluation = replace(own.followed.evaluation, clause=reason, select=None)
            own.followed = replace(
                own.followed, affected=None, reason=reason, clause=reason, evaluation=evaluation
            )

    def known_rows(self, node: str, plan: BuildPlan) -> KnownRows | None:
        """The rows of a plan, if deltas are all there is to write."""
        followed = self._of(node).followed
        if followed is None or followed.evaluation is None or plan.mode is not WriteMode.UPSERT:
            return None
        return None if followed.affected is None else followed.evaluation.rows

    def finish(self, node: str) -> None:
        """The model is written, or has failed: its affected keys are not needed any more."""
        followed = self._of(node).followed
        for view in () if followed is None else followed.views:
            self._engine().changed_keys.drop_view(view)

    def digest(self, table: str, version: TableVersion | None) -> str | None:
        """Of the query that a table's rows were made by, at a state or now: then, what this run has staged counts."""
        own = self._engine().find_seen_table(table)
        with self._lock:
            staged = None if version is not None else self._digests.get(table)
        return staged or (None if own is None else own.positions(version).get(QUERY))

    def pin_test(self, test: str, node: str, table: str, query: str, version: TableVersion | None) -> None:
        """A test of a model's rows reads the model's inputs where the model has read them, for that state of it."""
        pins = self.pins(node) if version is None else {}
        self._of(test).pins = pins or self._stored_pins(table, query, version)

    def check_context(
        self, table: str, query: str, pins: Mapping[str, TableVersion], version: TableVersion | None
    ) -> None:
        """That a test compares with what the rows were made by, with views and settings. Raises FixRequest TS1840."""
        digest = self.digest(table, version) or ""
        with self._engine().changed_keys.trace(query, versions=pins) as traced:
            context = traced.context()
        if digest.split("-")[1:2] != [context]:
            raise made_otherwise(table)

    def test_pins(self, test: str) -> dict[str, TableVersion]:
        """Of a test that has any."""
        return dict(self._of(test).pins)

    def _stored_pins(self, table: str, query: str, version: TableVersion | None) -> dict[str, TableVersion]:
        engine = self._engine()
        positions, pins = engine.table(table).positions(version), dict[str, TableVersion]()
        if TIME in positions:
            pins[MOMENT] = TableVersion(timestamp_ms=int(positions[TIME]))
        for name in engine.query_names(query):
            found = engine.find_table(name)
            position = None if found is None else positions.get(found.source)
            if found is not None and position is not None:
                pins[name] = TableVersion(snapshot=found.plan_changes(position).between.since)
        return pins

    def pins(self, node: str) -> dict[str, TableVersion]:
        """At which state a changed_keys model reads its inputs."""
        followed = self._of(node).followed
        return {} if followed is None else dict(followed.pins)

    def _positions(self, target: TablestoreRelation, *, full_refresh: bool) -> Mapping[str, str]:
        own = self._engine().find_seen_table(target.table_name)
        try:
            return {} if own is None else own.positions()
        except FixRequest:
            if not full_refresh:  # which is the way out
                raise
            return {}

    def _find(self, relation: TablestoreRelation, model: Mapping[str, Any]) -> Table:
        table = self._engine().find_seen_table(relation.table_name)
        if table is None:
            raise _refused(
                model,
                f"changes() of {relation.table_name}",
                "it is no table of the warehouse: only tables have changes",
                "build it first, as a table; of a view, name the tables that it reads",
            )
        return table


def _branch(pins: Mapping[str, TableVersion], name: str) -> str | None:
    pinned = pins.get(name)
    return None if pinned is None else pinned.branch


def _meant(asked: Mapping[str, _Asked]) -> dict[str, TableVersion]:
    return {changes_name(one.relation): TableVersion(changes=one.found.between) for one in asked.values()}


def _check_model(model: Mapping[str, Any], relation: TablestoreRelation) -> None:
    config = model.get("config") or {}
    if model.get("resource_type") != "model" or config.get("materialized") not in INCREMENTAL:
        raise _refused(
            model,
            f"changes() in a {config.get('materialized') or model.get('resource_type')}",
            "only a table that rows are added to can remember how far it has got",
            "use it in a model with materialized='incremental' or 'tablestore', and stream() in a streaming one; "
            "elsewhere read the table itself",
        )
    if config.get("incremental_strategy") == "microbatch":
        raise _refused(
            model,
            "changes() in microbatch",
            "each batch is a commit of its own, and changes are not cut by event time",
            "use incremental_strategy='merge' or 'append'",
        )
    if relation.version is not None:
        raise _refused(
            model, f"changes() of {relation.render()}", "it is one state of a table", "name the table itself"
        )


def _refused(model: Mapping[str, Any], what: str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1835", f"model {model.get('name')}: {what} cannot be read", why=why, fix=fix)
