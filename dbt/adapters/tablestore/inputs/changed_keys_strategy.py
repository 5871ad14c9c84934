"""What a run of a changed_keys model evaluates when its inputs changed: deltas, or its query for the affected keys.

CHANGE     when a `changed_keys` model may follow deltas
Rule       the cheapest strategy (run_costs) that the query has. Deltas, where the plan proves them for every changed
           occurrence and the stored rows are those of the query before: the key is the primary key, no `affected_by`,
           no function that differs between runs, no partitions that expire. Affected keys, where they are proven. All
           rows.
INVARIANT  rows that follow from stored rows are committed on these rows alone (ROWS_READ).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbt.adapters.tablestore.config.changed_keys_config import Affected, Way
from dbt.adapters.tablestore.inputs.query_errors import FixModelQuery
from dbt.adapters.tablestore.inputs.run_choice import NO_CHOICE, RunChoice
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect
from dbt.adapters.tablestore.plan.run_costs import ChosenWay
from tablestore_engine.spi import Before, Deltas, KnownRows

if TYPE_CHECKING:
    import pyarrow as pa

    from tablestore_engine.api import Engine, Table, TableVersion
    from tablestore_engine.spi import AffectedKeys, GroupState, PlannedDeltas, TracedQuery

_EXPIRES = "partition.expiration-time"


@dataclass(frozen=True)
class CodeInputs:
    """Of a Python model, whose `sql` gives its keys alone. `names`: of its inputs, as schema.table; `whole`: tables
    under those that `affected_by` does not name. `made_by`: what its rows depend on besides its text and inputs.
    """

    names: tuple[str, ...]
    whole: frozenset[str]
    made_by: str


@dataclass(frozen=True)
class ModelQuery:
    """`sql`: as Spark has it; `text`: what the rows are made by, with functions of the header. `view`: the name of a
    temporary view for affected keys; None: a new one. `is_asked`: the config asks for it, so that what no run can make
    right is an error; else all rows are compared then, and there are no deltas. `code`: of a Python model.
    """

    model: str
    sql: str
    text: str
    affected: Affected
    node: str = ""
    view: str | None = None
    is_asked: bool = True
    code: CodeInputs | None = None

    def is_whole(self, table: str) -> bool:
        """Whether Python code reads all rows of it, whatever changed."""
        return self.code is not None and table in self.code.whole


@dataclass(frozen=True)
class Evaluation:
    """`select`: None: nothing changed, or all rows are computed: `clause` prevents the proof, or that is cheaper, for
    the reason `cheaper`. `views`: temporary ones, to be dropped.

    `keys`: of rows that deltas put or delete, and of those that are evaluated; `evaluated`: the latter. `no_deltas`:
    why there are none. `is_merged`: the rows follow from stored ones. `rows`: of deltas that are all there is to write.
    `state`: of all groups behind the run, of a model that keeps one. `choice`: of the strategy, by
    costs; None: there was nothing to choose.
    """

    clause: str = ""
    select: KeysSelect | None = None
    views: tuple[str, ...] = ()
    keys: int = 0
    evaluated: int = 0
    way: Way = Way.KEYS
    no_deltas: str = ""
    is_merged: bool = False
    rows: KnownRows | None = None
    state: GroupState | None = None
    cheaper: str = ""
    choice: ChosenWay | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all rows are computed."""
        return bool(self.clause or self.cheaper)

    @property
    def has_effect(self) -> bool:
        """Whether rows may change."""
        return self.select is not None or self.is_whole


def evaluate(
    engine: Engine,
    query: ModelQuery,
    traced: TracedQuery,
    changes: Mapping[str, TableVersion],
    own: Table | None,
    runs: RunChoice = NO_CHOICE,
    state: GroupState | None = None,
) -> Evaluation:
    """`changes`: of each input that changed, the range. `own`: the model's table as this run sees it. `runs`: of this
    model, before. `state`: of its groups, if it keeps one.

    Raises FixRequest TS1870.
    """
    general = traced.general_clause(query.affected.key, query.affected.primary_key)
    if general is not None:
        return Evaluation(general)
    if not changes:
        return Evaluation()
    whole = next((one for one in changes if query.is_whole(one)), None)
    if whole is not None:
        return Evaluation(read_whole(whole))
    return _Strategies(engine, query, traced, changes, own, runs, state).evaluate()


