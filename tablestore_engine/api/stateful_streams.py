"""Queries over streams that remember earlier rows: which can be run, and the next run of one.

Steps      choose_mode: may Spark stream it, and which rows come out · run: state → folder of the session → Spark's
           query over one range of each stream → rows in files, of each key the newest → the new state, by its name
INVARIANT  a run changes nothing that anybody sees: whoever commits its rows names its state in the same commit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tablestore_engine.api.pinned_versions import to_overrides
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.spark.retractions import Retractions, prove_retractions
from tablestore_engine.spark.spark_settings import OutputMode
from tablestore_engine.spark.stateful_query import StatefulQuery, name_query, show_rows
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.warehouse.remembered_columns import (
    check_columns,
    columns_of,
    read_columns,
    write_columns,
)
from tablestore_engine.warehouse.streaming_state_files import StreamingStateFiles
from tablestore_engine.warehouse.warehouse import Warehouse

Running = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class StatefulRun:
    """`select`: SQL of the rows, as long as the run is open; `state`: for the commit of them. `late`: groups
    of rows that came behind the watermark and count no more (of a join or DISTINCT: rows).
    """

    select: str
    state: str
    late: int
    state_rows: int
    state_bytes: int


class StatefulStreams:
    """`running`: while the thread works, so that it can be stopped; `check` raises where it was. `seen`: see
    Overrides.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        running: Running,
        check: Callable[[], None],
        seen: SeenStates | None = None,
    ) -> None:
        self._warehouse, self._running, self._check, self._seen = warehouse, running, check, seen

    def choose_mode(
        self,
        sql: str,
        streams: Collection[str],
        *,
        wanted: Sequence[OutputMode],
        key: Sequence[str],
        versions: Mapping[str, TableVersion],
    ) -> OutputMode:
        """The first of `wanted` in which Spark can run the query, and rows put by `key` are right.

        Raises Unsupported TS1454 with the sentence.
        """
        refusals: list[str] = []
        try:
            with self._running(), self._query(sql, streams, versions) as query:
                for mode in wanted:
                    refusal = query.refusal(mode, key)
                    if refusal is None:
                        return mode
                    refusals.append(refusal)
        except FixRequest as error:  # read as tables, the query is right
            refusals.append(error.why)
        raise Unsupported(
            "TS1454",
            f"Spark cannot stream the query ({wanted[0].value} mode)",
            why=refusals[0],
            fix="leave that out, or read the table itself instead of its stream",
        )

    def retractions(
        self,
        sql: str,
        streams: Mapping[str, Sequence[str]],
        *,
        key: Sequence[str],
        versions: Mapping[str, TableVersion],
    ) -> Retractions:
        """How retractions of `streams` (name in `sql` → primary key of the table) become deletes by `key`, where the
        result has `_row_kind` and `_snapshot_id`. The query is analyzed, not run.
        """
        named = {Identifier.parse(name): tuple(keys) for name, keys in streams.items()}
        overrides, resolver = to_overrides(versions, seen=self._seen), self._warehouse.resolver
        with resolver.in_use():
            return prove_retractions(
                # not pinned_query: where files are left out, the current time is a literal of the plan
                lambda text: resolver.whole_query(text, overrides),
                sql,
                key,
                {(one.database, one.name): keys for one, keys in named.items()},
            )

    @contextmanager
    def run(
        self,
        table: str,
        sql: str,
        streams: Collection[str],
        *,
        mode: OutputMode,
        state: str | None,
        key: Sequence[str],
        versions: Mapping[str, TableVersion],
    ) -> Iterator[StatefulRun]:
        """Over what `versions` say of the `streams`. `state`: of the run before, None: from nothing; `key`: of each,
        the rows of the newest batch count. Raises FixRequest TS1455, TS1456, TS1457.
        """
        identifier = Identifier.parse(table)
        states = StreamingStateFiles(self._warehouse.catalog, identifier)
        folder = self._warehouse.session.scratch() / "queries" / self._warehouse.catalog.runtime.new_uuid()
        checkpoint, rows = folder / "checkpoint", folder / "rows"
        try:
            checkpoint.mkdir(parents=True)
            states.clean(states.named_by(self._warehouse.stores.find(identifier)))
            if state is not None:
                states.unpack(state, checkpoint)
                name_query(checkpoint, folder.name)
            with self._running(), self._query(sql, streams, versions) as query:
                columns = columns_of(query.meanings, query.streams)
                check_columns(read_columns(checkpoint), columns)
                done = query.run(mode, checkpoint, rows, self._check)
            write_columns(checkpoint, columns)
            name = states.pack(checkpoint)
            shutil.rmtree(checkpoint)
            with show_rows(self._warehouse.session.get(), folder.name, done, key) as select:
                yield StatefulRun(select, name, done.late, done.state_rows, done.state_bytes)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _query(
        self, sql: str, streams: Collection[str], versions: Mapping[str, TableVersion]
    ) -> Iterator[StatefulQuery]:
        names = [Identifier.parse(name) for name in streams]
        found = [(one.database, one.name) for one in names]
        query = StatefulQuery(self._warehouse.resolver, sql, found, to_overrides(versions, seen=self._seen))
        try:
            yield query
        finally:
            query.close()
