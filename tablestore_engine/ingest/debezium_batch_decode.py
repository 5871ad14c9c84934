"""Many messages of Debezium's JSON at once, by Arrow's parser, or none: then they are read one by one.

Rule       None for whatever is not plain: another op, a missing row, nested columns, a value that the parser refuses, a
           placeholder, a column that nobody has described. So this file is about speed alone.
DANGER     Arrow's parser ends the process at a document that is `null`: it sees none that does not begin with a brace.
INVARIANT  each text begins and ends with a brace, so no row of the parser spans two messages.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.ingest.change_event import (
    OTHER_TABLE,
    UNREADABLE,
    MessageReader,
    ReadRules,
    parse_json,
)
from tablestore_engine.ingest.debezium import DebeziumJson, group_by_schema, key_names
from tablestore_engine.ingest.decoded_messages import DecodedMessages, DecodedRows
from tablestore_engine.ingest.plain_values import BASE64, counted, plain_column
from tablestore_engine.ingest.toast_placeholder import PLACEHOLDER_TEXTS
from tablestore_engine.ingest.wire_types import (
    Reading,
    WireType,
    counted_column,
    decimals,
    instant_column,
    wire_column,
)
from tablestore_engine.log.message_source import RawMessages

_BLOCK_BYTES = 4 << 20
_SAMPLES = 16
_SOURCE_AT = b',"source":'
_OPS = pa.array(["c", "r", "u", "d"])
_UPDATE, _DELETE = 2, 3
_SOURCE = pa.struct([("db", pa.string()), ("schema", pa.string()), ("table", pa.string())])
_TIMES = frozenset({"DATE", "TIME", *TIMESTAMP_ROOTS})
_NUMBERS = frozenset({"FLOAT", "DOUBLE"})


class _StrangeError(Exception):
    """Not plain."""


@dataclass(frozen=True)
class _Column:
    """`read`: the type that the parser is told; then `wire` or the column's own type says what it means."""

    name: str
    read: pa.DataType
    wire: WireType | None
    type: DataType


def read_at_once(
    raw: RawMessages, begin: int, end: int, reader: MessageReader, rules: ReadRules
) -> tuple[DecodedMessages | None, Sequence[int]]:
    """Messages `begin` to `end`; tombstones are among those to read one by one."""
    if not isinstance(reader, DebeziumJson):
        return None, ()
    alone = [number for number in range(begin, end) if raw.values[number] is None]
    groups = group_by_schema(raw, begin, end, reader)
    changes = DecodedMessages()
    try:
        for wires, numbers, texts in groups.values():
            group = _SchemaGroup(rules, changes, np.array(numbers, dtype=np.int64))
            rows = group.read(texts, wires)
            if rules.finds_keys:
                for names, number in key_names(raw.keys, group.numbers[rows], reader).items():
                    changes.meet_key(names, number)
    except (_StrangeError, *UNREADABLE):
        return None, ()
    return changes, alone


