"""Inputs of a changed_keys model: what changed since its last commit, and the keys that the changes affect.

CHANGE     when a `changed_keys` model compares all rows
Rule       all rows are compared when the model's query is another, when it has not read an input yet, when an input's
           history is gone, when many of its rows changed, and when the plan proves nothing for a changed input. That is
           always right, and reported.
INVARIANT  each input is read at the very state where its changes end (pins), also through views.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbt.adapters.tablestore.config.changed_keys_config import ROWS_ALWAYS_FOLLOWED, Affected, Way
from dbt.adapters.tablestore.inputs.changed_keys_strategy import (
    Evaluation,
    ModelQuery,
    evaluate,
    not_restricted,
    read_whole,
)
from dbt.adapters.tablestore.inputs.group_states import ReadState, plan_states
from dbt.adapters.tablestore.inputs.partial_runs import no_keys
from dbt.adapters.tablestore.inputs.position_steps import QUERY, TIME, forgotten
from dbt.adapters.tablestore.inputs.query_errors import FixModelQuery
from dbt.adapters.tablestore.inputs.run_choice import NO_CHOICE, NODE_PROPERTY, RunChoice, read_history
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from tablestore_engine.api import FixRequest, NotFound, TableVersion
from tablestore_engine.spi import MOMENT, ChangesInput, PositionStep

if TYPE_CHECKING:
    from tablestore_engine.api import Engine, Table
    from tablestore_engine.spi import TracedQuery


@dataclass(frozen=True)
class Followed:
    """`affected`: the keys; None: all rows are compared, since `reason`. `clause`: what in the query prevents
    the proof, if that is the reason. `steps`: for the model's commit. `reached`: all other positions behind it.
    `evaluation`: how `affected` was found; its views are dropped behind the commit. `digest`: what made the rows.
    `choice`: what earlier runs took.
    `rows_view`: has all rows of the query, if they were computed with the state of its groups. `is_code`: of Python.
    `foreign`: who else has changed the model's table; `rows_version`: of that table, when the keys were computed, and
    `rows_read`, if the rows of this run follow from its rows.
    """

    affected: KeysSelect | None
    reason: str
    steps: Mapping[str, PositionStep]
    pins: Mapping[str, TableVersion] = field(default_factory=dict)
    inputs: tuple[tuple[Table, ChangesInput], ...] = ()
    reached: Mapping[str, str] = field(default_factory=dict)
    clause: str = ""
    evaluation: Evaluation | None = None
    digest: str = ""
    warnings: tuple[str, ...] = ()
    foreign: str = ""
    rows_version: str = ""
    rows_read: str | None = None
    choice: RunChoice = NO_CHOICE
    rows_view: str = ""
    is_code: bool = False

    @property
    def views(self) -> tuple[str, ...]:
        """Temporary ones of this run."""
        found = () if self.evaluation is None else self.evaluation.views
        return (*found, self.rows_view) if self.rows_view else found

    @property
    def moment_ms(self) -> int | None:
        """Of this run, if the query uses the time."""
        return self.pins[MOMENT].timestamp_ms if MOMENT in self.pins else None

    @property
    def runs(self) -> str:
        """For RUNS_PROPERTY of the commit."""
        found = self.evaluation
        if found is None or found.clause:
            return self.choice.text(Way.WHOLE, 0)
        is_whole = found.cheaper and not found.keys  # else keys were affected, too many of them
        return self.choice.text(Way.WHOLE if is_whole else found.way, found.keys)


@dataclass(frozen=True)
class _Input:
    """`changed`: at most so many of its rows; `total`: of all."""

    table: str
    found: ChangesInput
    trouble: str
    changed: int = 0
    total: int = 0

    @property
    def pin(self) -> TableVersion | None:
        """The state where its changes end; None for a staged one and for a table without snapshots."""
        until = self.found.between.until
        return None if self.found.between.branch is not None or not until else TableVersion(snapshot=until)


def read_followed(
    engine: Engine,
    query: ModelQuery,
    tables: Sequence[str],
    branch_of: Callable[[str], str | None],
    *,
    is_new: bool,
) -> Followed:
    """`tables`: what the query reads, as schema.table. `is_new`: all rows are written anyway.

    Raises FixRequest TS1870, TS1871, TS1872, TS1470.
    """
    begun_ms = engine.changed_keys.now_ms()
    before = _own_table(engine, query, is_new=is_new)
    known = before.known
    seen = [engine.seen_table(name) for name in tables]
    inputs = [_input(table, known, query.affected, branch_of(str(table.identifier))) for table in seen]
    pins, moment = {one.table: one.pin for one in inputs if one.pin is not None}, moment_of(engine, query)
    versions = {**_branches(tables, branch_of), **pins, **moment}
    with engine.changed_keys.trace(query.sql, versions=versions) as traced:
        pins |= moment if traced.follows_time else {}
        check_query(query, traced, tables)
        digest = digest_of(query, traced.context())
        time, changes = _time_step(known, pins), _changes(inputs, _time_step(known, pins))
        states = plan_states(engine, query, traced, before.table, known, digest)
        choice = _choice(before.table, query, inputs, begun_ms, is_same=known.get(QUERY) == digest)
        reason, evaluation = _reason(query, traced, before, digest, inputs), None
        if not (is_new or reason):
            stored = states.read() if changes else ReadState()
            reason = stored.lost
            if not reason:
                evaluation = evaluate(engine, query, traced, changes, before.table, choice, stored.rows)
        steps = _with_time(_steps(known, inputs, digest), time, known, digest, evaluation)
        steps, rows_view = states.commit(steps, evaluation, before.table)
        return Followed(
            *_affected(query, evaluation, reason),
            steps,
            pins,
            tuple((table, one.found) for table, one in zip(seen, inputs, strict=True)),
            _reached(known, steps),
            "" if evaluation is None else evaluation.clause,
            evaluation,
            digest,
            _warnings(query, traced) if is_new else (),
            before.foreign,
            before.rows_version,
            _rows_read(before.table, evaluation),
            choice,
            rows_view,
            query.code is not None,
        )


def _affected(query: ModelQuery, evaluation: Evaluation | None, reason: str) -> tuple[KeysSelect | None, str]:
    """The keys, or None and why all rows are compared."""
    if evaluation is None or evaluation.is_whole:
        return None, reason if evaluation is None else evaluation.clause or evaluation.cheaper
    return evaluation.select or no_keys(query.model, query.affected.key), ""


@dataclass(frozen=True)
class _Own:
    """The model's table before the run. `known`: its positions."""

    table: Table | None
    known: Mapping[str, str]
    rows_version: str = ""
    foreign: str = ""


