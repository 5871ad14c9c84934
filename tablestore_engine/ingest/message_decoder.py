"""A batch of raw messages → DecodedMessages: many at once where they are plain, one by one where they are not.

Steps      1 a chunk at once (debezium_batch_decode.py); where that does not answer, halves of it; small ones one by one
           2 what was read one by one becomes columns, all messages with one meaning together
           3 a column that cannot be made: its values are tried each, their messages are dead, the others stand
INVARIANT  what is read at once is what would be read one by one (tests/laws/test_ingest_fast_laws.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.ingest.change_event import UNREADABLE, Change, ChangeEvent, MessageReader, ReadRules
from tablestore_engine.ingest.debezium_batch_decode import read_at_once
from tablestore_engine.ingest.decoded_messages import (
    DecodedMessages,
    DecodedRows,
    UnreadableMessage,
    note,
    refusal,
)
from tablestore_engine.ingest.plain_values import inferred_type, plain_column
from tablestore_engine.ingest.wire_types import RefusedError, WireType, wire_column
from tablestore_engine.log.message_source import RawMessages

_SMALL = 256
_Convert = Callable[[Sequence[Any]], pa.Array]


@dataclass(frozen=True)
class _DecodedRow:
    number: int
    change: Change


@dataclass
class _MeaningGroup:
    """Rows whose values mean the same: those of one schema, or without any."""

    wires: Any
    rows: list[_DecodedRow] = field(default_factory=list)


def find_key(raw: RawMessages, reader: MessageReader, rules: ReadRules) -> tuple[str, ...]:
    """Of the first message that says it; () when none does."""
    for key, value in zip(raw.keys, raw.values, strict=True):
        try:
            event = reader.read(key, value, ())
        except UNREADABLE:
            continue
        if event.key and event.changes and rules.takes(event.table):
            return event.key
    return ()


@dataclass
class MessageDecoder:
    """`rules.key` must be known."""

    reader: MessageReader
    rules: ReadRules

    def decode(self, raw: RawMessages) -> DecodedMessages:
        changes = DecodedMessages()
        groups: dict[int, _MeaningGroup] = {}
        self._chunk(raw, 0, len(raw), changes, groups)
        for group in groups.values():
            self._columns(group, changes)
        changes.dead.sort(key=lambda one: one.number)
        return changes

    def _chunk(
        self,
        raw: RawMessages,
        begin: int,
        end: int,
        changes: DecodedMessages,
        groups: dict[int, _MeaningGroup],
    ) -> None:
        if end - begin <= _SMALL:
            for number in range(begin, end):
                self._one(raw, number, changes, groups)
            return
        found, left = read_at_once(raw, begin, end, self.reader, self.rules)
        if found is None:
            middle = (begin + end) // 2
            self._chunk(raw, begin, middle, changes, groups)
            self._chunk(raw, middle, end, changes, groups)
            return
        changes.add(found)
        for number in left:
            self._one(raw, number, changes, groups)

    def _one(
        self, raw: RawMessages, number: int, changes: DecodedMessages, groups: dict[int, _MeaningGroup]
    ) -> None:
        try:
            event = self.reader.read(raw.keys[number], raw.values[number], self.rules.key)
        except UNREADABLE as error:
            changes.dead.append(UnreadableMessage(number, note(error)))
            return
        if not self.rules.takes(event.table):
            event = event.of_other_table()
        elif event.unreadable is not None:
            changes.dead.append(UnreadableMessage(number, event.unreadable))
            return
        else:
            changes.meet(event.table, number)
        if event.ignored is not None:
            changes.ignored[event.ignored] += 1
        elif event.is_truncate:
            changes.truncates.append(number)
        else:
            if self.rules.finds_keys and event.changes:
                changes.meet_key(event.key, number)
            self._keep(number, event, groups)

    @staticmethod
    def _keep(number: int, event: ChangeEvent, groups: dict[int, _MeaningGroup]) -> None:
        group = groups.setdefault(id(event.wires), _MeaningGroup(event.wires))
        group.rows += [_DecodedRow(number, change) for change in event.changes]

    def _columns(self, group: _MeaningGroup, changes: DecodedMessages) -> None:
        """Columns of a group; messages with values that cannot be read are left out."""
        rows = self._whole(group.rows, changes)
        keys = {name.lower() for name in self.rules.key}
        names = dict.fromkeys(
            group.wires
            or [name for row in rows for name in row.change.row if row.change.is_put or name.lower() in keys]
        )
        columns: dict[str, pa.Array] = {}
        types: dict[str, DataType] = {}
        dead: dict[int, str] = {}
        for name in names:
            raw = [_value(row, name, is_key=name.lower() in keys) for row in rows]
            made = self._convert(name, raw, group, changes, rows)
            if made is None:
                continue
            types[name], convert = made
            columns[name] = _column(name, raw, convert, rows, dead, types[name])
        changes.dead += [UnreadableMessage(number, reason) for number, reason in dead.items()]
        part = DecodedRows(
            columns,
            types,
            np.array([row.change.is_put for row in rows], dtype=bool),
            np.array([row.number for row in rows], dtype=np.int64),
        )
        changes.parts.append(part.without(np.array(list(dead), dtype=np.int64)))

    def _whole(self, rows: list[_DecodedRow], changes: DecodedMessages) -> list[_DecodedRow]:
        """Without rows that lack a column which the table has, or which came before, and do not say what it is."""
        if all(row.change.is_whole for row in rows):
            return rows
        known = {name.lower(): name for name in self.rules.types}
        lacking: set[int] = set()
        for row in rows:
            have = {name.lower() for name in row.change.row}
            missing = sorted(name for key, name in known.items() if key not in have)
            if row.change.is_put and not row.change.is_whole and missing:
                lacking.add(row.number)
                changes.dead.append(
                    UnreadableMessage(
                        row.number, f"column {missing[0]} is neither in before nor in after of an update"
                    )
                )
            elif row.change.is_put:
                known |= {name.lower(): name for name in row.change.row}
        return [row for row in rows if row.number not in lacking] if lacking else rows

    def _convert(
        self,
        name: str,
        raw: Sequence[Any],
        group: _MeaningGroup,
        changes: DecodedMessages,
        rows: Sequence[_DecodedRow],
    ) -> tuple[DataType, _Convert] | None:
        """Type of a column and how its values are read; None when it has neither values nor a type."""
        wire: WireType | None = None if group.wires is None else group.wires.get(name)
        if wire is not None:
            meant = self.rules.wire_of(name, wire)
            return meant.type, lambda values: wire_column(values, meant)
        kind: DataType | None = self.rules.types.get(name.lower())
        if kind is None and self.rules.infer:
            try:
                kind = inferred_type(raw)
            except TypeError as error:
                reason = note(error)
                return DataType("NULL"), lambda values: _refuse(values, reason)
            if kind is None:
                return None
        if kind is None:
            with_it = [row.number for row, value in zip(rows, raw, strict=True) if name in row.change.row]
            changes.untyped[name] = min(with_it[0], changes.untyped.get(name, with_it[0]))
            return None
        found = kind
        return found, lambda values: plain_column(values, found, self.rules.decimals)


def _refuse(values: Sequence[Any], reason: str) -> pa.Array:
    if any(value is not None for value in values):
        raise RefusedError(reason)
    return pa.nulls(len(values))


def _value(row: _DecodedRow, name: str, *, is_key: bool) -> Any:  # noqa: ANN401 - parsed JSON
    change = row.change
    if change.is_put or is_key:
        return change.row.get(name)
    return None


def _column(
    name: str,
    raw: Sequence[Any],
    convert: _Convert,
    rows: Sequence[_DecodedRow],
    dead: dict[int, str],
    kind: DataType,
) -> pa.Array:
    """The whole column; where that fails each value is tried, and the messages of those that fail are `dead`."""
    try:
        return convert(raw)
    except UNREADABLE:
        pass
    kept: list[Any] = []
    for row, value in zip(rows, raw, strict=True):
        try:
            convert([value])
        except UNREADABLE as error:
            dead.setdefault(row.number, refusal(name, kind, value, error))
            kept.append(None)
        else:
            kept.append(value)
    try:
        return convert(kept)
    except UNREADABLE as error:  # each alone is fine, all together are not
        for row, value in zip(rows, kept, strict=True):
            if value is not None:
                dead.setdefault(row.number, refusal(name, kind, value, error))
        return pa.nulls(len(rows), pa.null() if kind.root == "NULL" else type_to_arrow(kind))
