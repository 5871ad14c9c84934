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
from typing import Any

from dbt.adapters.tablestore.gate.microbatches import unit_of
from dbt.adapters.tablestore.plan.build_plan import Columns
from dbt.adapters.tablestore.plan.run_context import BatchInterval
from dbt.adapters.tablestore.statements import split_statements
from dbt.adapters.tablestore.write.node_versions import NodeVersions
from tablestore_engine.api import Engine, TablestoreError, TableVersion
from tablestore_engine.spi import EmptyBatches, EmptyQuery, NoRows, OrderedLock, Rank, ReadLog

AskColumns = Callable[[str, ReadLog], Columns]


@dataclass(frozen=True)
class _KnownQuery:
    """`proof`: when a batch of it has no rows; None: nothing is proven."""

    columns: Columns
    proof: EmptyQuery | None


class BatchQueries:
    """Of one invocation, for all of its threads."""

    def __init__(self, engine: Callable[[], Engine], pinned: NodeVersions) -> None:
        self._engine, self._pinned = engine, pinned
        self._batches: EmptyBatches | None = None
        self._known: dict[tuple[str, str], _KnownQuery] = {}  # node, text without its interval
        self._empty: dict[str, EmptyQuery] = {}  # by unit: batches without input that are not written yet
        self._lock = OrderedLock("batches of this run", Rank.PROCESS)

    def columns(
        self, node: str, batch: BatchInterval | None, sql: str, reads: ReadLog, ask: AskColumns
    ) -> Columns:
        """Of the node's query; `ask`: Spark. What the query reads is added to `reads`."""
        general = None if batch is None else self._general(node, batch, sql)
        if batch is None or general is None:
            return ask(sql, reads)
        with self._lock:
            self._empty.pop(unit_of(node, batch), None)
            known = self._known.get((node, general))
        if known is None:
            columns = ask(sql, reads)
            proof = self._quietly(partial(self._find().prove, general), node)
            known = _KnownQuery(columns, proof)
            with self._lock:
                self._known[node, general] = known
            self._has_no_rows(node, batch, known, ReadLog())
            return columns
        own = ReadLog()
        if self._has_no_rows(node, batch, known, own):
            reads.add(own)
            return known.columns
        return ask(sql, reads)

    def written(self, node: str, batch: BatchInterval | None, rows: Any) -> Any:  # noqa: ANN401 - SQL text or Arrow
        """What to write for the query of a plan: nothing for a batch that has no input. Asked once for each batch."""
        with self._lock:
            proof = self._empty.pop(unit_of(node, batch), None)
        return rows if proof is None else NoRows(proof.fields)

    def _general(self, node: str, batch: BatchInterval, sql: str) -> str | None:
        """The text of all batches; None: of this one alone, or of a model that follows changes."""
        if self._pinned.inputs.has_inputs(node) or self._pinned.streams.follows(node):
            return None
        if len(split_statements(sql)) != 1:
            return None  # a header may change what the query means
        return self._find().general_text(sql, str(batch.start), str(batch.end))

    def _has_no_rows(self, node: str, batch: BatchInterval, known: _KnownQuery, reads: ReadLog) -> bool:
        proof = known.proof
        if proof is None:
            return False

        def ask(*, versions: Mapping[str, TableVersion]) -> bool:
            start, end = str(batch.start), str(batch.end)
            return self._find().is_empty(proof, start, end, versions=versions, reads=reads)

        is_empty = bool(self._quietly(ask, node))
        if is_empty:
            with self._lock:
                self._empty[unit_of(node, batch)] = proof
        return is_empty

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
