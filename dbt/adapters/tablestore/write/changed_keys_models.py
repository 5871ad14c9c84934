"""Models by incremental_strategy='changed_keys': what a run of one evaluates, and what dbt's log says of it.

CHANGE     the run of a `changed_keys` model, and its warnings
INVARIANT  a run that compares all rows warns once, with the reason.
INVARIANT  a query that cannot be analyzed yet (an input does not exist) compiles; `dbt run` checks it again.
CHANGE     the tips of `dbt compile` for `changed_keys` models
INVARIANT  a tip names a change that the engine honours; a clause without one has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dbt.adapters.tablestore.adapter_response import TablestoreResponse
from dbt.adapters.tablestore.config.changed_keys_config import Way
from dbt.adapters.tablestore.inputs.changed_inputs import ChangedInputs
from dbt.adapters.tablestore.inputs.changed_keys_inputs import Followed, check_query, moment_of, unproven
from dbt.adapters.tablestore.inputs.changed_keys_strategy import Evaluation, ModelQuery, no_deltas
from dbt.adapters.tablestore.inputs.query_errors import ModelQueryError
from dbt.adapters.tablestore.messages import WarnedOnce, logger
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan, Situation
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_job import ModelRun
from tablestore_engine.api import Engine, TablestoreError, WriteMode
from tablestore_engine.spi import FollowedDeltas, FollowedInput

# begin of a clause → tip
TIPS = {
    "a window whose PARTITION BY": "set affected_key to the columns of PARTITION BY",
    "a window function without PARTITION BY": "add PARTITION BY, or compute the window in a model of its own",
    "GROUP BY or DISTINCT below": "make the inner GROUP BY a model of its own",
    "the result of an aggregate function": "make the inner GROUP BY a model of its own",
    "a join on the result of": "make the side with the aggregate or window function a model of its own",
    "a subquery as a value": "write it as a join with a model of its own",
    "a key without a column of GROUP BY": "add all columns of GROUP BY to unique_key",
    "a key that has more than": "take columns that are not in GROUP BY out of unique_key",
    "a column computed from aggregates": "store the aggregates, and compute the column in a view over the model",
    "a sum of float": "cast the values to DECIMAL",
    "a sum of double": "cast the values to DECIMAL",
    "a change of the EXISTS or IN side": "write an inner join, if the condition compares the key of that table",
    "rows from outside": "load these rows into a table of the warehouse",
    "affected_by": "remove affected_by where the query proves the keys",
    "strategy='affected_keys'": "remove changed_keys={'strategy': 'affected_keys'}",
}
COUNT = "add count(*) to the model, so that a group that loses rows is not evaluated"


_UNITS = ("B", "KB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Line:
    """Of the log; `is_warning`: a run is slower than the strategy promises, or not proven."""

    text: str
    is_warning: bool = False


def explain_changed_keys(engine: Engine, query: ModelQuery) -> tuple[Line, ...]:
    """Raises FixRequest TS1870, TS1871, TS1872, as a run would."""
    name = query.model
    try:
        with engine.changed_keys.trace(query.sql, versions=moment_of(engine, query)) as traced:
            check_query(query, traced, traced.tables)
            clauses, tables = unproven(query, traced), traced.tables
            inputs = traced.followed_inputs(query.affected.key)
            general = no_deltas(query, None)
            deltas = {} if clauses or general else traced.followed_deltas(query.affected.primary_key)
        said = _Explanation(query, sizes_of(engine, tables), general, deltas)
        return tuple(said.whole(clauses) if clauses else said.lines(inputs))
    except ModelQueryError:
        raise
    except TablestoreError as error:
        return (Line(f"{name}: its inputs are analyzed when it runs: {error.what} ({error.code})"),)


def sizes_of(engine: Engine, tables: Iterable[str]) -> Mapping[str, str]:
    """table → its size by metadata: `4 rows, 1 file, 2 KB`."""
    found = {}
    for name in tables:
        facts = engine.seen_table(name).facts()
        files = "1 file" if facts.files == 1 else f"{facts.files:,} files"
        rows = "1 row" if facts.rows == 1 else f"{facts.rows:,} rows"
        found[name] = f"{rows}, {files}, {_size(facts.bytes)}"
    return found


def _size(count: float) -> str:
    unit = 0
    while count >= 1000 and unit + 1 < len(_UNITS):
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if count >= 10 or not unit else f"{count:.1f} {_UNITS[unit]}"


@dataclass(frozen=True)
class _Explanation:
    """Of one query. `general`: why a model has no deltas whatever its query is; `deltas`: by table, else."""

    query: ModelQuery
    sizes: Mapping[str, str]
    general: str
    deltas: Mapping[str, FollowedDeltas]

    def whole(self, clauses: Iterable[str]) -> Iterator[Line]:
        """Of a query that is not restricted."""
        name = self.query.model
        for clause in clauses:
            yield Line(f"{name}: each run that finds changes compares all rows: {clause}", is_warning=True)
            yield from self._tip(clause)
        yield Line(f"{name}: such a run reads {self._named(self.sizes)}")

    def lines(self, inputs: Iterable[FollowedInput]) -> Iterator[Line]:
        evaluates = False
        for one in inputs:
            yield from self._deltas(one.table)
            yield from self._keys(one)
            evaluates |= bool(self.general or self.deltas[one.table].clause)
        if evaluates:
            yield Line(f"{self.query.model}: the query for affected keys reads {self._named(self.sizes)}")

    def _deltas(self, table: str) -> Iterator[Line]:
        begin = f"{self.query.model}: changes of {table}"
        found = self.deltas.get(table, FollowedDeltas(self.general))
        if found.clause:
            yield Line(f"{begin}: affected keys: {found.clause}")
            yield from self._tip(found.clause)
            return
        reads = f"each run reads {self._named(found.joined)}" if found.joined else "no other table is read"
        if found.by_key:
            reads = f"rows of {self._named(found.by_key)} are read by their keys"
        yield Line(f"{begin}: deltas; {reads}")
        if found.lacks_count:
            yield Line(f"{self.query.model}: tip: {COUNT}")

    def _keys(self, one: FollowedInput) -> Iterator[Line]:
        name = self.query.model
        if one.clause is not None:
            yield Line(
                f"{name}: affected_by leads from {one.table} to the key, which the query does not prove "
                f"({one.clause}); test the model with equals_full_refresh",
                is_warning=True,
            )
        elif one.joined:
            joined = self._named(one.joined)
            yield Line(f"{name}: changes of {one.table} find their keys by a join with {joined}")
        else:
            yield Line(f"{name}: changes of {one.table} give their keys without reading another table")

    def _tip(self, clause: str) -> Iterator[Line]:
        tip = next((tip for begin, tip in TIPS.items() if clause.startswith(begin)), None)
        if tip is not None:
            yield Line(f"{self.query.model}: tip: {tip}")

    def _named(self, tables: Iterable[str]) -> str:
        return ", ".join(f"{table} ({self.sizes[table]})" for table in tables) or "no table"


class ChangedKeysModels:
    def __init__(self, engine: Callable[[], Engine], inputs: ChangedInputs) -> None:
        self._engine, self._inputs = engine, inputs
        self._warned = WarnedOnce()

    def followed(self, run: ModelRun, situation: Situation) -> Situation:
        """With the keys that changes of the inputs affect."""
        relation, settings = run.relation, run.settings
        assert settings.table.affected is not None
        is_new = not situation.table_exists or situation.full_refresh
        done = self._inputs.followed(settings.node)
        if done is not None and done.is_code:  # which has run for these keys
            return self._with_keys(relation, situation, done, is_new=is_new)
        tables = tuple(sorted({one.table for one in run.query.reads.reads()}))
        text = run.context.compiled or situation.sql
        query = ModelQuery(relation.table_name, situation.sql, text, settings.table.affected, settings.node)
        found = self._inputs.follow(settings.node, relation, query, tables, is_new=is_new)
        return self._with_keys(relation, situation, found, is_new=is_new)

    def _with_keys(
        self, relation: TablestoreRelation, situation: Situation, found: Followed, *, is_new: bool
    ) -> Situation:
        for warning in found.warnings:
            logger.warning(f"{relation.table_name}: {warning}")
        evaluation = found.evaluation
        if evaluation is not None and evaluation.cheaper:
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
        choice = None if followed.evaluation is None else followed.evaluation.choice
        if choice is not None:
            seconds = {str(way): round(took, 3) for way, took in choice.seconds.items()}
            response.tell_choice(choice.reason, seconds, choice.keys)
        if followed.moment_ms is not None:
            response.tell_moment(followed.moment_ms)
        if plan.action is not Action.INCREMENT:
            response.tell_evaluated(Way.WHOLE, "", None)
        elif followed.affected is not None and plan.mode is WriteMode.UPSERT:
            assert followed.evaluation is not None
            _tell_restricted(response, followed.evaluation)
        else:
            response.tell_evaluated(Way.WHOLE, followed.reason or "its columns changed", None)

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
    if found.way == Way.KEYS:
        response.tell_evaluated(Way.KEYS, "", found.keys, found.no_deltas)
        return
    response.tell_evaluated(Way.DELTAS, "", found.keys)
    response.keys_evaluated = found.evaluated
