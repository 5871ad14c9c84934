"""Python models of one invocation: their code reads like the SQL of a model, and its rows get a name for a query.

CHANGE     the reads and rows of a Python model
Steps      check config and packages → run the code over the versions that the node reads → name the rows
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
from dbt.adapters.tablestore.messages import TerminalMessages
from dbt.adapters.tablestore.python_models.model_code import ModelCode, describe_kind, run_code
from dbt.adapters.tablestore.python_models.python_config import PythonConfig
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.node_versions import NodeVersions
from tablestore_engine.api import Engine, FixRequest, TableVersion
from tablestore_engine.spi import OrderedLock, Rank, ReadLog

logger = TerminalMessages("Tablestore")
_FRAMES = ("DataFrame", "Table", "RecordBatch")
_LIBRARIES = ("pyspark", "pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class PythonModel:
    """One model of the run: what it is, and under which name a query finds its rows."""

    node: str
    relation: TablestoreRelation
    code: ModelCode
    config: PythonConfig
    rows: str
    reads: ReadLog

    @property
    def query(self) -> str:
        """SQL of its rows."""
        return f"select * from {self.rows}"


class PythonModels:
    """Of one invocation, for all of its threads."""

    def __init__(self, engine: Callable[[], Engine], pinned: NodeVersions) -> None:
        self._engine, self._pinned = engine, pinned
        self._models: dict[str, PythonModel] = {}
        self._rows: dict[str, Any] = {}  # by node: Arrow rows, until they are written
        self._lock = OrderedLock("Python models of this run", Rank.PROCESS)

    def run(self, node: str, relation: TablestoreRelation, code: ModelCode, config: PythonConfig) -> str:
        """SQL of the model's rows. Raises FixRequest TS1897, ModelCodeFailed TS1896, and what queries raise."""
        name = self._engine().python_frames.new_name()
        model = PythonModel(node, relation, code, config, name, ReadLog())
        with self._lock:
            self._models[node] = model
        self._run(model)
        return model.query

    def run_again(self, node: str) -> None:
        """The query of the model gives rows of what is there now; nothing for a model in SQL."""
        model = self._find(node)
        if model is not None:
            self._run(replace(model, reads=ReadLog()))

    def written(self, node: str, select: str) -> Any:  # noqa: ANN401 - SQL text or an Arrow table
        """What to write for the SELECT of a plan: Arrow rows as they are, when it is nothing but these.

        WHY     through Spark the same rows take many times as long.
        """
        model = self._find(node)
        rows = self._rows.get(node)
        if model is None or rows is None:
            return select
        if select == model.query:
            return rows
        self._engine().python_frames.name_rows(rows, model.rows)
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
        frames, known = self._engine().python_frames, dict[str, Any]()

        def read(sql: str, args: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - a frame of Spark
            return self._pinned.read(
                model.node,
                lambda *, versions: frames.read(
                    sql, args, versions=_but_own(versions, model.relation), reads=model.reads
                ),
            )

        def load(name: str) -> object:
            if name not in known:
                known[name] = read(f"select * from {name}")
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
            frames.name_rows(
                taken.slice(0, 0) if is_arrow else taken, model.rows
            )  # a plan reads columns alone

    def _keep(self, node: str, rows: pa.Table | None) -> None:
        with self._lock:
            if rows is None:
                self._rows.pop(node, None)
            else:
                self._rows[node] = rows


def _but_own(
    versions: Mapping[str, TableVersion], relation: TablestoreRelation
) -> Mapping[str, TableVersion]:
    """The model's own table as others see it, not as it was staged before."""
    return {table: version for table, version in versions.items() if table != relation.table_name}


def _no_frame(code: ModelCode, rows: object) -> FixRequest:
    return FixRequest(
        "TS1897",
        f"Python model {code.name} returned {describe_kind(rows)}",
        why=f"expected a DataFrame of Spark, pandas or polars, or a pyarrow.Table, from model() in {code.path}",
        fix="return one of these; collect a polars.LazyFrame first",
    )