def _own_table(engine: Engine, query: ModelQuery, *, is_new: bool) -> _Own:
    own = engine.find_seen_table(query.model)
    if own is None:
        return _Own(None, {})
    rows_version = own.rows_version()
    return _Own(own, _positions(own), rows_version, "" if is_new else _foreign(own, query))


def _reason(
    query: ModelQuery, traced: TracedQuery, before: _Own, digest: str, inputs: Sequence[_Input]
) -> str:
    """Why the rows of before say nothing about this run."""
    if traced.volatile and not query.is_asked:
        return f"its query uses {traced.volatile}"
    known = before.known
    is_untimed = traced.follows_time and TIME not in known
    untimed = "nothing says at which moment its rows were made" if is_untimed else ""
    return _difference(known.get(QUERY), digest) or untimed or before.foreign or _trouble(inputs)


def moment_of(engine: Engine, query: ModelQuery) -> dict[str, TableVersion]:
    """For the versions of a run: its moment, which functions of the time give; none where rows may keep theirs."""
    if not query.is_asked or query.affected.allows_volatile:
        return {}
    return {MOMENT: TableVersion(timestamp_ms=engine.changed_keys.moment_ms())}


def check_query(query: ModelQuery, traced: TracedQuery, tables: Sequence[str]) -> None:
    """What no run can make right. Raises FixRequest TS1870, TS1871, TS1872."""
    if not query.is_asked:
        return
    affected, model = query.affected, query.model
    if traced.volatile and not affected.allows_volatile:
        raise FixModelQuery(
            "TS1871",
            f"model {model} uses {traced.volatile}, whose value is another in each run",
            why="changed_keys evaluates only affected keys, so the other rows would keep the value of an earlier run",
            fix="use a column or a var() instead, or compare the time with columns; or set "
            "changed_keys={'volatile': 'allowed'}, if a row may keep the value of the run that evaluated it",
        )
    inputs = tables if query.code is None else query.code.names
    names = {name.lower() for table in inputs for name in (table, table.partition(".")[2])}
    unknown = [name for name, _ in affected.by if name.lower() not in names]
    if unknown:
        raise FixModelQuery(
            "TS1872",
            f"model {model}: affected_by names {unknown[0]!r}, which its query does not read",
            why=f"its query reads {', '.join(inputs) or 'no table'}",
            fix="correct the name, or remove it from affected_by",
        )
    if affected.is_strict:
        clause = next(iter(unproven(query, traced)), None)
        if clause is not None:
            raise not_restricted(model, clause)


