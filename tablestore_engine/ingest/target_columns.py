"""The columns that a batch needs of its table, and its rows in them.

CHANGE     when a table follows its source's columns
Rules      a column that is new is added, one whose type became wider is widened, one that messages lack is NULL;
           none is ever dropped. Another type than the table's is an error that names column and message, unless the
           caller has said it: then each value is converted, or its message cannot be read.
INVARIANT  nothing is rounded or cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    STRING_LENGTH,
    VOID,
    DataField,
    DataType,
)
from tablestore_engine.format.evolution_cast import is_widening
from tablestore_engine.format.safe_cast import safe_cast
from tablestore_engine.format.schema import assign_type_ids
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.ingest.decoded_messages import (
    DecodedMessages,
    DecodedRows,
    UnreadableMessage,
    first_numbers,
    refusal,
)
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange

_DIGITS_MAX = 38
PlaceOf = Callable[[int], str]


@dataclass(frozen=True)
class Known:
    """`fields`: of the table, or of the caller where there is none yet; `said`: types of the caller, by lower name."""

    fields: Sequence[DataField]
    said: Mapping[str, DataType]
    rule: OnSchemaChange
    table: str
    is_new: bool

    @property
    def types(self) -> Mapping[str, DataType]:
        """Of columns whose messages carry no types, by lower name."""
        return {**{one.name.lower(): one.type for one in self.fields}, **self.said}


def plan_columns(changes: DecodedMessages, known: Known, place: PlaceOf) -> tuple[DataField, ...]:
    """Raises FixRequest TS1422, FixData TS1423; `place` says where a message lies."""
    fields = {one.name.lower(): one for one in known.fields}
    firsts = first_numbers(changes.parts)
    may_add = known.rule is OnSchemaChange.APPEND_NEW_COLUMNS or (known.is_new and not known.fields)
    _check_typed(changes, known, place)
    for part in sorted((one for one in changes.parts if len(one.numbers)), key=_first):
        for name, kind in part.types.items():
            if kind == VOID:
                continue
            key = name.lower()
            have = fields.get(key)
            if have is not None:
                fields[key] = replace(have, type=_agreed(have, kind, known, place(firsts[key])))
            elif may_add:
                fields[key] = DataField(0, name, kind.with_nullable(True))
            elif known.rule is OnSchemaChange.FAIL:
                raise _differs(known, f"column {name!r} is new", place(firsts[key]))
    if known.is_new and any(key not in known.said for key in fields):  # the caller has described some of them
        order = list(dict.fromkeys(name.lower() for part in changes.parts for name in part.types))
        fields = {key: fields[key] for key in dict.fromkeys([*order, *fields]) if key in fields}
    return tuple(fields.values())


def _first(part: DecodedRows) -> int:
    return int(part.numbers[0])


def _check_typed(changes: DecodedMessages, known: Known, place: PlaceOf) -> None:
    if not changes.untyped or (known.rule is OnSchemaChange.IGNORE and known.fields):
        return
    name, number = min(changes.untyped.items(), key=lambda one: (one[1], one[0]))
    if known.fields and known.rule is OnSchemaChange.FAIL:
        raise _differs(known, f"column {name!r} is new", place(number))
    raise FixRequest(
        "TS1422",
        f"column {name!r} of the messages for {known.table} has no type",
        why=f"{place(number)} has it, and neither the message nor the table says what it is",
        fix="give its type (columns, --column), let types be taken from values (infer), or leave columns out that the "
        "table does not have (on_schema_change='ignore')",
    )


def _agreed(have: DataField, kind: DataType, known: Known, place: str) -> DataType:
    if have.name.lower() in known.said or _fits(kind, have.type):
        return have.type
    wider = _joined(have.type, kind).with_nullable(have.type.nullable)
    if known.rule is OnSchemaChange.APPEND_NEW_COLUMNS and _can_widen(have.type, wider):
        return wider
    if known.rule is OnSchemaChange.IGNORE and have.type.is_atomic and kind.is_atomic:
        return have.type
    told = f"column {have.name!r} is {type_to_text(have.type)}, the messages have {type_to_text(kind)}"
    raise _differs(known, told, place)


def _joined(have: DataType, kind: DataType) -> DataType:
    """The messages' type; of two DECIMALs the one that has room for both: (6, 2) and (6, 1) are in (7, 2)."""
    if not have.root == kind.root == "DECIMAL":
        return kind
    pairs = [(one.precision or 0, one.scale or 0) for one in (have, kind)]
    scale = max(scale for _, scale in pairs)
    precision = scale + max(precision - scale for precision, scale in pairs)
    return replace(kind, precision=precision, scale=scale) if precision <= _DIGITS_MAX else kind


def _fits(kind: DataType, have: DataType) -> bool:
    """Whether each value of the messages' type is one of the column's, lengths of texts aside."""
    if _plain(kind) == _plain(have):
        return True
    pair = (kind.root, have.root)
    if all(root in CHARACTER_ROOTS for root in pair) or all(root in BINARY_ROOTS for root in pair):
        return True
    return _can_widen(kind, have)