@dataclass(frozen=True)
class _SchemaGroup:
    """Messages of one schema, or without any."""

    rules: ReadRules
    changes: DecodedMessages
    numbers: npt.NDArray[np.int64]

    def read(self, texts: Sequence[bytes], wires: Mapping[str, WireType] | None) -> npt.NDArray[np.bool_]:
        """Adds to the changes; which messages have a row. Raises _StrangeError, ArrowException."""
        columns = self._columns(texts, wires)
        names = {one.name for one in columns}
        row = pa.struct([pa.field(one.name, one.read) for one in columns])
        found = _members(texts, row, knows_all=wires is not None)
        places = pc.index_in(found["op"].combine_chunks(), value_set=_OPS)
        if places.null_count:
            raise _StrangeError
        before, after = (found[side].combine_chunks() for side in ("before", "after"))
        if {one.name for one in (*before.type, *after.type)} != names:
            raise _StrangeError
        self._check_decimals(texts, columns, wires)
        takes = self._takes(found["source"].combine_chunks())
        self._rows(columns, places.to_numpy(), before, after, takes)
        return takes

    def _columns(self, texts: Sequence[bytes], wires: Mapping[str, WireType] | None) -> list[_Column]:
        if wires is not None:
            meant = {name: self.rules.wire_of(name, wire) for name, wire in wires.items()}
            return [_Column(name, _read_as(wire), wire, wire.type) for name, wire in meant.items()]
        row = _sample(texts)
        types, decimal = self.rules.types, self.rules.decimals
        known = {name: types.get(name.lower()) for name in row}
        typed = {name: kind for name, kind in known.items() if kind is not None}
        if len(typed) < len(known):
            raise _StrangeError
        return [
            _Column(name, _plain_read_as(kind, row[name], decimal), None, kind)
            for name, kind in typed.items()
        ]  # fmt: skip

    def _check_decimals(self, texts: Sequence[bytes], columns: Sequence[_Column], wires: object) -> None:
        """Without a word on what texts of decimals are, there are none: the parser alone would take them."""
        named = [one for one in columns if one.type.root == "DECIMAL"]
        if wires is not None or self.rules.decimals is not None or not named:
            return
        row = pa.struct([pa.field(one.name, pa.float64()) for one in named])
        _parse(texts, pa.schema([("before", row), ("after", row)]), knows_all=True)

    def _takes(self, source: pa.StructArray) -> npt.NDArray[np.bool_]:
        """Which messages are of a table that is meant; notes the tables."""
        names_of = ["db", "schema", "table"]
        flat = dict(zip((one.name for one in source.type), source.flatten(), strict=True))
        found = pl.from_arrow(pa.table([flat[one] for one in names_of], names=names_of))
        assert isinstance(found, pl.DataFrame)
        owner = pl.when(pl.col("schema").str.len_bytes() > 0).then("schema").otherwise("db")
        has_table = pl.col("table").str.len_bytes() > 0
        name = pl.when(has_table).then(pl.concat_str([owner, pl.lit("."), "table"])).otherwise(pl.lit(""))
        names = found.select(name.alias("name"))["name"]
        if names.null_count():
            raise _StrangeError
        takes = np.ones(len(names), dtype=bool)
        for (table,), places in (
            names.to_frame().with_row_index("at").group_by("name", maintain_order=True)
        ):  # fmt: skip
            at = places["at"].to_numpy()
            if not table:
                continue
            if self.rules.takes(str(table)):
                self.changes.meet(str(table), int(self.numbers[at[0]]))
            else:
                takes[at] = False
                self.changes.ignored[OTHER_TABLE] += len(at)
        return takes

    def _rows(
        self,
        columns: Sequence[_Column],
        ops: npt.NDArray[np.int32],
        before: pa.StructArray,
        after: pa.StructArray,
        takes: npt.NDArray[np.bool_],
    ) -> None:
        gone, put = ops == _DELETE, ops != _DELETE
        is_row = {side: np.asarray(rows.is_valid()) for side, rows in (("b", before), ("a", after))}
        if (gone & ~is_row["b"]).any() or (put & ~is_row["a"]).any():
            raise _StrangeError
        gone, put = gone & takes, put & takes
        keys = _key_places(columns, self.rules.key)
        names = [columns[at].name for at in keys]
        moved = (ops == _UPDATE) & put & is_row["b"] & _differ(before, after, names)
        if moved.any() and len(keys) > 1:
            raise _StrangeError  # a key of several columns may be half in before
        _refuse_hidden(columns, after, put)
        old, new = np.flatnonzero(gone | moved), np.flatnonzero(put)
        order = np.argsort(np.concatenate([2 * old, 2 * new + 1]))
        made: dict[str, pa.Array] = {}
        for at, column in enumerate(columns):
            was = (
                before.field(column.name).take(pa.array(old))
                if at in keys
                else pa.nulls(len(old), column.read)
            )
            read = pa.concat_arrays([was, after.field(column.name).take(pa.array(new))])
            made[column.name] = _meant(
                read if len(old) == 0 else read.take(pa.array(order)), column, self.rules
            )
        is_put = np.concatenate([np.zeros(len(old), bool), np.ones(len(new), bool)])[order]
        numbers = self.numbers[np.concatenate([old, new])[order]]
        types = {column.name: column.type for column in columns}
        self.changes.parts.append(DecodedRows(made, types, is_put, numbers))


