"""Change events of a source into a table, batch by batch, each batch one commit with the position behind it.

Steps      position of the table → messages behind it → changes (message_decoder.py) → columns (target_columns.py) → the
           last row of each key → dead letters, if there are any → one commit
Table      of the source: the one that all messages were of is noted with the position, so that messages of another one
           are noticed in later runs too
Idle       messages from which no row follows move the position in memory; it is committed with the next rows, at the
           end, and once a minute
INVARIANT  no state but the table's own: who is killed anywhere goes on at the table's position.
Order      of a key's changes: that of its partition. A key in two partitions of one batch is an error (TS1428), since
           nothing says which change is the later one
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.errors import FixData, OutcomeUnknown, PublishPending, RetryError, Stopped
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.ingest.batch_checks import check_keys, check_names, no_target, one_table, unreadable
from tablestore_engine.ingest.change_event import TRUNCATE, MessageReader, ReadRules
from tablestore_engine.ingest.decoded_messages import DecodedMessages
from tablestore_engine.ingest.ingest_spec import IngestReport, IngestSpec, OnError, OnTruncate
from tablestore_engine.ingest.message_decoder import MessageDecoder, find_key
from tablestore_engine.ingest.table_sink import SinkBatch, SinkState, TableSink
from tablestore_engine.ingest.target_columns import Known, Shaped, plan_columns, shape_rows
from tablestore_engine.log.message_source import MessageSource, RawMessages, table_of, with_table
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.source_positions import PositionStep

REPEATED = "tombstones after their delete"


@dataclass
class TombstoneCount:
    """`_last`: partition → key of its last message so far, if that was a delete with a value."""

    _last: dict[int, bytes | None] = field(default_factory=dict)

    def take(self, raw: RawMessages, deletes: npt.NDArray[np.int64]) -> int:
        """How many messages are a tombstone directly after the delete of the same key, in the same partition.

        `deletes`: numbers of the messages of this batch that delete a row, tombstones among them.
        """
        with_value: set[int] = {number for number in deletes.tolist() if raw.values[number] is not None}
        count: int = sum(
            raw.keys[number] is not None and raw.keys[number] == self._key_before(raw, number, with_value)
            for number in deletes.tolist()
            if raw.values[number] is None
        )
        partitions, places = np.unique(raw.partitions[::-1], return_index=True)
        for partition, place in zip(partitions.tolist(), places.tolist(), strict=True):
            number = len(raw) - 1 - place
            self._last[partition] = raw.keys[number] if number in with_value else None
        return count

    def _key_before(self, raw: RawMessages, number: int, with_value: set[int]) -> bytes | None:
        """Key of the message before it in its partition, if that is a delete with a value."""
        partition = raw.partitions[number]
        for before in range(number - 1, -1, -1):
            if raw.partitions[before] == partition:
                return raw.keys[before] if before in with_value else None
        return self._last.get(int(partition))


_AT, _PART = "at", "part"  # beside key columns, which are numbered


def last_of_each_key(
    shaped: Shaped, key: tuple[str, ...], raw: RawMessages, *, is_one_line: bool, empties: bool
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Rows, and which of them are put. Raises FixData TS1428."""
    have = {one.lower() for one in key}
    names = [name for name in shaped.rows.column_names if name.lower() in have]
    frame = pl.from_arrow(shaped.rows.select(names).rename_columns([str(at) for at in range(len(names))]))
    assert isinstance(frame, pl.DataFrame)
    keys = frame.columns
    at = frame.with_columns(
        pl.int_range(pl.len()).alias(_AT), pl.Series(_PART, raw.partitions[shaped.numbers])
    )
    if not is_one_line:
        _check_partitions(at, names, lambda row: raw.place(int(shaped.numbers[row])))
    last = (
        at.unique(subset=keys, keep="last", maintain_order=True)[_AT].to_numpy()
        if keys
        else at[_AT].to_numpy()
    )
    if empties:
        last = last[shaped.is_put[last]]
    if len(last) == len(shaped.numbers):
        return shaped.rows, shaped.is_put
    return shaped.rows.take(pa.array(last)), shaped.is_put[last]