def unproven(query: ModelQuery, traced: TracedQuery) -> tuple[str, ...]:
    """Clauses for which runs compare all rows, in the words of a message."""
    general = traced.general_clause(query.affected.key, query.affected.primary_key)
    if general is not None:
        return (general,)
    return tuple(
        read_whole(one.table) if query.is_whole(one.table) else f"{one.clause} (over {one.table})"
        for one in traced.followed_inputs(query.affected.key)
        if one.clause is not None and query.affected.find(one.table) is None
    )


def stated(query: ModelQuery, traced: TracedQuery) -> tuple[str, ...]:
    """Inputs that only affected_by leads to the key."""
    return tuple(
        one.table
        for one in traced.followed_inputs(query.affected.key)
        if query.affected.find(one.table) is not None and (one.clause is not None or query.code is not None)
    )


def digest_of(query: ModelQuery, context: str) -> str:
    """What the rows were made by: the query's text, what else it depends on, the config."""
    made_by = "" if query.code is None else query.code.made_by
    return f"{text_digest(query.text)}-{context}-{_hash(query.affected.text() + made_by)}"


def text_digest(text: str) -> str:
    """Of a query's text; spaces around it do not count."""
    return _hash(text.strip())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _difference(known: str | None, digest: str) -> str:
    """Why the rows of before say nothing about this query, or an empty text."""
    if known == digest:
        return ""
    before, now = (known or "").split("-"), digest.split("-")
    if len(before) != len(now):
        return "nothing says by which query its rows were made"
    causes = (
        "its SQL",
        "a view, function, variable, past state, column of an input or setting that its query uses",
        "its config",
    )
    changed = [cause for cause, old, new in zip(causes, before, now, strict=True) if old != new]
    return f"{' and '.join(changed)} changed"


def _changes(inputs: Sequence[_Input], time: PositionStep | None) -> dict[str, TableVersion]:
    """Of each input that changed, the range; of the time, the moment of the last run."""
    changes = {
        one.table: TableVersion(changes=one.found.between) for one in inputs if one.found.step is not None
    }
    if time is not None and time.before is not None and time.after is not None:
        changes[MOMENT] = TableVersion(timestamp_ms=int(time.before))
    return changes


def _time_step(known: Mapping[str, str], pins: Mapping[str, TableVersion]) -> PositionStep | None:
    """None: the query does not use the time, and did not before."""
    if MOMENT in pins:
        return PositionStep(known.get(TIME), str(pins[MOMENT].timestamp_ms))
    return PositionStep(known[TIME], None) if TIME in known else None


def _warnings(query: ModelQuery, traced: TracedQuery) -> tuple[str, ...]:
    """Of a model that is built for the first time."""
    found = [f"each run that finds changes compares all rows: {clause}" for clause in unproven(query, traced)]
    found += [
        f"affected_by of {table} is not proven by the query; test the model with equals_full_refresh"
        for table in stated(query, traced)
    ]
    return tuple(found)


