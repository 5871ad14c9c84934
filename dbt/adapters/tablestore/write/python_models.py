"""Python models of one invocation: their code reads like the SQL of a model, and its rows get a name for a query.

CHANGE     the reads and rows of a Python model
Steps      check config and packages → find the affected keys of changed_keys (keyed_code.py) → run the code over the
           versions that the node reads, its inputs restricted to these keys → name the rows
           → the normal plan takes `select * from <name>` for the model's query, the write this or the Arrow rows
           → the name is dropped
INVARIANT  what the code reads is noted like the reads of a query: staging and publishing know the node's inputs.
INVARIANT  a plan that is made again runs the code again: rows never come from an older state than the plan.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from dbt.adapters.tablestore.dbt_errors import ModelCodeFailed
from dbt.adapters.tablestore.inputs.partial_runs import is_empty, refuse_sample
from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.run_context import PlanContext
from dbt.adapters.tablestore.python_models.keyed_inputs import inputs_of, keyed_inputs
from dbt.adapters.tablestore.python_models.model_code import ModelCode, describe_kind, run_code
from dbt.adapters.tablestore.python_models.python_config import PythonConfig
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.keyed_code import KeyedCode, Restriction
from dbt.adapters.tablestore.write.node_versions import NodeVersions, but_own
from tablestore_engine.api import Engine, FixRequest, TableVersion, WriteMode
from tablestore_engine.spi import OrderedLock, Rank, ReadLog

_FRAMES = ("DataFrame", "Table", "RecordBatch")
_LIBRARIES = ("pyspark", "pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class PythonModel:
    """One model of the run: what it is, and under which name a query finds its rows. `is_test`: a test reads these.
    `arrow`: its rows until they are written, if it gave an Arrow table.
    """

    node: str
    relation: TablestoreRelation
    code: ModelCode
    config: PythonConfig
    rows: str
    reads: ReadLog
    keyed: KeyedCode | None = None
    is_test: bool = False
    arrow: pa.Table | None = None

    @property
    def query(self) -> str:
        return f"select * from {self.rows}"


class PythonModels:
    """Of one invocation, for all of its threads."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        pinned: NodeVersions,
        config: Any,  # noqa: ANN401 - dbt's untyped config
    ) -> None:
        self._engine, self._pinned, self._config = engine, pinned, config
        self._models: dict[str, PythonModel] = {}
        self._lock = OrderedLock("Python models of this run", Rank.PROCESS)

    def run(
        self,
        node: str,
        relation: TablestoreRelation,
        code: ModelCode,
        config: PythonConfig,
        keyed: KeyedCode | None = None,
        *,
        is_test: bool = False,
    ) -> str:
        """SQL of the model's rows; `keyed`: of those that changes of its inputs affect. `is_test`: for a test.

        Raises FixRequest TS1897, ModelCodeFailed TS1896, what KeyedCode raises, and what queries raise.
        """
        name = self._engine().python_frames.new_name()
        model = PythonModel(node, relation, code, config, name, ReadLog(), keyed, is_test)
        with self._lock:
            self._models[node] = model
        self._run(model)
        return model.query

    def run_again(self, node: str) -> None:
        """The query of the model gives rows of what is there now; nothing for a model in SQL."""
        model = self._find(node)
        if model is not None:
            self._run(replace(model, reads=ReadLog()))

    def keyed(
        self,
        relation: TablestoreRelation,
        settings: ModelSettings,
        code: ModelCode,
        config: PythonConfig,
        context: PlanContext,
    ) -> KeyedCode | None:
        """How a model runs for the keys that changes affect; None: it runs whole. Raises FixRequest TS1859."""
        affected = settings.table.affected
        if affected is None or is_empty(self._config):
            return None
        refuse_sample(self._config, settings.node)
        inputs = keyed_inputs(inputs_of(code.compiled), affected)
        return KeyedCode(relation, settings, code, config.packages, inputs, context, self._pinned)

    def written(self, node: str, plan: BuildPlan) -> Any:  # noqa: ANN401 - SQL text or an Arrow table
        """What to write for a plan: Arrow rows as they are, when its SELECT is nothing but these.

        Raises RetryError TS2014.

        WHY     through Spark the same rows take many times as long.
        """
        model, select = self._find(node), plan.select
        if model is not None and model.keyed is not None:
            model.keyed.check_plan(
                is_upsert=plan.action is Action.INCREMENT and plan.mode is WriteMode.UPSERT
            )
        if model is None or model.arrow is None:
            return select
        if select == model.query:
            return model.arrow
        self._engine().python_frames.name_rows(model.arrow, model.rows)
        return select

    def reads(self, node: str) -> ReadLog:
        """What the model's code has read; empty for a model in SQL."""
        model = self._find(node)
        return ReadLog() if model is None else model.reads

    def finish(self, node: str) -> None:
        """Its rows are written, or not needed any more."""
        model = self._find(node)
        if model is not None:
            self._keep(node, None)
            self._engine().python_frames.drop_name(model.rows)

    def finish_all(self) -> None:
        """At the end of the invocation: also those of models that failed."""
        with self._lock:
            nodes = tuple(self._models)
        for node in nodes:
            self.finish(node)

    def has(self, node: str) -> bool:
        """Whether the node is a Python model that has been asked to run."""
        return self._find(node) is not None

    def _find(self, node: str) -> PythonModel | None:
        with self._lock:
            return self._models.get(node)

    def _run(self, model: PythonModel) -> None:
        frames, keyed = self._engine().python_frames, model.keyed
        restriction = None if keyed is None else keyed.follow(model.reads)
        if keyed is not None and restriction is not None and restriction.is_idle:
            self._keep(model.node, None)
            none = f"select * from {model.relation.table_name} where false"
            frames.name_rows(self._read(model, none, None, ReadLog()), model.rows)
            return
        self._run_code(model, restriction)
        if keyed is not None and not keyed.check(model.rows, restriction):
            self._run_code(model, None)
            keyed.check(model.rows, None)

    def _run_code(self, model: PythonModel, restriction: Restriction | None) -> None:
        frames, known = self._engine().python_frames, dict[str, Any]()

        def read(sql: str, args: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - a frame of Spark
            reads = ReadLog()
            found = self._read(model, sql, args, reads)
            if model.keyed is not None and (reads.reads() or reads.constants()):
                raise _read_otherwise(model.code, sql)
            model.reads.add(reads)
            return found

        def load(name: str) -> object:
            if name not in known:
                sql = f"select * from {name}"
                if model.keyed is not None and restriction is not None:
                    sql = model.keyed.inputs.rows_of(name, restriction.keys)
                known[name] = self._read(model, sql, None, model.reads)
            return frames.convert(known[name], model.config.dataframe)

        with frames.running():
            try:
                rows = run_code(model.code, frames.session(read), load)
            except ModelCodeFailed as error:
                logger.debug("".join(traceback.format_exception(error.__cause__)))
                raise
            library, _, kind = describe_kind(rows).partition(".")
            if library not in _LIBRARIES or kind not in _FRAMES:
                raise _no_frame(model.code, rows)
            taken: Any = frames.take(rows)
            is_arrow = isinstance(taken, pa.Table)
            self._keep(model.node, taken if is_arrow else None)
            is_plan = is_arrow and restriction is None and not model.is_test  # which reads columns alone
            frames.name_rows(taken.slice(0, 0) if is_plan else taken, model.rows)

    def _read(self, model: PythonModel, sql: str, args: Mapping[str, Any] | None, reads: ReadLog) -> Any:  # noqa: ANN401 - a frame of Spark
        """At the states where the model follows its inputs."""
        frames = self._engine().python_frames

        def read(*, versions: Mapping[str, TableVersion]) -> Any:  # noqa: ANN401 - a frame of Spark
            pins = {} if model.keyed is None else self._pinned.inputs.pins(model.node)
            found = but_own({**versions, **pins}, model.relation)
            return frames.read(sql, args, versions=found, reads=reads)

        return self._pinned.read(model.node, read)

    def _keep(self, node: str, rows: pa.Table | None) -> None:
        with self._lock:
            self._models[node] = replace(self._models[node], arrow=rows)


def _read_otherwise(code: ModelCode, sql: str) -> FixRequest:
    return FixRequest(
        "TS2015",
        f"Python model {code.name} with changed_keys reads a table by its session",
        why=f"rows of {sql!r} are not restricted to the keys of a run, and their changes would not be followed",
        fix="read tables by dbt.ref() or dbt.source() alone; register their frames as views to use them in SQL",
    )


def _no_frame(code: ModelCode, rows: object) -> FixRequest:
    return FixRequest(
        "TS1897",
        f"Python model {code.name} returned {describe_kind(rows)}",
        why=f"expected a DataFrame of Spark, pandas or polars, or a pyarrow.Table, from model() in {code.path}",
        fix="return one of these; collect a polars.LazyFrame first",
    )