def _check_partitions(at: pl.DataFrame, names: list[str], place: Callable[[int], str]) -> None:
    keys = [one for one in at.columns if one not in (_AT, _PART)]
    per_part = at.unique(subset=[*keys, _PART], keep="first", maintain_order=True)
    twice = per_part.filter(per_part.select(keys).is_duplicated())
    if not twice.height:
        return
    same = [pl.col(one).eq_missing(pl.lit(twice[one][0], twice[one].dtype)) for one in keys]
    first, other = (place(one) for one in twice.filter(pl.all_horizontal(same))[_AT].to_list()[:2])
    shown = ", ".join(f"{name}={twice[one][0]!r}" for name, one in zip(names, keys, strict=True))
    raise FixData(
        "TS1428",
        f"key {shown} has changes in two partitions",
        why=f"at {first} and at {other}; nothing says which is the later one",
        fix="let the source write a key into one partition always (by its primary key), or a topic of one partition",
    )


_IDLE_MS = 60_000
_SAY_MS = 10_000
_LEAST_S = 0.01
_LOOK_S = 0.5  # how long nothing may come before it is looked where we are
_BACKOFF_S, _BACKOFF_MAX_S = 0.5, 30.0
Say = Callable[[str], None]


@dataclass
class IngestRun:
    """`open_source`: makes the source anew, with the reader of its messages."""

    spec: IngestSpec
    target: TableSink
    open_source: Callable[[], tuple[MessageSource, MessageReader]]
    runtime: Runtime
    say: Say
    report: IngestReport = field(init=False)

    def __post_init__(self) -> None:
        self.report = IngestReport(self.spec.into, self.spec.topic or self.spec.path or "")

    def run(self, stop: threading.Event) -> IngestReport:
        """Everything up to now, or up to the batch in which `stop` was set, which the report says.

        Raises what its parts raise; what is committed stays.
        """
        source, reader = self.open_source()
        try:
            at = _IngestPlace(self, source, reader)
            end = source.ends()
            with ThreadPoolExecutor(1, "ingest-read") as ahead:
                self._to_end(at, source, end, ahead, stop)
            at.settle()
            self.report.is_complete = source.is_at(at.position, end)
        finally:
            source.close()
        return self.report

    def _to_end(
        self,
        at: _IngestPlace,
        source: MessageSource,
        end: str,
        ahead: ThreadPoolExecutor,
        stop: threading.Event,
    ) -> None:
        """The next batch is read while one is written."""

        def read_on(position: str) -> Future[RawMessages] | None:
            if stop.is_set() or source.is_at(position, end):
                return None
            return ahead.submit(source.read, position, self.spec.rows_max, self.spec.bytes_max, _LOOK_S)

        following = read_on(at.position)
        while following is not None:
            raw = following.result()
            following = read_on(raw.reached)
            at.take(raw)

    def follow(self, stop: threading.Event) -> IngestReport:
        """Until `stop` is set; what passes by itself is tried again, later each time."""
        pause = _BACKOFF_S
        while not stop.is_set():
            before = self.report.commits
            try:
                self._follow_once(stop)
            except Stopped:
                raise
            except (RetryError, PublishPending, OutcomeUnknown) as error:
                # each try begins at the position that the table has, so an unknown commit is not made twice
                pause = _BACKOFF_S if self.report.commits > before else min(2 * pause, _BACKOFF_MAX_S)
                self.report.restarts += 1
                self.say(f"{self.spec.into}: {error.what}: {error.why}; again in {pause:.1f} s")
                stop.wait(pause)
        return self.report

    def _follow_once(self, stop: threading.Event) -> None:
        source, reader = self.open_source()
        try:
            at = _IngestPlace(self, source, reader)
            while not stop.is_set():
                self._interval(at, source, stop)
            at.settle()
        finally:
            source.close()

    def _interval(self, at: _IngestPlace, source: MessageSource, stop: threading.Event) -> None:
        """One commit at most, and a pause for the rest of the interval; none where messages are waiting already."""
        begin = self.runtime.now_ms()
        wait_s = min(self.spec.interval_s, _LOOK_S)
        most_s = max(self.spec.interval_s, _LOOK_S)  # a topic that never pauses would fill rows_max first
        raw = source.read(at.position, self.spec.rows_max, self.spec.bytes_max, wait_s, most_s)
        at.take(raw)
        size = sum(len(value) for value in raw.values if value is not None)
        if len(raw) < self.spec.rows_max and size < self.spec.bytes_max:
            left = self.spec.interval_s - (self.runtime.now_ms() - begin) / 1000
            stop.wait(max(left, _LEAST_S))


