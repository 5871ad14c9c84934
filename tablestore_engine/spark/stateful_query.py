"""A query that remembers rows of earlier ranges, run over the next range of each stream by Spark's own streaming.

CHANGE     how Spark runs a stateful query
Steps      a clock of Spark's that gives one row in a run, joined with the range as it is read natively: a streaming
           relation of just these rows → the model's SQL over views of these → all there is, then end → a folder of
           parquet for each batch
INVARIANT  everything that the next run needs is in the checkpoint's folder, and nothing in it says where it lies: a
           run is repeated by a copy of the folder before it, over the same ranges.
DANGER     Spark optimizes a run by what it knows of its rows, and has remembered others: columns are opaque to it.
INVARIANT  it has a session of its own over the common catalog: views and settings of it are nobody else's.
WHY        a source of Spark would remember by itself how far it is, apart from the table; the clock only counts.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - pyspark's own usage
from pyspark.sql.streaming.query import StreamingQuery

from tablestore_engine.catalog.resolved_names import Meaning, Overrides, stored_texts
from tablestore_engine.errors import FixRequest
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.group_keys import find_loose_key
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.session import leave_session
from tablestore_engine.spark.spark_settings import OutputMode
from tablestore_engine.spark.state_stores import merge_stores
from tablestore_engine.spark.stream_outline import find_stale
from tablestore_engine.spark.stream_watermarks import StreamWatermarks
from tablestore_engine.spark.streaming_nodes import find_unstreamable
from tablestore_engine.spark.worker_check import is_cluster
from tablestore_engine.sql.renamed_tables import StandIn, rename_tables
from tablestore_engine.sql.scanner import quote_name

_CHECKER = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker$"
_MODES = "org.apache.spark.sql.streaming.OutputMode"
_SETTINGS = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.FoldablePropagation",
}
# executors merge their stores only while a query runs, and let them go only then: a run takes seconds, not a minute
_CLUSTER_SETTINGS = {"spark.sql.streaming.stateStore.maintenanceInterval": "2s"}
_POLL_SECONDS = 0.2
_FOREIGN_STATE = ("STATE_STORE", "STATEFUL_OPERATOR", "STREAM_CHECKPOINT", "STREAMING_STATE")
_BATCH, _NEWEST, _TICK = "__tablestore_batch", "__tablestore_newest", "__tablestore_tick"
_VIEW = "__tablestore_stream"
Name = tuple[str, str]


@dataclass(frozen=True)
class RangeRun:
    """`folders`: of batches with rows, in their order; one at least.

    `late`: behind the watermark. Spark counts there where it would change what it remembers: rows of one group are one
    by then.
    """

    folders: tuple[str, ...]
    late: int
    state_rows: int
    state_bytes: int


class StatefulQuery:
    """One query; `streams`: (database, name) as the text has them, which `overrides` put on a range."""

    def __init__(self, resolver: Resolver, text: str, streams: Sequence[Name], overrides: Overrides) -> None:
        self._resolver, self._overrides = resolver, overrides
        self._session = _own_session(resolver.session)
        self.streams = tuple(streams)
        self._views = _stand_ins(streams)
        self.meanings: dict[Name, Meaning | None] = {}  # of the streams, and of what views among them read
        for stream, one in self._views.items():
            self.meanings |= self._follow(stream, one.view)
        names = {(database.lower(), name.lower()): one for (database, name), one in self._views.items()}
        self._frame, found = resolver.query_in(self._session, rename_tables(text, names), overrides)
        self._texts = (text, *stored_texts({**self.meanings, **found}))

    def refusal(self, mode: OutputMode, key: Sequence[str]) -> str | None:
        """A sentence; None: Spark can run it, and rows put by `key` are right. Nothing is started."""
        stale = find_stale(self._frame) if mode is OutputMode.UPDATE else None
        if stale is not None:
            return f"{stale}: a row that it gives no more would stay in the table"
        jvm: Any = self._session._jvm
        try:
            modes = getattr(jvm, _MODES)
            wanted = modes.Update() if mode is OutputMode.UPDATE else modes.Append()
            plan = self._frame._jdf.queryExecution().analyzed()
            getattr(getattr(jvm, _CHECKER), "MODULE$").checkForStreaming(plan, wanted)
        except (PySparkException, Py4JError) as error:
            return spark_errors.translate(error).why
        unstreamable = find_unstreamable(self._frame)
        if unstreamable is not None:
            return f"{unstreamable} is not supported over a stream"
        return find_loose_key(self._frame, self._texts, key) if key else None

    def run(self, mode: OutputMode, checkpoint: Path, rows: Path, check: Callable[[], None]) -> RangeRun:
        """`checkpoint` as the run before left it, or empty; `rows`: a new folder. `check` raises to end it."""
        client: Any = self._session.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
        connections: list[Any] = []
        watermarks = StreamWatermarks(self._session, self._frame, checkpoint)

        def write(batch: DataFrame, number: int) -> None:
            if hasattr(client, "get_thread_connection"):  # a connection for each thread of the JVM
                connections.append(client.get_thread_connection())
            watermarks.carry()
            batch.write.parquet(str(rows / str(number)))

        try:
            ready = self._resolver.prepared(self._frame, self._session)
            writer = ready.writeStream.outputMode(mode.value).foreachBatch(write)
            query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
            try:
                while not query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]  # a part of a second is fine
                    check()
            finally:
                query.stop()
                merge_stores(self._session, checkpoint, str(query.runId))
                with suppress(Py4JError):  # a query has a session of its own again
                    leave_session(query._jsq.streamingQuery().sparkSessionForStream())
                for one in connections:
                    _hang_up(one)
            watermarks.keep(query._jsq)
        except (PySparkException, Py4JError) as error:
            raise _explained(error) from None
        return _run_of(query, rows)

    def close(self) -> None:
        """Its views go, and its session."""
        for one in self._views.values():
            self._session.catalog.dropTempView(one.view)
        leave_session(self._session._jsparkSession)
        common = self._resolver.session
        SparkSession(
            common.sparkContext, common._jsparkSession
        )  # whose making makes RDD.toDF the common one's again

    def _follow(self, stream: Name, view: str) -> Mapping[Name, Meaning | None]:
        """A view of the range that streams; what the stream's name means."""
        name = f"{quote_name(stream[0])}.{quote_name(stream[1])}"
        found, meanings = self._resolver.query_in(self._session, f"select * from {name}", self._overrides)
        clock = self._session.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
        tick = F.broadcast(clock.select(F.col("value").alias(_TICK)))
        columns = [_opaque(name).alias(name) for name in found.columns]
        tick.crossJoin(found).select(*columns).createOrReplaceTempView(view)
        return meanings


