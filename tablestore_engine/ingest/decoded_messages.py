"""Messages as columns: rows that are put and taken, and what cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.display import visible
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.ingest.wire_types import RefusedError

_REASON_MAX = 500
_SHOWN_MAX = 80


@dataclass(frozen=True)
class DecodedRows:
    """`columns`: in the types of `types`, which are the messages'; of a row that is taken only its key has a meaning.
    `numbers`: the message of each row, rising.
    """

    columns: Mapping[str, pa.Array]
    types: Mapping[str, DataType]
    is_put: npt.NDArray[np.bool_]
    numbers: npt.NDArray[np.int64]

    def without(self, numbers: npt.NDArray[np.int64]) -> DecodedRows:
        keep = ~np.isin(self.numbers, numbers)
        if keep.all():
            return self
        mask = pa.array(keep)
        return DecodedRows(
            {name: one.filter(mask) for name, one in self.columns.items()},
            self.types,
            self.is_put[keep],
            self.numbers[keep],
        )


@dataclass(frozen=True)
class UnreadableMessage:
    """Message `number` of the batch."""

    number: int
    reason: str


@dataclass
class DecodedMessages:
    """`tables`: names of source tables → the first message of each. `keys`: what messages say the key is → the first
    one. `untyped`: columns that nobody has described → the first message with each. `truncates`: messages that empty
    the table.
    """

    parts: list[DecodedRows] = field(default_factory=list)
    dead: list[UnreadableMessage] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    truncates: list[int] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)
    keys: dict[tuple[str, ...], int] = field(default_factory=dict)
    untyped: dict[str, int] = field(default_factory=dict)

    def meet(self, table: str | None, number: int) -> None:
        if table is not None:
            self.tables[table] = min(number, self.tables.get(table, number))

    def meet_key(self, names: tuple[str, ...], number: int) -> None:
        if names:
            self.keys[names] = min(number, self.keys.get(names, number))

    def add(self, other: DecodedMessages) -> None:
        self.parts += other.parts
        self.dead += other.dead
        self.ignored += other.ignored
        self.truncates += other.truncates
        for table, number in other.tables.items():
            self.meet(table, number)
        for names, number in other.keys.items():
            self.meet_key(names, number)


def note(error: BaseException) -> str:
    """The reason in one line, so long that it helps."""
    text = f"no {error.args[0]}" if type(error) is KeyError and error.args else str(error)
    return visible(text.splitlines()[0] if text else type(error).__name__)[:_REASON_MAX]


def refusal(name: str, kind: DataType, value: object, error: BaseException) -> str:
    """Why a value is none of its column, in one line: column, value, type, and the reason where it is one of ours."""
    shown = visible(str(value))
    shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}…"
    why = f": {note(error)}" if isinstance(error, RefusedError) else ""
    return f"column {name}: {shown!r} is no {type_to_text(kind)}{why}"[:_REASON_MAX]


def first_numbers(parts: Sequence[DecodedRows]) -> dict[str, int]:
    """Column in lower case → the first message that has it."""
    found: dict[str, int] = {}
    for part in parts:
        if len(part.numbers):
            for name in part.columns:
                number = int(part.numbers[0])
                found[name.lower()] = min(number, found.get(name.lower(), number))
    return found