class _IngestPlace:
    """Where a run is in one source: `committed` by the table, `position` in memory, which may be further."""

    def __init__(self, run: IngestRun, source: MessageSource, reader: MessageReader) -> None:
        self._run, self._source, self._reader = run, source, reader
        state = run.target.look(source.source_id)
        self._committed = run.report.position = state.position
        if state.position is not None:
            source.check(state.position)
        self.position = state.position or source.begin()
        self._table = table_of(state.position)
        self._tombstones = TombstoneCount()
        self._settled_ms = self._said_ms = run.runtime.now_ms()

    def take(self, raw: RawMessages) -> None:
        """A batch: one commit, if rows follow from it. Raises FixData TS1421, TS1423, TS1427-TS1429, FixRequest
        TS1420, TS1422.
        """
        spec, report, pending = self._run.spec, self._run.report, None
        if len(raw):
            state = self._run.target.look(self._source.source_id)
            if state.position != self._committed:
                raise self._overtaken(state)
            batch, changes = self._batch(raw, state)
            if batch is not None:
                pending = self._commit(state, batch)
            report.messages += len(raw)
            report.dead += len(changes.dead)
            report.ignored += changes.ignored
            report.truncates += len(changes.truncates)
            report.upserts += sum(int(part.is_put.sum()) for part in changes.parts)
            deletes = [part.numbers[~part.is_put] for part in changes.parts]
            repeated = self._tombstones.take(raw, np.concatenate([np.empty(0, np.int64), *deletes]))
            report.deletes += sum(map(len, deletes)) - repeated
            report.ignored[REPEATED] += repeated
        self.position = raw.reached
        if pending is not None:
            raise pending
        now = self._run.runtime.now_ms()
        if now - self._settled_ms > _IDLE_MS:
            self.settle()
        if now - self._said_ms > _SAY_MS:
            self._said_ms = now
            self._run.say(f"{spec.into}: {report.summary()}")

    def settle(self) -> None:
        """The position alone, where it is further than the table says."""
        self._settled_ms = self._run.runtime.now_ms()
        state, reached = self._run.target.look(self._source.source_id), with_table(self.position, self._table)
        if state.schema is None or reached == self._committed:
            return
        if state.position != self._committed:
            raise self._overtaken(state)
        fields = state.fields
        empty = pa.table(
            [pa.nulls(0, type_to_arrow(one.type)) for one in fields], [one.name for one in fields]
        )
        step = PositionStep(self._committed, reached)
        pending = self._commit(state, SinkBatch(fields, state.key, empty, np.empty(0, bool), step))
        if pending is not None:
            raise pending

    def _commit(self, state: SinkState, batch: SinkBatch) -> PublishPending | None:
        """What is committed, also where only its log is behind: then that is the answer."""
        report = self._run.report
        pending: PublishPending | None = None
        try:
            done = self._run.target.commit(self._source.source_id, state, batch)
        except PublishPending as error:
            done, pending = error.facts["report"], error  # type: ignore[assignment]  # a WriteReport
        report.commits += 1
        report.snapshot_id, report.position = done.snapshot_id, batch.step.after
        self._committed, self._settled_ms = batch.step.after, self._run.runtime.now_ms()
        return pending

    def _overtaken(self, state: SinkState) -> RetryError:
        return RetryError(
            "TS1437",
            f"another run has moved {self._run.spec.into} on in {self._source.title}",
            why=f"this one is at {self._committed or 'nothing'}, the table is at {state.position or 'nothing'}",
            fix="run one of them; nothing came twice",
        )

    # a batch -------------------------------------------------------------------------------------

    def _batch(self, raw: RawMessages, state: SinkState) -> tuple[SinkBatch | None, DecodedMessages]:
        spec = self._run.spec
        said = {name.lower(): kind for name, kind in spec.types.items()}
        fields = state.fields or [DataField(0, name, kind) for name, kind in spec.types.items()]
        known = Known(fields, said, spec.on_schema_change, spec.into, is_new=state.schema is None)
        rules = ReadRules(
            source_table=spec.source_table, decimals=spec.decimals, infer=spec.infer, types=known.types
        )
        key = state.key or spec.key or find_key(raw, self._reader, rules)
        rules = replace(rules, key=key, finds_keys=not spec.key)
        changes = MessageDecoder(self._reader, rules).decode(raw)
        self._table = one_table(spec, self._source.title, self._table, changes, raw)
        check_keys(spec, key, changes, raw)
        empties = self._empties(changes, raw, is_new=state.schema is None)
        columns = plan_columns(changes, known, raw.place)
        check_names(columns, changes)
        if not key and any(len(part.numbers) for part in changes.parts):
            raise no_target(
                spec.into, "it is still to be made, and neither the messages nor the call name its key"
            )
        shaped = shape_rows(changes.parts, columns, key, state.required)
        self._dead(changes, shaped, raw)
        if not len(shaped.numbers) and (not empties or state.schema is None):
            return None, changes
        is_one_line = self._source.is_one_line()
        rows, is_put = last_of_each_key(shaped, key, raw, is_one_line=is_one_line, empties=empties)
        step = PositionStep(self._committed, with_table(raw.reached, self._table))
        return SinkBatch(columns, _spelled(key, columns), rows, is_put, step, empties), changes

    def _dead(self, changes: DecodedMessages, shaped: Shaped, raw: RawMessages) -> None:
        """Messages that cannot be read: an error, or letters, committed before anything else."""
        dead = {one.number: one for one in (*shaped.dead, *changes.dead)}
        if not dead:
            return
        gone = np.array(list(dead), dtype=np.int64)
        changes.dead = [dead[number] for number in sorted(dead)]
        changes.parts = [part.without(gone) for part in changes.parts]
        if self._run.spec.on_error is OnError.FAIL:
            raise unreadable(self._run.spec, self._source.title, changes.dead, raw)
        self._run.target.commit_dead_letters(self._source, raw, changes.dead)

    def _empties(self, changes: DecodedMessages, raw: RawMessages, *, is_new: bool) -> bool:
        """Whether the table is emptied; then what lies before in the batch is gone. Raises FixData TS1429.

        A truncate before the first row of all empties nothing.
        """
        if not changes.truncates:
            return False
        rule, last = self._run.spec.on_truncate, max(changes.truncates)
        if rule is OnTruncate.IGNORE:
            changes.ignored[TRUNCATE] += len(changes.truncates)
            changes.truncates = []
            return False
        is_one_line = self._source.is_one_line()
        if is_new and is_one_line and not any((part.numbers < last).any() for part in changes.parts):
            return False
        if rule is OnTruncate.FAIL or not is_one_line:
            why = (
                "on_truncate='fail'"
                if is_one_line
                else "its messages are in several partitions, which have no order"
            )
            raise FixData(
                "TS1429",
                f"the source's table was emptied (truncate), at {raw.place(changes.truncates[0])}",
                why=f"{why}; nothing of this batch was committed",
                fix="on_truncate='apply' empties the table too (a topic of one partition), 'ignore' keeps its rows",
            )
        changes.parts = [part.without(part.numbers[part.numbers < last]) for part in changes.parts]
        return True


def _spelled(key: tuple[str, ...], columns: Sequence[DataField]) -> tuple[str, ...]:
    """The key's columns as the table writes them."""
    have = {one.name.lower(): one.name for one in columns}
    return tuple(have.get(name.lower(), name) for name in key)