def _sample(texts: Sequence[bytes]) -> dict[str, Any]:
    """Columns of the first row, with values of the first ones."""
    row: dict[str, Any] = {}
    for number, text in enumerate(texts[:_SAMPLES]):
        message = parse_json(text)
        found = message.get("after") or message.get("before") or {}
        if number == 0:
            row = dict(found)
        row |= {name: found[name] for name, value in row.items() if value is None and name in found}
        if all(value is not None for value in row.values()):
            break
    return row


def _key_places(columns: Sequence[_Column], key: tuple[str, ...]) -> list[int]:
    have = {column.name.lower(): at for at, column in enumerate(columns)}
    if any(name.lower() not in have for name in key):
        raise _StrangeError
    return [have[name.lower()] for name in key]


def _differ(before: pa.StructArray, after: pa.StructArray, keys: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether a key column has another value; one that `before` does not have is the same."""
    differs = np.zeros(len(before), dtype=bool)
    for name in keys:
        was, now = before.field(name), after.field(name)
        one = pc.or_kleene(pc.not_equal(was, now), pc.and_(pc.is_valid(was), pc.is_null(now)))
        differs |= np.asarray(one.fill_null(False))
    return differs


def _refuse_hidden(columns: Sequence[_Column], after: pa.StructArray, put: npt.NDArray[np.bool_]) -> None:
    for column in columns:
        if pa.types.is_string(column.read):
            hidden = np.asarray(pc.is_in(after.field(column.name), value_set=pa.array(PLACEHOLDER_TEXTS)))
            if (hidden & put).any():
                raise _StrangeError


def _members(texts: Sequence[bytes], row: pa.DataType, *, knows_all: bool) -> Mapping[str, pa.ChunkedArray]:
    """`before`, `after`, `op`, `source` of each message.

    Columns that nobody has described are noticed by letting the parser take what it finds, which costs as much as all
    else. So it is asked for the rows alone, where they stand before the source as Debezium writes them. The bytes of
    _SOURCE_AT stand in no text of JSON, which would escape them; in a message that is cut where a column of that name
    begins both halves are broken.
    """
    sides, others = [("before", row), ("after", row)], [("op", pa.string()), ("source", _SOURCE)]
    cuts = [] if knows_all else [text.find(_SOURCE_AT) for text in texts]
    if knows_all or min(cuts) < 0:
        found = _parse(texts, pa.schema(sides + others), knows_all=knows_all)
        return {name: found[name] for name in ("before", "after", "op", "source")}
    rows = _parse(
        [text[:cut] + b"}" for text, cut in zip(texts, cuts, strict=True)], pa.schema(sides), knows_all=False
    )
    # the rows' names again: a member that comes twice counts where it comes last
    twice = [(name, pa.struct([])) for name in ("before", "after")]
    rest = _parse(
        [b"{" + text[cut + 1 :] for text, cut in zip(texts, cuts, strict=True)],
        pa.schema(others + twice),
        knows_all=True,
    )
    if set(rows.column_names) != {"before", "after"} or any(
        rest[name].null_count < len(texts) for name, _ in twice
    ):
        raise _StrangeError
    return {
        name: (rows if name in ("before", "after") else rest)[name]
        for name in ("before", "after", "op", "source")
    }


def _parse(texts: Sequence[bytes], target: pa.Schema, *, knows_all: bool) -> pa.Table:
    """One object per text. `knows_all`: members that the target does not name are of no interest."""
    joined = b"\n".join(texts)
    boundaries = len(texts) - 1
    if joined[:1] != b"{" or joined[-1:] != b"}" or joined.count(b"}\n{") != boundaries:
        raise _StrangeError
    if joined.count(b"\n") != boundaries:
        raise _StrangeError
    found = pj.read_json(
        io.BytesIO(joined),
        read_options=pj.ReadOptions(use_threads=True, block_size=max(_BLOCK_BYTES, 2 * max(map(len, texts)))),
        parse_options=pj.ParseOptions(
            explicit_schema=target, unexpected_field_behavior="ignore" if knows_all else "infer"
        ),
    )
    if found.num_rows != len(texts):
        raise _StrangeError
    return found


def _read_as(wire: WireType) -> pa.DataType:
    """Raises _StrangeError for what is read one by one."""
    if wire.how in (Reading.COUNT, Reading.CLOCK, Reading.MOMENT):
        return pa.int64()
    if wire.how in (Reading.BYTES, Reading.DECIMAL, Reading.INSTANT):
        return pa.string()
    root = wire.type.root
    if wire.how is Reading.PLAIN and (root in INTEGER_ROOTS or root in ("BOOLEAN", "VARCHAR")):
        return type_to_arrow(wire.type)
    if wire.how is Reading.PLAIN and root in _NUMBERS:
        return pa.float64()
    raise _StrangeError


def _plain_read_as(kind: DataType, sample: Any, decimal: str | None) -> pa.DataType:  # noqa: ANN401 - parsed JSON
    """By the column's type, and by the first value where both texts and numbers are possible."""
    if kind.root in INTEGER_ROOTS or kind.root in ("BOOLEAN", "CHAR", "VARCHAR"):
        return type_to_arrow(kind)
    if kind.root in _NUMBERS:
        return pa.float64()
    if kind.root in _TIMES:
        return pa.string() if isinstance(sample, str) else pa.int64()
    if kind.root == "DECIMAL":
        is_text = decimal is not None and (sample is None or isinstance(sample, str))
        return pa.string() if is_text else type_to_arrow(kind)
    if kind.root in ("BINARY", "VARBINARY"):
        return pa.string()
    raise _StrangeError


def _meant(read: pa.Array, column: _Column, rules: ReadRules) -> pa.Array:
    """What was read, in the column's type. Raises ArrowException, ValueError."""
    target = type_to_arrow(column.type)
    wire = column.wire
    if wire is not None and wire.how is Reading.INSTANT:
        return instant_column(read, wire)
    if read.type == target:
        if pa.types.is_decimal(target) and rules.decimals == BASE64:
            raise _StrangeError  # a text among numbers: the parser takes its digits
        return _finite(read) if pa.types.is_floating(target) else read
    if pa.types.is_floating(target):
        return _finite(pc.cast(read, target, safe=False))
    if wire is not None and wire.how is Reading.COUNT:
        return counted_column(read, wire)
    if column.type.root == "DECIMAL" and (wire is not None or rules.decimals == BASE64):
        scale = column.type.scale if wire is None else wire.scale
        exact = _unscaled(read, column.type) if scale == column.type.scale else None
        if exact is not None:
            return exact
        meaning = wire or decimals(column.type.precision or 0, column.type.scale or 0)
        return wire_column(read.to_pylist(), meaning)
    if wire is not None:
        return wire_column(read.to_pylist(), wire)
    if column.type.root in _TIMES and pa.types.is_int64(read.type):
        return counted(read, column.type)
    return plain_column(read.to_pylist(), column.type, rules.decimals)


def _finite(values: pa.Array) -> pa.Array:
    """A JSON number that is too large becomes infinity in Arrow's parser, and words come as texts."""
    if pc.any(pc.is_inf(values)).as_py():
        raise _StrangeError
    return values


def _unscaled(texts: pa.Array, kind: DataType) -> pa.Array | None:
    """Base64 of unscaled numbers, a column at once; None when one is longer than sixteen bytes or is none."""
    read = pl.from_arrow(texts)
    assert isinstance(read, pl.Series)
    try:
        values = read.str.decode("base64", strict=True).to_arrow().cast(pa.large_binary())
    except (pl.exceptions.PolarsError, pa.ArrowException):
        return None
    lengths = pc.binary_length(values).fill_null(0).to_numpy()
    if len(lengths) == 0 or lengths.max() > 16:
        return None
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values)]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    out = np.zeros((len(lengths), 16), np.uint8)
    for length in np.unique(lengths[lengths > 0]):
        rows = np.flatnonzero(lengths == length)
        taken = data[offsets[rows][:, None] + np.arange(length)]
        out[rows, length:] = np.where(taken[:, :1] & 0x80, 0xFF, 0)
        out[rows, :length] = taken[:, ::-1]
    valid = None if texts.null_count == 0 else pc.is_valid(texts)
    scale = kind.scale or 0
    buffers = [None, pa.py_buffer(out.tobytes())]
    made = pa.Array.from_buffers(pa.decimal128(38, scale), len(lengths), buffers)
    made = made if valid is None else pc.if_else(valid, made, pa.nulls(len(lengths), made.type))
    return made.cast(type_to_arrow(kind))
