"""`{{ stream(ref('orders')) }}` in a model with materialized='streaming': what came behind its last commit.

CHANGE     the range of changes that `stream()` returns
Steps      compiling: a name that never changes, `demo__changes_start_to_now.orders` · planning: the query must be one
           that ranges can be asked one after the other (TS1844) · writing: in this commit the name means the range
           behind the position in the model's own table, up to so many snapshots, or to what this run has staged of it
INVARIANT  rows and positions are one commit (decision 0039); a killed run goes on behind its last one.
INVARIANT  compiled SQL says nothing of positions: its digest is that of the query, and stands among them.
WHY        the commit is known by what it reads: a range that was committed is found, another one is another commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.tablestore.config.streaming_keys import STREAMING, Streaming
from dbt.adapters.tablestore.inputs.changed_keys_inputs import text_digest
from dbt.adapters.tablestore.inputs.changed_rows_sql import ROW_KIND, SNAPSHOT_ID, check_order
from dbt.adapters.tablestore.inputs.exchanged_columns import check_columns
from dbt.adapters.tablestore.inputs.position_steps import (
    QUERY,
    TO_NOW,
    begun,
    changes_name,
    check_begin,
    moved,
)
from dbt.adapters.tablestore.inputs.query_errors import FixModelQuery
from dbt.adapters.tablestore.inputs.retracted_keys import RetractedKeys, not_added, plan_retractions
from dbt.adapters.tablestore.inputs.rows_by_snapshot import latest_rows
from dbt.adapters.tablestore.inputs.stateful_models import (
    RangeOfState,
    StateFigures,
    StatefulModel,
    other_query,
    plan_stateful,
)
from dbt.adapters.tablestore.plan.build_plan import Action, Columns
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.run_context import InputContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import ChangesBetween, Engine, FixRequest, Table, TableVersion
from tablestore_engine.spi import STATE_POSITION, TABLE_SOURCE, ChangesInput, OrderedLock, PositionStep, Rank

VersionsFor = Callable[[str], Mapping[str, TableVersion]]


@dataclass(frozen=True)
class Taken:
    """`ranges`: table → (behind this snapshot or None, up to this one or a staged one's name)."""

    versions: Mapping[str, TableVersion]
    steps: Mapping[str, PositionStep]
    ranges: Mapping[str, tuple[int | None, int | str]]
    rows: int | None
    has_more: bool
    action: Action
    figures: StateFigures | None = None

    @property
    def number(self) -> int:
        """Of the commit, by what it reads: 52 bits."""
        text = repr(sorted((source, step.before, step.after) for source, step in self.steps.items()))
        return int(hashlib.sha256(text.encode()).hexdigest()[:13], 16) if self.steps else 0

    def __str__(self) -> str:
        """`orders 5→9 · 120 rows remembered`."""
        ranges = ", ".join(
            f"{name.rpartition('.')[2]} {'start' if since is None else since}→{until}"
            for name, (since, until) in sorted(self.ranges.items())
        )
        return ranges if self.figures is None else f"{ranges} · {self.figures}"


@dataclass
class _Model:
    """What a model said when it was compiled and planned. `digests`: of its texts and queries."""

    consumer: str
    is_explained: bool = False
    digests: dict[tuple[str, str], str] = field(default_factory=dict)
    streams: dict[str, TablestoreRelation] = field(default_factory=dict)
    digest: str = ""
    query: str = ""
    settings: Streaming = field(default_factory=Streaming)
    has_kinds: bool = False
    retracted: RetractedKeys = field(default_factory=RetractedKeys)
    stateful: StatefulModel | None = None
    taken: Taken | None = None
    ends: dict[str, int] = field(default_factory=dict)


class StreamInputs:
    """REQUIRES that one thread builds a model."""

    def __init__(self, engine: Callable[[], Engine], versions_for: VersionsFor) -> None:
        self._engine, self._versions_for = engine, versions_for
        self._models: dict[str, _Model] = {}
        self._lock = OrderedLock("streams of models", Rank.PROCESS)

    # compiling and planning ----------------------------------------------------------------------

    def stream(self, relation: TablestoreRelation, context: InputContext) -> TablestoreRelation:
        """What stands for the input in the model's SQL. Raises FixRequest TS1843."""
        _check_model(context.model, relation)
        node, target = str(context.model["unique_id"]), context.target
        assert target is not None
        with self._lock:
            known = self._models.setdefault(node, _Model(f"dbt-{target.schema}-{target.identifier}"))
            known.streams[relation.table_name] = relation
        return relation.replace(version=TO_NOW)

    def _find(self, node: str) -> _Model | None:
        with self._lock:
            return self._models.get(node)

    def follows(self, node: str) -> bool:
        """Whether the model asked for streams."""
        return self._find(node) is not None

    def begins_explaining(self, node: str) -> bool:
        """True the first time."""
        model = self._models[node]
        is_first, model.is_explained = not model.is_explained, True
        return is_first

    def missing(self, node: str) -> list[str]:
        """Streams of a model that are no tables yet."""
        return [name for name in self._models[node].streams if self._engine().find_table(name) is None]

    def is_kept(self, node: str, table: str, text: str, query: str, settings: Streaming | None) -> bool:
        """Whether the model has to stay as it is, since its SQL changed. Raises FixRequest TS1846."""
        how = "apply" if settings is None else settings.on_change
        self._versions_for(node)  # before the first look
        known = self._positions(table)
        if QUERY not in known or not self.follows(node) or self.missing(node):
            return False  # or plan() refuses it
        if known[QUERY] == self._digest(node, text, query):
            return False
        if how == "continue":
            return True
        if how == "apply" and STATE_POSITION not in known:
            return False
        if how == "apply":
            raise other_query(node)
        raise FixRequest(
            "TS1846",
            f"the SQL of model {node.rsplit('.', maxsplit=1)[-1]} is another than that of its rows",
            why="on_configuration_change is 'fail'",
            fix="run it with --full-refresh, or set on_configuration_change='apply': what comes from now on is made by "
            "the new SQL",
        )

    def _digest(self, node: str, text: str, query: str) -> str:
        """Of a query: its text with that of its header, and what its names mean, which can change without it."""
        digests = self._models[node].digests
        if (text, query) in digests:
            return digests[text, query]
        with self._engine().changed_keys.trace(query, versions=self._versions_for(node)) as traced:
            meant = "\0".join(traced.definitions())
        digests[text, query] = text_digest(text) + (f"-{text_digest(meant)}" if meant else "")
        return digests[text, query]

    def plan(
        self, settings: ModelSettings, query: str, compiled: str, columns: Columns
    ) -> StatefulModel | None:
        """Before anything is written; None: a query without state. Raises TS1836, TS1843, TS1844, TS1867."""
        assert settings.table.streaming is not None
        node = settings.node
        model = self._find(node)
        short = node.rsplit(".", maxsplit=1)[-1]
        if model is None:
            raise FixModelQuery(
                "TS1843",
                f"model {short} follows nothing",
                why="materialized='streaming' writes what came since its last commit, and its SQL has no stream",
                fix="read an input as {{ stream(ref('…')) }}, or use another materialization",
            )
        for name in self.missing(node):
            raise _refused(
                {"name": short},
                f"stream() of {name}",
                "it is no table of the warehouse: only tables have changes",
                "build it first, as a table; a topic becomes one by `tablestore ingest`",
            )
        names = tuple(changes_name(one) for one in model.streams.values())
        versions = self._versions_for(node)
        clause = self._engine().stateful_clause(query, names, versions=versions)
        model.query = query
        model.settings, model.digest = settings.table.streaming, self._digest(node, compiled, query)
        named = {name.lower() for name, _ in columns}
        model.has_kinds = ROW_KIND in named
        if model.has_kinds:
            check_order(short, query, settings.table.primary_key)
        model.stateful, model.retracted = None, RetractedKeys()
        if clause is not None:
            model.stateful = plan_stateful(
                self._engine(), settings, query, names, clause, versions, has_kinds=model.has_kinds
            )
        elif model.has_kinds and SNAPSHOT_ID in named:
            tables = {changes_name(one): table for table, one in model.streams.items()}
            model.retracted = plan_retractions(self._engine(), settings, query, tables, versions)
        return model.stateful

    def retracted(self, node: str) -> str | None:
        """SQL of the keys that retractions of a model's stream delete; None: its query's own retractions."""
        model = self._find(node)
        return None if model is None else model.retracted.select

    def staged(self, node: str, pins: Mapping[str, TableVersion]) -> dict[str, TableVersion]:
        """What streams of a model mean while their tables wait in a staged snapshot."""
        model = self._find(node)
        streams = {} if model is None else dict(model.streams)
        return {
            changes_name(one): TableVersion(changes=ChangesBetween(None, branch=pins[table].branch))
            for table, one in streams.items()
            if table in pins and pins[table].branch is not None
        }

    # writing -------------------------------------------------------------------------------------

    def take(self, node: str, target: str, action: Action, *, whole: bool) -> Taken | None:
        """The next range of each stream; None of a model without. `whole`: up to the newest, in one commit.

        Raises FixRequest TS1474, TS1470, TS1481, TS1841, TS1845.
        """
        model = self._find(node)
        if model is None:
            return None
        most = None if whole else model.settings.most_snapshots
        known = {} if action.begins else self._positions(target)
        pins, found = self._versions_for(node), {}
        tables = {name: self._engine().seen_table(name) for name in model.streams}
        for name, table in tables.items():
            pinned = pins.get(name)
            branch = None if pinned is None else pinned.branch
            found[name] = table.plan_changes(known.get(table.source), branch=branch, most=most, only=True)
            table.hold_changes(model.consumer, found[name])
            check_columns(self._engine(), node, model.query, name, found[name], pins)
            model.ends.setdefault(name, table.latest_snapshot_id() or 0)
        if not action.begins and not known:
            check_begin(node, target, self._engine().find_table(target))
        steps = _steps(node, model, known, found, action)
        counts = {name: _count_rows(tables[name], one) for name, one in found.items()}
        for name, one in found.items():
            self._check_kinds(node, model, tables[name], one, counts[name])
        model.taken = Taken(
            {
                changes_name(model.streams[name]): TableVersion(changes=one.between)
                for name, one in found.items()
            },
            steps,
            {
                name: (one.between.since, one.between.branch or one.between.until or 0)
                for name, one in found.items()
            },
            None if None in counts.values() else sum(one or 0 for one in counts.values()),
            any(_has_more(model.ends[name], one) for name, one in found.items()),
            action,
        )
        return model.taken

    def taken(self, node: str) -> Taken | None:
        """By the last commit."""
        model = self._find(node)
        return None if model is None else model.taken

    @contextmanager
    def stated(
        self,
        node: str,
        target: str,
        rows: Any,  # noqa: ANN401 - what a write takes
        versions: Mapping[str, TableVersion],
        key: Sequence[str],
    ) -> Iterator[tuple[Any, Mapping[str, PositionStep]]]:
        """The rows to write, and the step of what the query remembers; as they are for one that needs no state."""
        model = self._find(node)
        if model is None or model.stateful is None or model.taken is None:
            yield rows, {}
            return
        action = model.taken.action
        known = {} if action.begins else self._positions(target)
        if STATE_POSITION not in known and any(one == QUERY or one.startswith(TABLE_SOURCE) for one in known):
            raise other_query(node)
        taken = RangeOfState(target, versions, key, known.get(STATE_POSITION), begins=action.replaces)
        has_news = action.begins or any(name.startswith(TABLE_SOURCE) for name in model.taken.steps)
        with model.stateful.rows(self._engine(), str(rows), taken, has_news=has_news) as made:
            model.taken = replace(model.taken, figures=made.figures)
            yield made.rows, made.steps

    def by_snapshot(self, node: str, select: str, key: Sequence[str]) -> str | None:
        """`select` where keys of a range are repeated: of each key the row of the latest snapshot; None: no order."""
        model = self._find(node)
        if (
            model is None
            or model.taken is None
            or model.stateful
            or model.has_kinds
            or len(model.streams) != 1
        ):
            return None
        ((_, stream),) = model.streams.items()
        between = model.taken.versions[changes_name(stream)].changes
        return None if between is None else latest_rows(self._engine(), select, stream, between, key)

    def _positions(self, target: str) -> Mapping[str, str]:
        own = self._engine().find_seen_table(target)
        return {} if own is None else own.positions()

    def _check_kinds(
        self, node: str, model: _Model, table: Table, found: ChangesInput, count: int | None
    ) -> None:
        """A query that does not give kinds counts any row as a new one. `count`: of the range, by metadata: without a
        key that are rows of new files alone, and nobody has to look at them.
        """
        is_applied = model.has_kinds and str(table.identifier) not in model.retracted.append_only
        takes_all = is_applied or model.settings.row_kinds == "all"
        only_adds = not table.schema.primary_keys and count is not None
        if takes_all or only_adds or found.between.since is None or found.step is None:
            return
        name = changes_name(
            TablestoreRelation.create(schema=table.identifier.database, identifier=table.identifier.name)
        )
        versions = {name: TableVersion(changes=found.between)}
        asked = f"select {ROW_KIND}, min(_snapshot_id) from {name} where {ROW_KIND} <> '+I' group by 1 order by 2, 1"
        rows = self._engine().sql(asked, versions=versions).rows
        if rows:
            raise not_added(node, table, rows[0], has_kinds=model.has_kinds)


def _steps(
    node: str, model: _Model, known: Mapping[str, str], found: Mapping[str, ChangesInput], action: Action
) -> dict[str, PositionStep]:
    if action.begins:
        ends = {one.source: one.step.after for one in found.values() if one.step is not None}
        return begun({**ends, QUERY: model.digest}, replaces=action.replaces)
    steps = moved(node, known, found)
    if steps:  # also when it is the same: a full refresh by another query wins
        steps[QUERY] = PositionStep(known.get(QUERY), model.digest)
    return steps


def _has_more(end: int, found: ChangesInput) -> bool:
    """`end`: the newest snapshot when the run began, so that it ends while others go on writing."""
    return found.between.branch is None and end > (found.between.until or 0)


def _count_rows(table: Table, found: ChangesInput) -> int | None:
    """Of the range; all rows of the table where it begins."""
    if found.between.since is None and found.between.branch is None:
        return table.facts().rows
    return table.count_changed_rows(found)


def _check_model(model: Mapping[str, Any], relation: TablestoreRelation) -> None:
    if relation.is_cte:
        raise _refused(
            model,
            f"stream() of {str(relation.identifier).removeprefix('__dbt__cte__')}",
            "it is ephemeral, a part of the query: only tables have changes",
            "materialize it as a table or a streaming model",
        )
    kind = (model.get("config") or {}).get("materialized")
    if model.get("resource_type") != "model" or kind != STREAMING:
        raise _refused(
            model,
            f"stream() in a {kind or model.get('resource_type')}",
            "only materialized='streaming' follows inputs range by range",
            "set materialized='streaming'; in an incremental model use changes(), elsewhere read the table itself",
        )
    if relation.version is not None:
        raise _refused(
            model, f"stream() of {relation.render()}", "it is one state of a table", "name the table itself"
        )


def _refused(model: Mapping[str, Any], what: str, why: str, fix: str) -> FixModelQuery:
    return FixModelQuery("TS1843", f"model {model.get('name')}: {what} cannot be followed", why=why, fix=fix)