@dataclass
class _Strategies:
    """Of one run; see evaluate()."""

    engine: Engine
    query: ModelQuery
    traced: TracedQuery
    changes: Mapping[str, TableVersion]
    own: Table | None
    runs: RunChoice
    state: GroupState | None
    no_deltas: str = ""

    def evaluate(self) -> Evaluation:
        """By the cheapest strategy that the query has; one that fails leaves the others."""
        planned, (unproven, parts) = self._planned(), self._planned_keys()
        missing = {Way.DELTAS: planned is None, Way.KEYS: bool(unproven)}
        possible = [way for way in self.query.affected.ways if not missing.get(way)]
        if unproven and possible == [Way.WHOLE]:
            return self._not_restricted(unproven)
        while possible:
            choice = self.runs.choose(possible, () if planned is None else planned.reads, parts)
            found: Evaluation | None = None
            if choice.way == Way.WHOLE:
                found = Evaluation(cheaper=_reason(choice), state=self.state)
            elif choice.way == Way.KEYS:
                found = self._keys(is_bounded=Way.WHOLE in possible)
                if found.clause and Way.DELTAS in possible:
                    found = None
            elif planned is not None:
                found = self._deltas(planned)
            if found is not None:
                return replace(found, choice=choice, no_deltas=self.no_deltas)
            possible.remove(choice.way)
        return self._not_restricted(unproven)

    def _planned_keys(self) -> tuple[str, tuple[str, ...]]:
        """(why there are no affected keys, or empty; tables of the parts of the query that are evaluated for them)."""
        affected = self.query.affected
        if Way.KEYS not in affected.ways:
            return "", ()
        by = [one for one in self.changes if affected.find(one) is not None]
        return self.traced.plan_keys(affected.key, self.changes, by)

    def _not_restricted(self, clause: str) -> Evaluation:
        if self.query.affected.is_strict:
            raise not_restricted(self.query.model, clause)
        return Evaluation(clause, state=self.state, no_deltas=self.no_deltas)

    def _planned(self) -> PlannedDeltas | None:
        """None: there are no deltas."""
        self.no_deltas = no_deltas(self.query, self.own)
        if self.own is None:
            return None
        if not self._has_columns(self.own):
            self.no_deltas, self.state = "its columns changed", None
        if self.no_deltas:
            return None
        key = self.query.affected.primary_key
        planned = self.traced.plan_deltas(key, self.changes, has_state=self.state is not None)
        self.no_deltas = planned.clause
        return None if planned.clause else planned

    def _deltas(self, planned: PlannedDeltas) -> Evaluation | None:
        assert self.own is not None
        new, find = self.engine.changed_keys.new_view, self.engine.changed_keys.stored_rows(self.own)
        deltas = planned.follow(Before(find, (new(), new()), self.state))
        self.no_deltas = deltas.clause
        return None if deltas.clause else _of_deltas(deltas, self.state)

    def _keys(self, *, is_bounded: bool) -> Evaluation:
        """`is_bounded`: with too many keys all rows are computed."""
        affected, most = self.query.affected, self.runs.most_keys if is_bounded else None
        by = {one: found for one in self.changes if (found := affected.find(one)) is not None}
        keys = self.traced.affected_keys(affected.key, self.changes, by, most)
        if keys.is_cut:
            return Evaluation(
                cheaper=f"more than {most:,} keys are affected", keys=keys.count, state=self.state
            )
        if keys.rows is None:
            return self._not_restricted(keys.clause)
        made = self._evaluated(keys.rows)
        if not made.clause:
            return replace(_of_deltas(made, self.state), way=Way.KEYS, keys=keys.count, evaluated=keys.count)
        view = self.query.view or self.engine.changed_keys.new_view()
        viewed = self.traced.viewed(keys, view)
        return Evaluation("", _select(viewed), (view,), keys.count, keys.count)

    def _evaluated(self, keys: pa.Table) -> Deltas:
        """The rows of affected keys, and the state of their groups, or a clause where the model's statement has to
        compute them. Then the next run builds the state.
        """
        affected, own = self.query.affected, self.own
        is_other = set(map(str.lower, affected.key)) != set(map(str.lower, affected.primary_key))
        if own is None or is_other or self.query.view is not None or not self._has_columns(own):
            return Deltas(clause="a statement")
        new = self.engine.changed_keys.new_view
        before = Before(self.engine.changed_keys.stored_rows(own), (new(), new()), self.state)
        if self.state is not None:
            return self.traced.evaluate_groups(affected.primary_key, keys, before)
        return self.traced.evaluate(affected.key, keys, before)

    def _has_columns(self, own: Table) -> bool:
        """Whether the table has just the columns of the query."""
        return {one.name.lower() for one in own.schema.fields} == set(self.traced.columns)


def read_whole(table: str) -> str:
    """The clause of an input of a Python model."""
    return f"a change of {table}, which affected_by does not name"


def _reason(choice: ChosenWay) -> str:
    """Of all rows."""
    others = [f"{way} about {took:.1f} s" for way, took in choice.seconds.items() if way != Way.WHOLE]
    return ", ".join([f"about {choice.seconds[Way.WHOLE]:.1f} s", *others])


def no_deltas(query: ModelQuery, own: Table | None) -> str:
    """Why a model has no deltas whatever its query is. `own`: its table; None: not known."""
    affected = query.affected
    if not query.is_asked or affected.ways == (Way.KEYS,):
        return "strategy='affected_keys'"
    if set(map(str.lower, affected.key)) != set(map(str.lower, affected.primary_key)):
        return "affected_key is another key"
    if affected.by or affected.allows_volatile:
        return "affected_by" if affected.by else "volatile='allowed'"
    if own is not None and own.schema.options.get(_EXPIRES):
        return f"partitions of its table expire ({_EXPIRES})"
    return ""


def _of_deltas(deltas: Deltas, state: GroupState | None) -> Evaluation:
    """`state`: of the groups before, which stays where no change is one of the query's rows."""
    again = deltas.again
    views = tuple(one for one in (deltas.view, again.view) if one is not None)
    known = None if deltas.table is None else KnownRows(deltas.fields, deltas.table)
    rows = "" if deltas.rows == 0 else f"`{deltas.view or 'rows of deltas'}`"
    select = KeysSelect("", frozenset(), rows) if again.view is None else _select(again, rows)
    return Evaluation(
        "",
        select if views or known is not None else None,
        views,
        deltas.keys,
        deltas.evaluated,
        way=Way.DELTAS,
        is_merged=deltas.is_merged,
        rows=known,
        state=state if deltas.state is None else deltas.state,
    )


def _select(keys: AffectedKeys, rows: str = "") -> KeysSelect:
    return KeysSelect(f"select * from `{keys.view}`", keys.nullable, rows)


def not_restricted(model: str, clause: str) -> FixModelQuery:
    """TS1870: the config refuses to compare all rows."""
    return FixModelQuery(
        "TS1870",
        f"model {model} cannot be restricted to affected keys",
        why=f"its query has {clause}",
        fix="rewrite the query, or set changed_keys={'fallback': 'warn'}: then such runs compare all rows",
    )