def _hang_up(connection: Any) -> None:  # noqa: ANN401 - py4j's
    """Of the query's own thread, which has ended: py4j would keep it, and a thread that listens, for ever.

    DANGER: its close() waits for that thread, which waits for the JVM. An end of the line lets it go by itself.
    """
    if connection is not None and connection.socket is not None:
        with suppress(OSError):
            connection.socket.shutdown(socket.SHUT_RDWR)
        with connection.python_server.lock:
            connection.python_server.connections.discard(connection)


def _opaque(name: str) -> Column:
    """The column, as Spark's optimizer cannot look into it: what it knows of these rows (none at all, all of one
    snapshot) it would ask of the rows of the other side of a join as well, and they would never be remembered.
    """
    return F.when(F.col(_TICK) < 0, F.raise_error("a clock goes backward")).otherwise(F.col(quote_name(name)))


def _own_session(session: SparkSession) -> SparkSession:
    """With the settings, functions and views of `session` as they are now."""
    own = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    more = _CLUSTER_SETTINGS if is_cluster(session.sparkContext) else {}
    for key, value in (_SETTINGS | more).items():
        own.conf.set(key, value)
    return own


def _stand_ins(streams: Sequence[Name]) -> dict[Name, StandIn]:
    """Views that no text names. Columns may be written with the table's name, as far as no two streams have it."""
    names = [name.lower() for _, name in streams]
    return {
        (database, name): StandIn(
            f"{_VIEW}_{number}", name if names.count(name.lower()) == 1 else f"{database}__{name}"
        )
        for number, (database, name) in enumerate(streams)
    }


def name_query(checkpoint: Path, name: str) -> None:
    """A query of its own, with what another remembered. `name`: a UUID.

    DANGER: Spark ends a query where another one of its id starts, without a word, in the middle of what it does: the
    run of a clone would end that of its source.
    """
    path = checkpoint / "metadata"
    if path.exists():
        (checkpoint / ".metadata.crc").unlink(missing_ok=True)
        path.write_text(json.dumps({"id": name}))


@contextmanager
def show_rows(session: SparkSession, name: str, run: RangeRun, key: Sequence[str]) -> Iterator[str]:
    """SQL that gives them, meanwhile; `name` is nobody else's."""
    frames = [
        session.read.parquet(folder).withColumn(_BATCH, F.lit(n)) for n, folder in enumerate(run.folders)
    ]
    frame = reduce(DataFrame.unionByName, frames)
    if key and len(frames) > 1:
        newest = F.max(_BATCH).over(Window.partitionBy(*[quote_name(one) for one in key]))
        frame = frame.withColumn(_NEWEST, newest).where(F.col(_NEWEST) == F.col(_BATCH)).drop(_NEWEST)
    view = f"tablestore_rows_{name.replace('-', '_')}"
    frame.drop(_BATCH).createOrReplaceTempView(view)
    try:
        yield f"select * from {view}"
    finally:
        session.catalog.dropTempView(view)


def _run_of(query: StreamingQuery, rows: Path) -> RangeRun:
    progress = [json.loads(str(one.json())) for one in query._jsq.recentProgress()]
    states = [one.get("stateOperators") or [] for one in progress]
    counts = {
        str(folder): sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
        for folder in sorted(rows.iterdir(), key=lambda one: int(one.name))
    }
    newest: Sequence[Mapping[str, Any]] = states[-1] if states else []
    return RangeRun(
        tuple(folder for folder, count in counts.items() if count) or tuple(counts)[:1],
        sum(int(one.get("numRowsDroppedByWatermark") or 0) for batch in states for one in batch),
        sum(int(one.get("numRowsTotal") or 0) for one in newest),
        sum(int(one.get("memoryUsedBytes") or 0) for one in newest),
    )


def _explained(error: PySparkException | Py4JError) -> Exception:
    found = spark_errors.translate(error)
    if not _is_foreign_state(error):
        return found
    return FixRequest(
        "TS1456",
        "the query cannot resume with its state",
        why=found.why,
        fix="a column or a key of it has changed, or the settings of its state: build the table again "
        "(a full refresh), or take the change back",
    )


def _is_foreign_state(error: PySparkException | Py4JError) -> bool:
    """Whether the state is of another query: a failed query names the condition of its cause in its text alone."""
    text = str(error)
    return any(word in text for word in _FOREIGN_STATE)