def _steps(known: Mapping[str, str], inputs: Sequence[_Input], digest: str) -> dict[str, PositionStep]:
    steps = {one.found.source: one.found.step for one in inputs if one.found.step is not None}
    steps |= forgotten(known, [one.found.source for one in inputs])
    if (
        steps or known.get(QUERY) != digest
    ):  # rows of one query behind each other: a full refresh meanwhile wins
        steps[QUERY] = PositionStep(known.get(QUERY), digest)
    return steps


def _branches(tables: Sequence[str], branch_of: Callable[[str], str | None]) -> dict[str, TableVersion]:
    return {name: TableVersion(branch=found) for name in tables if (found := branch_of(name)) is not None}


def _rows_read(own: Table | None, evaluation: Evaluation | None) -> str | None:
    if own is None or evaluation is None or not evaluation.is_merged:
        return None
    return own.commit_of_rows()


def _trouble(inputs: Sequence[_Input]) -> str:
    return next((one.trouble for one in inputs if one.trouble), "")


def _with_time(
    steps: dict[str, PositionStep],
    time: PositionStep | None,
    known: Mapping[str, str],
    digest: str,
    evaluation: Evaluation | None,
) -> dict[str, PositionStep]:
    """A run without an effect leaves the moment as it is: the rows hold for both."""
    if time is None or not (steps or evaluation is None or evaluation.has_effect):
        return steps
    return steps | {TIME: time, QUERY: PositionStep(known.get(QUERY), digest)}


def _reached(known: Mapping[str, str], steps: Mapping[str, PositionStep]) -> dict[str, str]:
    reached = {source: text for source, text in known.items() if source not in steps}
    return reached | {source: step.after for source, step in steps.items() if step.after is not None}


def _choice(
    own: Table | None, query: ModelQuery, inputs: Sequence[_Input], begun_ms: int, *, is_same: bool
) -> RunChoice:
    """`is_same`: the query is that of the runs before."""
    changed, rows = sum(one.changed for one in inputs), {one.table: one.total for one in inputs}
    history = read_history(own, query.node) if is_same else NO_CHOICE.history
    groups = 0 if own is None else own.facts().rows or 0
    return RunChoice(history, changed, rows, groups, begun_ms)


def _foreign(own: Table, query: ModelQuery) -> str:
    found = own.find_foreign_commit({NODE_PROPERTY: query.node})
    if found is None:
        return ""
    return f"snapshot {found.id} of {query.model} is not the model's own: another writer has changed its rows"


def _positions(own: Table) -> Mapping[str, str]:
    """Empty where they cannot be read: then only a commit that sets them anew is accepted (TS1470)."""
    try:
        return own.positions()
    except FixRequest:
        return {}


def _input(table: Table, known: Mapping[str, str], affected: Affected, branch: str | None) -> _Input:
    name, position = str(table.identifier), known.get(table.source)
    if position is None:
        found = table.plan_changes(None, branch=branch)
        return _Input(name, found, f"it has not read {name} yet", total=table.facts().rows or 0)
    try:
        found = table.plan_changes(position, branch=branch)
        exact = table.count_changed_rows(found)
        rows = table.count_changed_rows(found, at_most=True) if exact is None else exact
    except (FixRequest, NotFound) as gone:
        lost = table.plan_changes(None, branch=branch)
        step = None if lost.step is None else PositionStep(position, lost.step.after)
        again = ChangesInput(lost.source, lost.between, step, lost.next_snapshot)
        return _Input(name, again, gone.what, total=table.facts().rows or 0)
    total = table.facts().rows or 0
    limit = max(affected.limit * total, ROWS_ALWAYS_FOLLOWED)
    if rows is None or rows > limit:
        number = "an unknown number" if rows is None else f"{'up to ' if exact is None else ''}{rows:,}"
        return _Input(name, found, f"{number} of rows of {name} changed", rows or 0, total)
    return _Input(name, found, "", rows, total)
