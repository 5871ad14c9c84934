"""Which stored rows a write replaces: decided by the store for every base, so that a lost race plans again.

CHANGE     which stored rows a microbatch, delete+insert or DELETE replaces
Steps      statistics of the file → of a condition those of its row groups → the columns that decide, nothing else → a
           mask of row positions. Rows of whole primary keys are found by the look-up (merge/merge_on_write.py).
INVARIANT  NULL is in no interval and equals no key: such rows stay, as under SQL's WHERE.
INVARIANT  positions name files of one snapshot; when such a file is gone the write is refused (TS1386), never guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.format.binary_row import decode_row
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.safe_cast import safe_cast
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.lsm.key_order import Index, Mask, key_at, order_columns, order_frame
from tablestore_engine.runtime.moments import aware, read_zone
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask
from tablestore_engine.store.rows.matching_rows import find_matches, possible_groups
from tablestore_engine.store.rows.row_condition import RowCondition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True)
class EveryRow:
    """All rows of the extent."""


@dataclass(frozen=True)
class Interval:
    """Rows whose time is in [start, end): aware datetimes; a DATE or wall-clock column is read in `zone`.

    >>> events = engine.create_table("demo.events", pa.schema({"at": pa.timestamp("us", "UTC"), "n": pa.int64()}))
    >>> january = Interval("at", datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    >>> rows = [{"at": datetime(2026, 1, 31, tzinfo=UTC), "n": 1}]
    >>> events.write(rows, WriteSpec(mode=WriteMode.REPLACE, replaces=january)).inserted
    1
    """

    column: str
    start: datetime
    end: datetime
    zone: str = "UTC"


@dataclass(frozen=True)
class SameKeys:
    """Rows whose `columns` occur in `keys`; the keys of the incoming rows when it is None.

    >>> rows = [{"id": 9, "region": "eu", "amount": 1.0}]
    >>> report = orders.write(rows, WriteSpec(mode=WriteMode.REPLACE, replaces=SameKeys(("region",))))
    >>> report.inserted, report.deleted
    (1, 2)
    """

    columns: tuple[str, ...]
    keys: pa.Table | None = field(default=None, compare=False)

    def is_key_of(self, schema: TableSchema) -> bool:
        """Whether the columns are the whole primary key."""
        return schema.is_keyed and set(self.columns) == set(schema.primary_keys)

    def among(self, rows: pa.Table) -> SameKeys:
        """With the keys of these rows."""
        spelled = {name.lower(): name for name in rows.column_names}
        names = [spelled.get(name.lower(), name) for name in self.columns]
        return SameKeys(self.columns, rows.select(names))


@dataclass(frozen=True)
class MatchingRows:
    condition: RowCondition


@dataclass(frozen=True)
class RowPositions:
    """File name → row positions, of the snapshot that the write was computed from."""

    by_file: Mapping[str, BitMap] = field(hash=False)


RowFilter = EveryRow | Interval | SameKeys | MatchingRows | RowPositions
EVERY_ROW = EveryRow()


def check_filter(wanted: RowFilter, schema: TableSchema) -> RowFilter:
    """The filter with the table's spelling and types. Raises FixRequest TS1385, FixData TS1603 for keys that misfit,
    and what binding a condition raises.
    """
    if isinstance(wanted, Interval):
        column = _column(schema, wanted.column)
        if column.type.root not in _MOMENTS:
            raise _no_column(
                wanted.column, f"it is {type_to_text(column.type)}; an interval needs DATE or TIMESTAMP"
            )
        return Interval(column.name, aware(wanted.start), aware(wanted.end), wanted.zone)
    if isinstance(wanted, SameKeys):
        columns = [_column(schema, name) for name in wanted.columns]
        names = tuple(column.name for column in columns)
        if wanted.keys is None:
            return SameKeys(names)
        arrays = [
            _typed_key(array, column) for array, column in zip(wanted.keys.columns, columns, strict=True)
        ]
        return SameKeys(names, pa.Table.from_arrays(arrays, names=list(names)).drop_null())
    if isinstance(wanted, MatchingRows):
        wanted.condition.bind(schema)
    return wanted


def check_positions(wanted: RowPositions, states: Collection[BucketState]) -> None:
    """Raises RetryError TS1386 when a file of the positions is no longer live."""
    live = {file.meta.file_name for state in states for file in state.files}
    gone = sorted(set(wanted.by_file) - live)
    if gone:
        raise RetryError(
            "TS1386",
            "the rows of the statement moved while it ran",
            why=f"file {gone[0]}, one of {len(wanted.by_file)} that hold them, was rewritten by another writer",
            fix="run the statement again",
        )


def picked_rows(reader: FileReader, file: StoredFile, wanted: RowFilter) -> Mask | None:
    """Positions that are visible and picked; None when there are none. Only the columns that decide are read."""
    if not _may_hold(reader.schema, file, wanted):
        return None
    match wanted:
        case EveryRow():
            mask = visible_mask(file)
        case RowPositions(by_file=by_file):
            mask = np.zeros(file.meta.row_count, dtype=np.bool_)
            mask[np.asarray(by_file[file.meta.file_name].to_array(), dtype=np.int64)] = True
            mask &= visible_mask(file)
        case Interval():
            inside = _inside(reader.read(file, [wanted.column]).column(0), wanted)
            mask = visible_mask(file) & inside
        case SameKeys():
            mask = visible_mask(file) & _has_key(reader.read(file, list(wanted.columns)), wanted)
        case MatchingRows(condition):
            bound = condition.bind(reader.schema)
            mask = np.zeros(file.meta.row_count, dtype=np.bool_)
            with reader.open(file) as opened:
                found = find_matches(opened, bound, possible_groups(opened, bound))
                mask[opened.positions_of(found.groups, np.flatnonzero(found.mask))] = True
    return mask if bool(mask.any()) else None


# ---- by statistics -----------------------------------------------------------------------------------------


def _may_hold(schema: TableSchema, file: StoredFile, wanted: RowFilter) -> bool:
    if file.dead_count >= file.meta.row_count:
        return False
    match wanted:
        case RowPositions(by_file=by_file):
            return file.meta.file_name in by_file
        case Interval():
            bounds = _bounds(schema, file, wanted.column)
            if bounds is None:
                return True
            low, high = (int(value) for value in _micros(pa.chunked_array([bounds]))[0])
            start, end = _edges(bounds.type, wanted)
            return low < end and high >= start
        case SameKeys(columns=columns, keys=keys):
            return keys is not None and keys.num_rows > 0 and _keys_may_meet(schema, file, columns, keys)
        case MatchingRows(condition):
            return bool(condition.bind(schema).prune([file]))
        case _:
            return True


def _keys_may_meet(schema: TableSchema, file: StoredFile, columns: Sequence[str], keys: pa.Table) -> bool:
    for name in columns:
        bounds = _bounds(schema, file, name)
        if bounds is None or pa.types.is_nested(keys.column(name).type):
            continue
        stored, asked = order_frame([bounds]), order_frame([keys.column(name)])
        asked = asked.sort(asked.columns)
        if key_at(stored, 1) < key_at(asked, 0) or key_at(asked, -1) < key_at(stored, 0):
            return False
    return True


def _bounds(schema: TableSchema, file: StoredFile, name: str) -> pa.Array | None:
    """[smallest, largest] of a column by the manifest; None when unknown or written with another type."""
    column = schema.field(name)
    stored = file.schema
    listed = (
        stored.fields if file.meta.value_stats_cols is None else stored.fields_of(file.meta.value_stats_cols)
    )
    at = next((i for i, one in enumerate(listed) if one.id == column.id), None)
    stats = file.meta.value_stats
    if at is None or not stats.null_counts or listed[at].type.root != column.type.root:
        return None
    types = [one.type.with_nullable(True) for one in listed]
    low, high = decode_row(stats.min_values, types)[at], decode_row(stats.max_values, types)[at]
    if low is None or high is None:
        return None
    return arrow_values([low, high], listed[at].type)


# ---- by value ----------------------------------------------------------------------------------------------


def _inside(column: pa.ChunkedArray, wanted: Interval) -> Mask:
    micros, valid = _micros(column)
    start, end = _edges(column.type, wanted)
    return valid & (micros >= start) & (micros < end)


def _micros(column: pa.ChunkedArray) -> tuple[Index, Mask]:
    """Microseconds since 1970 (of the instant, or of the wall clock), 0 where NULL; and where there is a value."""
    plain = column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
    return np.asarray(pc.fill_null(plain, 0)), np.asarray(pc.is_valid(column))


def _edges(type_: pa.DataType, wanted: Interval) -> tuple[int, int]:
    """The interval in the column's own clock: instants for a type with a zone, else wall-clock times."""
    zone = UTC if getattr(type_, "tz", None) is not None else read_zone(wanted.zone)
    low, high = (
        (moment.astimezone(zone).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
        for moment in (wanted.start, wanted.end)
    )
    return low, high


def _has_key(rows: pa.Table, wanted: SameKeys) -> Mask:
    if wanted.keys is None:
        return np.zeros(rows.num_rows, dtype=np.bool_)
    mine = order_columns(rows, wanted.columns).with_row_index("#row")
    names = [name for name in mine.columns if name != "#row"]
    keys = order_columns(wanted.keys, wanted.columns).unique()
    found = mine.join(keys, on=names, how="semi").get_column("#row").to_numpy()
    mask = np.zeros(rows.num_rows, dtype=np.bool_)
    mask[found] = True
    return mask


def _typed_key(keys: pa.ChunkedArray, column: DataField) -> pa.ChunkedArray:
    try:
        return safe_cast(keys, type_to_arrow(column.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as wrong:
        raise _no_column(column.name, f"a key does not fit {type_to_text(column.type)}: {wrong}") from wrong


def _column(schema: TableSchema, name: str) -> DataField:
    for column in schema.fields:
        if column.name.lower() == name.lower():
            return column
    raise _no_column(name, f"the columns are {', '.join(schema.field_names)}")


def _no_column(name: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1385",
        f"rows cannot be replaced by column {name!r}",
        why=why,
        fix="name a column of the table that says which rows the new ones replace",
    )
