"""Rows of a DataFrame as exact Python values, and jobs that can be cancelled.

INVARIANT  Ctrl-C ends the wait for rows. pyspark's toArrow waits for the end of its query whatever ends its reading, so
           an interrupt of the main thread cancels its jobs until the call has ended (collect_arrow).
INVARIANT  decimals, 64-bit integers and microseconds arrive unchanged; TIMESTAMP has its zone, TIMESTAMP_NTZ none.
INVARIANT  dates and timestamps beyond Python's years are text (format/row_values.py).
WHY        DataFrame.collect() gives TIMESTAMP in the zone of the driver's machine, without saying so.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import tzinfo
from itertools import repeat
from types import FrameType
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from tablestore_engine.format.row_values import row_values
from tablestore_engine.runtime.moments import read_zone
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.arrow_frame import known_rows

_CANCEL_SECONDS = 0.2
_ARROW_SAFE = (
    st.StringType, st.BooleanType, st.NumericType, st.DateType, st.TimestampType, st.TimestampNTZType, st.BinaryType,
    st.NullType,
)  # fmt: skip


@dataclass(frozen=True)
class Fetched:
    """All rows of a statement."""

    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()


def fetch(frame: DataFrame, limit: int | None = None) -> Fetched:
    """Run the query and bring its rows; raises TablestoreError."""
    try:
        schema = frame.schema
        columns = tuple((field.name, field.dataType.simpleString()) for field in schema.fields)
        limited = frame if limit is None else frame.limit(limit)
        is_plain = schema.fields and all(_through_arrow(field.dataType) for field in schema.fields)
        if is_plain:
            has_zone = any(isinstance(field.dataType, st.TimestampType) for field in schema.fields)
            known = None if has_zone else known_rows(limited)
            if known is None and not (has_zone and _is_known(limited)):
                known = collect_arrow(limited)
            if known is not None:
                return Fetched(columns, value_rows(known.columns))
        return Fetched(columns, _nested_rows(limited))
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None


def collect_arrow(frame: DataFrame) -> pa.Table:
    """`frame.toArrow()`; Ctrl-C and SIGTERM raise what their handlers raise, once the query is cancelled."""
    with _cancelled_by_signals(frame.sparkSession) as interrupts:
        try:
            return _variant_rows(frame) if _has_variant(frame.schema) else frame.toArrow()
        except (PySparkException, Py4JError):
            if interrupts:
                raise interrupts[0] from None
            raise


def _variant_rows(frame: DataFrame) -> pa.Table:
    """As toArrow, whose cast to the frame's schema Arrow refuses where a VARIANT is NULL (pyspark 4.3)."""
    inner: Any = frame
    rows = pa.Table.from_batches(inner._collect_as_arrow(empty_list_if_zero_records=False))
    for at, field in enumerate(frame.schema.fields):
        if isinstance(field.dataType, st.TimestampType):  # they have the session's zone
            rows = rows.set_column(at, rows.field(at).name, rows.column(at).cast(pa.timestamp("us", "UTC")))
    return rows


def _has_variant(type_: st.DataType) -> bool:
    """The type or one inside it."""
    if isinstance(type_, st.StructType):
        return any(_has_variant(field.dataType) for field in type_.fields)
    if isinstance(type_, st.ArrayType):
        return _has_variant(type_.elementType)
    if isinstance(type_, st.MapType):
        return _has_variant(type_.keyType) or _has_variant(type_.valueType)
    return isinstance(type_, st.VariantType)


@contextmanager
def _cancelled_by_signals(session: SparkSession) -> Iterator[list[KeyboardInterrupt]]:
    """What handlers raised inside, in the main thread. A handler that raises nothing cancels nothing."""
    interrupts: list[KeyboardInterrupt] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    tags, ended = session.sparkContext.getJobTags(), threading.Event()
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def answer(number: int, at: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        assert callable(handler)
        try:
            handler(number, at)
        except KeyboardInterrupt as interrupt:
            if not interrupts:
                threading.Thread(target=_cancel_until, args=(session, tags, ended), daemon=True).start()
            interrupts.append(interrupt)
            raise

    for one, handler in before.items():
        if callable(handler):
            signal.signal(one, answer)
    try:
        yield interrupts
    finally:
        ended.set()
        for one, handler in before.items():
            if signal.getsignal(one) is answer:
                signal.signal(one, handler)


def _cancel_until(session: SparkSession, tags: set[str], ended: threading.Event) -> None:
    """A job may start after the first time."""
    while True:
        for tag in tags:
            cancel(session, tag)
        if ended.wait(_CANCEL_SECONDS):
            return


def _nested_rows(frame: DataFrame) -> tuple[tuple[object, ...], ...]:
    """Rows in pyspark's own forms, Row and dict."""
    zone = read_zone(str(frame.sparkSession.conf.get("spark.sql.session.timeZone", "UTC")))
    types = [field.dataType for field in frame.schema.fields]
    try:
        rows: Sequence[Sequence[object]] = frame.collect()
    except (OverflowError, ValueError):  # a date or timestamp that Python's types do not have
        rows = value_rows(collect_arrow(frame).columns)
    return tuple(tuple(map(_with_zone, row, types, repeat(zone))) for row in rows)


def _is_known(frame: DataFrame) -> bool:
    """Whether optimizing the query gives its rows: collect() then starts no job, toArrow always does."""
    return str(frame._jdf.queryExecution().optimizedPlan().nodeName()) == "LocalRelation"


def _through_arrow(type_: st.DataType) -> bool:
    """Plain values only: pyspark's own Row and dict forms are kept for nested ones."""
    return isinstance(type_, _ARROW_SAFE)


def _with_zone(value: Any, type_: st.DataType, zone: tzinfo) -> Any:  # noqa: ANN401 - values of any type
    """The value with the session's zone at each TIMESTAMP; collect() leaves them in the machine's zone, unsaid."""
    if value is None:
        return None
    if isinstance(type_, st.TimestampType):
        return value if isinstance(value, str) else value.astimezone(zone)
    if isinstance(type_, st.ArrayType):
        return [_with_zone(item, type_.elementType, zone) for item in value]
    if isinstance(type_, st.MapType):
        pairs = value.items() if isinstance(value, dict) else value
        return {_with_zone(k, type_.keyType, zone): _with_zone(v, type_.valueType, zone) for k, v in pairs}
    if isinstance(type_, st.StructType):
        inner = [field.dataType for field in type_.fields]
        items = value.values() if isinstance(value, dict) else value
        return st.Row(*type_.names)(*map(_with_zone, items, inner, repeat(zone)))
    return value


def value_rows(columns: Sequence[pa.ChunkedArray]) -> tuple[tuple[object, ...], ...]:
    """The rows of columns in the Arrow types of Spark's."""
    return tuple(zip(*map(row_values, columns), strict=True))


@contextmanager
def job_tag(session: SparkSession, tag: str) -> Iterator[None]:
    """Jobs that this thread starts inside carry `tag` (no commas); inside itself it changes nothing."""
    context = session.sparkContext
    if tag in context.getJobTags():
        yield
        return
    context.addJobTag(tag)
    try:
        yield
    finally:
        with suppress(Py4JError):  # its connection was closed, and with it the JVM's thread that had the tag
            context.removeJobTag(tag)


def cancel(session: SparkSession, tag: str) -> None:
    """Stop the jobs with this tag; their statements end in TS1507."""
    with suppress(Py4JError):  # the JVM has ended
        session.sparkContext.cancelJobsWithTag(tag)
