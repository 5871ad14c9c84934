"""The queries of microbatches: which of them have no input, known from metadata.

Steps      the text without its interval → proven once for all batches of a model (the engine's EmptyBatches) → for
           each batch: does the condition hold now → then its columns are known, and no rows are written in its place
INVARIANT  the write is the one of any batch: it creates the table, replaces the rows of the interval, obeys the gate.
           Only the query, whose result is proven to be empty, is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.tablestore.plan.build_plan import Columns
from dbt.adapters.tablestore.plan.run_context import BatchInterval
from dbt.adapters.tablestore.statements import split_statements
from dbt.adapters.tablestore.write.node_versions import NodeVersions
from tablestore_engine.api import TablestoreError
from tablestore_engine.spi import NoRows, OrderedLock, Rank, ReadLog

if TYPE_CHECKING:
    from tablestore_engine.api import Engine, TableVersion
    from tablestore_engine.spi import EmptyBatches, EmptyQuery

AskColumns = Callable[[str, ReadLog], Columns]


@dataclass(frozen=True)
class _KnownQuery:
    """`proof`: when a batch of it has no rows; None: nothing is proven."""

    columns: Columns
    proof: EmptyQuery | None


@dataclass(frozen=True)
class AnalyzedQuery:
    """Of a node: its columns, and what it reads. `empty`: the query has no rows; None: nothing is proven."""

    columns: Columns
    reads: ReadLog
    empty: NoRows | None = None


class BatchQueries:
    """Of one invocation, for all of its threads."""

    def __init__(self, engine: Callable[[], Engine], pinned: NodeVersions) -> None:
        self._engine, self._pinned = engine, pinned
        self._batches: EmptyBatches | None = None
        self._known: dict[tuple[str, str], _KnownQuery] = {}  # node, text without its interval
        self._lock = OrderedLock("batches of this run", Rank.PROCESS)

    def analyze(
        self, node: str, batch: BatchInterval | None, sql: str, reads: ReadLog, ask: AskColumns
    ) -> AnalyzedQuery:
        """Of the node's query; `ask`: Spark. What the query reads is added to `reads`."""
        general = None if batch is None else self._general(node, batch, sql)
        if batch is None or general is None:
            return AnalyzedQuery(ask(sql, reads), reads)
        with self._lock:
            known = self._known.get((node, general))
        if known is None:
            columns = ask(sql, reads)
            known = _KnownQuery(columns, self._quietly(partial(self._find().prove, general), node))
            with self._lock:
                self._known[node, general] = known
            return AnalyzedQuery(columns, reads, self._no_rows(node, batch, known, ReadLog()))
        own = ReadLog()
        empty = self._no_rows(node, batch, known, own)
        if empty is None:
            return AnalyzedQuery(ask(sql, reads), reads)
        reads.add(own)
        return AnalyzedQuery(known.columns, reads, empty)

    def _general(self, node: str, batch: BatchInterval, sql: str) -> str | None:
        """The text of all batches; None: of this one alone, or of a model that follows changes."""
        if self._pinned.inputs.has_inputs(node) or self._pinned.streams.follows(node):
            return None
        if len(split_statements(sql)) != 1:
            return None  # a header may change what the query means
        return self._find().general_text(sql, str(batch.start), str(batch.end))

    def _no_rows(self, node: str, batch: BatchInterval, known: _KnownQuery, reads: ReadLog) -> NoRows | None:
        proof = known.proof
        if proof is None:
            return None

        def ask(*, versions: Mapping[str, TableVersion]) -> bool:
            start, end = str(batch.start), str(batch.end)
            return self._find().is_empty(proof, start, end, versions=versions, reads=reads)

        return NoRows(proof.fields) if self._quietly(ask, node) else None

    def _quietly(self, read: Callable[..., Any], node: str) -> Any:  # noqa: ANN401 - what `read` gives
        """None for an error: the query is run then, and says what is wrong."""
        try:
            return self._pinned.read(node, read)
        except TablestoreError:
            return None

    def _find(self) -> EmptyBatches:
        if self._batches is None:
            made = self._engine().empty_batches()
            with self._lock:
                self._batches = self._batches or made
        return self._batches
