"""A log in memory behind the port of log/followed_log.py, beside a real table: its changes are sent, early or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import NotFound
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.followed_log import NO_SNAPSHOT, UNSAID, LogBoundary, Messages, Place
from tablestore_engine.log.log_formats import LogFormats
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope
from tablestore_engine.log.message_rows import decode_messages
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.read.key_lookup import find_rows
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.open_stream import NOW, StreamRequest, open_stream
from tablestore_engine.stream.startup_mode import parse_request
from tablestore_engine.stream.table_stream import Pace, TableStream

Sent = tuple[bytes | None, bytes | None, int, int]  # key, value, kind, snapshot


@dataclass
class MemoryLog:
    """Of one store. `parts[p][offset]`: a message, or None for what is never shown (control records, aborted rows)."""

    store: TableStore
    is_eventual: bool = False
    mode: ChangelogMode = ChangelogMode.UPSERT
    partitions: int = 1
    log_id: str = "log-1"
    parts: dict[int, list[Sent | None]] = field(default_factory=dict)
    lows: dict[int, int] = field(default_factory=dict)
    known: list[LogBoundary] = field(default_factory=list)
    reads: int = 0
    closed: int = 0

    def __post_init__(self) -> None:
        self.parts = {partition: [] for partition in range(self.partitions)}
        self.begin(0)

    # writers --------------------------------------------------------------------------------------

    def begin(self, snapshot_id: int) -> None:
        """The log begins (anew) behind a snapshot."""
        self.known.append(LogBoundary(snapshot_id, self.ends(), begins=True))

    @property
    def reached(self) -> int:
        """The newest snapshot that it has."""
        return self.known[-1].snapshot_id

    def publish(self, *, has_rows: bool = True, is_exact: bool = True) -> None:
        """Everything pending; `has_rows` False: it was all sent early, and stays."""
        latest = self.store.snapshots.find_latest_id() or 0
        for number in range(self.reached + 1, latest + 1):
            snapshot = self.store.snapshots.get(number)
            if not ChangelogReader(self.store.context).has_changes(snapshot):
                continue
            schema = self.store.context.schemas.get(snapshot.schema_id)
            for batch in ChangelogReader(self.store.context).read(snapshot) if has_rows else ():
                self.send(batch.rows, schema, batch.bucket, number)
            if has_rows:
                self.control()
            self.known.append(LogBoundary(number, self.ends(), is_exact=is_exact, schema_id=schema.id))

    def send(self, rows: pa.Table, schema: TableSchema, bucket: int = 0, snapshot: int = 0) -> None:
        """Rows with `_ROW_KIND`."""
        encoded = encode_rows(rows, plan_envelope(schema, self.mode))
        keys: Sequence[bytes | None] = encoded.keys or [None] * len(encoded)
        for key, value, kind in zip(keys, encoded.values, encoded.kinds, strict=True):
            self.parts[max(bucket, 0)].append((key, value, kind, snapshot))

    def repair(self, keys: pa.Table, bucket: int) -> None:
        """What the table says of these keys now, as the publisher sends it after unconfirmed records."""
        snapshot, schema = self.store.latest(), self.store.schema
        assert snapshot is not None
        found = find_rows(self.store.fileio, self.store.plan_scan(snapshot), keys)
        there = set(found.column("id").to_pylist())
        gone = [one for one in dict.fromkeys(keys.column("id").to_pylist()) if one not in there]
        nothing = pa.Table.from_pylist([{"id": one} for one in gone], schema=_nullable(found.schema))
        for rows, kind in ((found, RowKind.UPDATE_AFTER), (nothing, RowKind.DELETE)):
            kinds = pa.array(np.full(rows.num_rows, int(kind), np.int8))
            self.send(rows.append_column(ROW_KIND_COLUMN, kinds), schema, bucket, snapshot.id)

    def control(self) -> None:
        """A record in each partition that no reader gets."""
        for messages in self.parts.values():
            messages.append(None)

    def forget(self, partition: int, before: int) -> None:
        """What retention does."""
        self.lows[partition] = before

    # as FollowedLog -------------------------------------------------------------------------------

    @property
    def is_upsert(self) -> bool:
        """As FollowedLog."""
        return self.mode is ChangelogMode.UPSERT

    def boundaries(self) -> Sequence[LogBoundary]:
        """As FollowedLog."""
        return tuple(self.known)

    def ends(self) -> Place:
        """As FollowedLog."""
        return {partition: len(messages) for partition, messages in self.parts.items()}

    def beginnings(self) -> Place:
        """As FollowedLog."""
        return dict(self.lows)

    def check_there(self, place: Place) -> None:
        """As FollowedLog."""
        for partition, offset in place.items():
            if offset < self.lows.get(partition, 0):
                raise NotFound("TS1358", "gone", why="-", fix="-")

    def read(self, start: Place, until: Place, rows_max: int, *, with_headers: bool = True) -> Messages:
        """As FollowedLog; the largest partition first, so that nobody relies on an order of partitions."""
        self.reads += 1
        self.check_there(start)
        found: list[tuple[int, int, Sent]] = []
        reached = dict(start)
        for partition, end in sorted(until.items(), reverse=True):
            for offset in range(start.get(partition, 0), end):
                if len(found) >= rows_max:
                    break
                message = self.parts[partition][offset]
                if message is not None:
                    found.append((partition, offset, message))
                reached[partition] = offset + 1
        columns = list(zip(*(message for _, _, message in found), strict=True)) or [(), (), (), ()]
        if not with_headers:
            columns[2], columns[3] = (UNSAID,) * len(found), (NO_SNAPSHOT,) * len(found)
        return Messages(
            np.array([one for one, _, _ in found], np.int64),
            np.array([one for _, one, _ in found], np.int64),
            list(columns[0]),
            list(columns[1]),
            np.array(columns[2], np.int8),
            np.array(columns[3], np.int64),
            reached,
        )

    def decode(self, messages: Messages, schemas: Sequence[TableSchema]) -> pa.Table:
        """As FollowedLog."""
        return decode_messages(messages, schemas, LogFormats())

    def close(self) -> None:
        """As FollowedLog."""
        self.closed += 1


def log_reader(log: MemoryLog, mode: str | None = None, **words: object) -> TableStream:
    """Over the log to what it has now, if not said otherwise; words of the mode and of StreamRequest."""
    at = {key: words.pop(key) for key in ("snapshot_id", "timestamp_ms") if key in words}
    start = parse_request(mode, **at) if mode is not None or at else None  # type: ignore[arg-type]
    words.setdefault("until", NOW)
    words.setdefault("read_mode", None if "position" in words else "log")
    if "wait" in words:
        words["pace"] = Pace(0.0, wait=words.pop("wait"))  # type: ignore[arg-type]
    request = StreamRequest(start=start, **words)  # type: ignore[arg-type]
    return open_stream(log.store.context, request, lambda: log)


def keys_of(numbers: Iterable[int]) -> pa.Table:
    """Of column id."""
    return pa.table({"id": pa.array(list(numbers), pa.int64())})


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([one.with_nullable(True) for one in schema])
