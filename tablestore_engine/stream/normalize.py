"""Messages with the newest row of a key → the changes of the table: -U +U +I -D, without duplicates.

CHANGE     the changes that a reader of a log computes from messages (option scan.remove-normalize)
Steps      of each message: what was known of its key? 1 an earlier message of the same call 2 the newest message before
           it, since the base (stream/key_state.py) 3 the row of the base table
           then: nothing, row → +I · row, another row → -U +U · row, the same row → nothing · row, tombstone → -D with
           the row that was · nothing, tombstone → nothing
INVARIANT  what is given, folded by key over the base table, is the log folded by key over it: at each exact boundary of
           the log (log/followed_log.py) that is the table. A row of an attempt that failed is told and taken back.
INVARIANT  the same message at the same place of the log gives the same rows, whoever reads, wherever he began: what is
           known of a key depends on the log before it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.followed_log import NO_SNAPSHOT, UNSAID, Messages
from tablestore_engine.lsm.key_order import Index, Mask, match_sorted, order_columns, order_permutation
from tablestore_engine.store.rows.row_equality import rows_identical
from tablestore_engine.stream.key_state import Entry, KeyState

FindRows = Callable[[pa.Table], pa.Table]
Decode = Callable[[Messages], pa.Table]
_ABSENT = -1


@dataclass(frozen=True)
class NormalizedChanges:
    """`messages[i]`: the number of the message that row i is of; rows of a message stand together, in order."""

    rows: pa.Table
    kinds: npt.NDArray[np.int8]
    messages: Index


@dataclass(frozen=True)
class _Known:
    """`rows`: all that is compared; of message i `before[i]` is its key's row until then, or _ABSENT."""

    rows: pa.Table
    before: Index


class Normalizer:
    """Of one reader. Raises FixData TS1718, RetryError TS1359, and what reading the base raises."""

    def __init__(self, schema: TableSchema, state: KeyState, find_rows: FindRows) -> None:
        self._schema, self._state, self._find_rows = schema, state, find_rows

    def learn(self, messages: Messages) -> None:
        """Remember them, for what comes next."""
        self._state.put(_keys(messages), messages.values, messages.partitions, messages.offsets)

    def apply(self, messages: Messages, decode: Decode) -> NormalizedChanges:
        """What they change; nothing of them is remembered. `decode`: by all that is known of where schemas begin."""
        known = self._find_known(messages, decode)
        is_put = _are_there(messages.values)
        was_there = known.before != _ABSENT
        is_same = is_put & was_there
        is_same[is_same] = rows_identical(
            _picked(known.rows, np.flatnonzero(is_same)), _picked(known.rows, known.before[is_same])
        )
        return _changes(known, is_put, was_there, is_same)

    def _find_known(self, messages: Messages, decode: Decode) -> _Known:
        rows, keys = _rows(messages, decode), _keys(messages)
        before, firsts = _earlier(messages, keys)
        known = self._state.find([keys[one] for one in firsts])
        asked = [one for one in firsts if keys[one] not in known] if known else firsts
        told = [(one, known[keys[one]]) for one in firsts if keys[one] in known] if known else []
        there = [(one, entry) for one, entry in told if entry[0] is not None]
        remembered = _rows(_messages([(keys[one], entry) for one, entry in there]), decode)
        for number, (one, _) in enumerate(there):
            before[one] = rows.num_rows + number
        based, hits = self._find_based(rows, np.asarray(asked, np.int64))
        found = hits != _ABSENT
        before[np.asarray(asked, np.int64)[found]] = rows.num_rows + remembered.num_rows + hits[found]
        return _Known(pa.concat_tables([rows, remembered, based]), before)

    def _find_based(self, rows: pa.Table, asked: Index) -> tuple[pa.Table, Index]:
        """Rows of the base table, and which of them each asked row's key has."""
        names = list(self._schema.primary_keys)
        wanted = rows.select(names).take(pa.array(asked))
        based = self._find_rows(wanted).select(rows.column_names).cast(rows.schema)
        hits = np.full(len(asked), _ABSENT, np.int64)
        if based.num_rows:
            stored, asks = order_columns(based, names), order_columns(wanted, names)
            sorted_rows, sorted_asks = order_permutation(stored), order_permutation(asks)
            needles, places = match_sorted(asks[sorted_asks], stored[sorted_rows])
            hits[sorted_asks[needles]] = sorted_rows[places]
        return based, hits


def _rows(messages: Messages, decode: Decode) -> pa.Table:
    return decode(messages).drop_columns([ROW_KIND_COLUMN])


def _keys(messages: Messages) -> list[bytes]:
    return [key or b"" for key in messages.keys] if None in messages.keys else list(messages.keys)  # type: ignore[arg-type]


def _are_there(values: Sequence[bytes | None]) -> Mask:
    if None not in values:
        return np.ones(len(values), np.bool_)
    return np.fromiter((value is not None for value in values), np.bool_, len(values))


def _messages(entries: list[tuple[bytes, Entry]]) -> Messages:
    count = len(entries)
    return Messages(
        np.fromiter((entry[1] for _, entry in entries), np.int64, count),
        np.fromiter((entry[2] for _, entry in entries), np.int64, count),
        [key for key, _ in entries],
        [entry[0] for _, entry in entries],
        np.full(count, UNSAID, np.int8),
        np.full(count, NO_SNAPSHOT, np.int64),
        {},
    )


def _earlier(messages: Messages, keys: list[bytes]) -> tuple[Index, Sequence[int]]:
    """Of each message the one before it with its key, _ABSENT behind a tombstone; which ones are a key's first."""
    if len(set(keys)) == len(keys):
        return np.full(len(keys), _ABSENT, np.int64), range(len(keys))
    last: dict[bytes, int] = {}
    before, firsts, values = [_ABSENT] * len(keys), [], messages.values
    for number, key in enumerate(keys):
        known = last.get(key)
        if known is None:
            firsts.append(number)
        elif values[known] is not None:
            before[number] = known
        last[key] = number
    return np.asarray(before, np.int64), firsts


def _picked(rows: pa.Table, places: Index) -> pa.Table:
    return rows.take(pa.array(places))


def _changes(known: _Known, is_put: Mask, was_there: Mask, is_same: Mask) -> NormalizedChanges:
    """Two slots for each message, the row before and the row behind it; those that say nothing are left out."""
    count = len(is_put)
    takes_out, puts_in = was_there & ~is_same, is_put & ~is_same
    places = np.empty(2 * count, np.int64)
    places[0::2], places[1::2] = known.before, np.arange(count)
    kinds = np.empty(2 * count, np.int8)
    kinds[0::2] = np.where(is_put, RowKind.UPDATE_BEFORE, RowKind.DELETE)
    kinds[1::2] = np.where(was_there, RowKind.UPDATE_AFTER, RowKind.INSERT)
    used = np.empty(2 * count, np.bool_)
    used[0::2], used[1::2] = takes_out, puts_in
    return NormalizedChanges(_picked(known.rows, places[used]), kinds[used], np.flatnonzero(used) // 2)