def _plain(kind: DataType) -> DataType:
    return assign_type_ids(kind.with_nullable(True), highest=0)[0]


def _can_widen(old: DataType, new: DataType) -> bool:
    return old.is_atomic and new.is_atomic and is_widening(old, new)


def _differs(known: Known, told: str, place: str) -> FixData:
    return FixData(
        "TS1423",
        f"the columns of {known.table} and of the messages differ at {place}",
        why=f"{told}; with on_schema_change='{known.rule}' the table does not follow",
        fix="say the column's type (columns, --column), so that values are converted, change the table, or choose "
        "another on_schema_change: append_new_columns adds and widens, ignore leaves new columns out",
    )


@dataclass(frozen=True)
class Shaped:
    """`rows` without the column of kinds; `numbers`: the message of each; `dead`: whose values do not fit."""

    rows: pa.Table
    is_put: npt.NDArray[np.bool_]
    numbers: npt.NDArray[np.int64]
    dead: Sequence[UnreadableMessage]


def shape_rows(
    parts: Sequence[DecodedRows], fields: Sequence[DataField], key: tuple[str, ...], required: frozenset[str]
) -> Shaped:
    """`required`: columns (lower case) that have a value in each row that is put."""
    dead: dict[int, str] = {}
    tables, puts, numbers = [], [], []
    for part in parts:
        columns = [_shaped(part, one, key, required, dead) for one in fields]
        tables.append(pa.table(columns, names=[one.name for one in fields]))
        puts.append(part.is_put)
        numbers.append(part.numbers)
    empty = pa.table([pa.nulls(0, type_to_arrow(one.type)) for one in fields], [one.name for one in fields])
    rows = pa.concat_tables([empty, *tables])
    is_put = np.concatenate([np.empty(0, bool), *puts])
    number = np.concatenate([np.empty(0, np.int64), *numbers])
    keep = np.flatnonzero(~np.isin(number, list(dead))) if dead else np.arange(len(number))
    order = keep[np.argsort(number[keep], kind="stable")]
    if len(order) < len(number) or (np.diff(order) < 0).any():
        rows = rows.take(pa.array(order))
    return Shaped(
        rows, is_put[order], number[order], [UnreadableMessage(at, reason) for at, reason in dead.items()]
    )


def _shaped(
    part: DecodedRows, target: DataField, key: tuple[str, ...], required: frozenset[str], dead: dict[int, str]
) -> pa.Array:
    name = target.name.lower()
    found = next((one for one in part.columns if one.lower() == name), None)
    arrow = type_to_arrow(target.type)
    column = pa.nulls(len(part.numbers), arrow) if found is None else part.columns[found]
    if column.type != arrow:
        column = _cast(column, arrow, part, target, dead)
    is_null = np.asarray(pc.is_null(column))
    if name in {one.lower() for one in key}:
        _mark(is_null, part, dead, f"column {target.name}, of the primary key, is NULL")
    elif name in required:
        _mark(is_null & part.is_put, part, dead, f"column {target.name} is NULL, and may not be")
    return _checked_length(column, part, target, dead)


def _mark(wrong: npt.NDArray[np.bool_], part: DecodedRows, dead: dict[int, str], reason: str) -> None:
    for number in part.numbers[wrong]:
        dead.setdefault(int(number), reason)


def _cast(
    column: pa.Array, arrow: pa.DataType, part: DecodedRows, target: DataField, dead: dict[int, str]
) -> pa.Array:
    try:
        return _exact(column, arrow)
    except (pa.ArrowException, ValueError):
        pass
    kept = np.ones(len(column), dtype=bool)
    for at in range(len(column)):
        try:
            _exact(column.slice(at, 1), arrow)
        except (pa.ArrowException, ValueError) as error:
            kept[at] = False
            reason = refusal(target.name, target.type, column[at], error)
            dead.setdefault(int(part.numbers[at]), reason)
    return _exact(pc.if_else(pa.array(kept), column, pa.nulls(len(column), column.type)), arrow)


def _exact(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    made = safe_cast(pa.chunked_array([column]), arrow).combine_chunks()
    return made.chunk(0) if isinstance(made, pa.ChunkedArray) else made


def _checked_length(column: pa.Array, part: DecodedRows, target: DataField, dead: dict[int, str]) -> pa.Array:
    limit, root = target.type.length, target.type.root
    if limit is None or limit == STRING_LENGTH or root not in (*CHARACTER_ROOTS, *BINARY_ROOTS):
        return column
    length = pc.utf8_length(column) if root in CHARACTER_ROOTS else pc.binary_length(column)
    wrong = np.asarray(pc.greater(length, limit).fill_null(False)) & part.is_put
    _mark(wrong, part, dead, f"column {target.name} ({type_to_text(target.type)}): longer than {limit}")
    return column
