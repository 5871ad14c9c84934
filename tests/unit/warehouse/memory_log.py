"""A log in memory: a second system behind the port of log/sink.py, with which a warehouse is tested without brokers."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tablestore_engine.errors import FixData, RetryError
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.changes import ReadChanges, ReadState
from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.sink import (
    FindCommit,
    LoggedTable,
    LogPosition,
    LogRemains,
    LogState,
    LogWriter,
    PrepublishedCommit,
    SentChanges,
)

MADE = "tablestore.managed-topic"  # an option that may be kept in a schema; the place says which table it is


@dataclass
class MemoryLog:
    """(snapshot, commit) of all that was sent, and the messages that readers see."""

    sent: list[tuple[int, str]] = field(default_factory=list)
    messages: list[LogMessage] = field(default_factory=list)
    begins_behind: int = 0

    @property
    def reached(self) -> int:
        """The newest snapshot."""
        return self.sent[-1][0] if self.sent else self.begins_behind


@dataclass(frozen=True)
class RowsUpTo:
    """Rows of at most so many bytes of `v`."""

    size: int

    def check(self, rows: pa.Table, schema: TableSchema) -> None:
        """As RowLimit."""
        values = rows.column("v").to_pylist() if "v" in rows.column_names else ()
        if any(len(value) > self.size for value in values):
            raise FixData("TS1739", f"a row of {len(schema.fields)} columns is too large", why="-", fix="-")


@dataclass
class MemorySink:
    """One table's."""

    name: str
    system: MemorySystem = field(compare=False)

    def prepare(self, after_snapshot: int) -> Mapping[str, str]:
        """As ChangelogSink."""
        self.system.fail("prepare")
        is_new = self.name not in self.system.logs
        self.system.logs.setdefault(self.name, MemoryLog(begins_behind=after_snapshot))
        return {MADE: str(is_new).lower()}

    def check_schema(self) -> None:
        """As ChangelogSink."""
        self.system.fail("check_schema")

    def check(self, latest_id: int, find_commit: FindCommit) -> int:
        """As ChangelogSink."""
        self.system.fail("check")
        log = self.system.logs[self.name]
        assert log.reached <= latest_id
        assert not log.sent or find_commit(log.reached) == log.sent[-1][1]
        return log.reached

    def publish(
        self,
        latest_id: int,
        read_changes: ReadChanges,
        find_commit: FindCommit,
        read_state: ReadState,
        early: Mapping[int, PrepublishedCommit],
    ) -> SentChanges:
        """As ChangelogSink."""
        log, first = self.system.logs[self.name], len(self.system.logs[self.name].messages)
        for snapshot_id in range(log.reached + 1, latest_id + 1):
            self.system.fail("publish")
            changes = read_changes(snapshot_id)
            for batch in () if changes is None else changes.batches:
                for row in batch.rows.to_pylist():
                    kind = RowKind(row.pop(ROW_KIND_COLUMN))
                    value = repr(row).encode()
                    log.messages.append(LogMessage(0, len(log.messages), None, value, snapshot_id, kind=kind))
            log.sent.append((snapshot_id, find_commit(snapshot_id) or ""))
        after = len(log.messages)
        ranges = {0: (first, after)} if after > first else {}
        return SentChanges(log.reached, LogPosition("memory", self.name, ranges))

    def shards(self) -> list[MemorySink]:
        """As ChangelogSink."""
        return [self]

    def takes(self, bucket: int) -> bool:
        """As ChangelogShard."""
        return bucket >= -1

    def receive_early(self) -> None:
        """It waits for snapshots."""

    def reset(self, after_snapshot: int) -> int:
        """As ChangelogSink."""
        self.system.logs[self.name] = MemoryLog(begins_behind=after_snapshot)
        return 0

    def drop(self) -> None:
        """As ChangelogSink."""
        self.system.fail("drop")
        self.system.logs.pop(self.name, None)

    def find_remains(self) -> LogRemains:
        """As ChangelogSink; a log that the test calls foreign is another table's."""
        self.system.fail("remains")
        if self.name in self.system.foreign:
            return LogRemains((), f"{self.name} belongs to another table")
        return LogRemains((self.name,) if self.name in self.system.logs else ())

    def delete_remains(self) -> LogRemains:
        """As ChangelogSink."""
        remains = self.find_remains()
        for name in remains.names:
            self.system.logs.pop(name)
        return remains

    def read(self) -> list[LogMessage]:
        """As ChangelogSink."""
        return list(self.system.logs[self.name].messages)

    def decode(self, messages: Sequence[LogMessage], schema: TableSchema) -> pa.Table:
        """As ChangelogSink."""
        rows = [ast.literal_eval((message.value or b"").decode()) for message in messages]
        kinds = pa.array([message.kind for message in messages], pa.int8())
        return pa.Table.from_pylist(rows, schema.arrow_schema()).append_column(ROW_KIND_COLUMN, kinds)

    def look(self) -> LogState:
        """As ChangelogSink."""
        self.system.fail("look")
        log = self.system.logs[self.name]
        ends = {0: len(log.messages)}
        return LogState("memory", self.name, log.reached, None, 0, ends, {}, LogWriter("w"), {self.name: {}})

    def row_limit(self) -> RowsUpTo:
        """As ChangelogSink."""
        return RowsUpTo(100)

    def close(self) -> None:
        """As ChangelogSink."""
        self.system.closed.append(self.name)


@dataclass
class MemorySystem:
    """Tables with an option `log.system` have a log, named by their folder and their option `log.format`."""

    logs: dict[str, MemoryLog] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    closed: list[str] = field(default_factory=list)

    needs: tuple[str, ...] = ("log.system", "something")
    flags: str = "--memory"

    def fail(self, call: str) -> None:
        """Raise where the test wants it."""
        if call in self.broken:
            raise RetryError("TS1799", f"{call} does not answer", why="-", fix="-")

    def find_name(self, schema: TableSchema) -> str | None:
        """As ChangelogSystem."""
        return schema.options.get("kafka.topic") if "log.system" in schema.options else None

    def find_sink(self, table: LoggedTable) -> MemorySink | None:
        """As ChangelogSystem."""
        name = self.find_name(table.schema)
        return None if name is None else MemorySink(name, self)

    def find_owned(self, table: LoggedTable) -> MemorySink | None:
        """As ChangelogSystem."""
        return self.find_sink(table) if table.schema.options.get(MADE) == "true" else None

    def find_former(self, table: LoggedTable) -> MemorySink | None:
        """As ChangelogSystem."""
        return self.find_sink(table)

    def check_reachable(self) -> str | None:
        """As ChangelogSystem."""
        return "memory answers"
