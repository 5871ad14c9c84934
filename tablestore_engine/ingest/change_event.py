"""What one message says: a change event with rows to put and to delete, or why it is ignored.

Words      of what is ignored: HEARTBEAT, TRANSACTION, SCHEMA_CHANGE, LOGICAL_MESSAGE, MARK, TOMBSTONE, OTHER_TABLE
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

import fastavro
import pyarrow as pa

from tablestore_engine.ingest.wire_types import WireType, as_text

HEARTBEAT = "heartbeats"
TRANSACTION = "transaction markers"
SCHEMA_CHANGE = "schema changes"
LOGICAL_MESSAGE = "logical messages"
MARK = "snapshot marks"
TOMBSTONE = "tombstones without a key"
OTHER_TABLE = "other tables"
TRUNCATE = "truncates"

UNREADABLE = (
    ValueError, KeyError, TypeError, ArithmeticError, AttributeError, IndexError, RecursionError, pa.ArrowException,
    fastavro.schema.SchemaParseException,
)  # fmt: skip
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """`row`: raw values by column; of one that is taken its key counts alone. `is_whole`: a column that it does not
    have is NULL, else it is not known.
    """

    row: Row
    is_put: bool
    is_whole: bool = True


@dataclass(frozen=True)
class ChangeEvent:
    """`ignored`: why nothing follows from it. `wires`: what its values mean, None where it does not say. `table`: the
    source's name of the table. `key`: names of the primary key's columns, where it says them. `unreadable`: why its row
    is not known, of a table that may not even be meant.
    """

    changes: tuple[Change, ...] = ()
    ignored: str | None = None
    is_truncate: bool = False
    wires: Mapping[str, WireType] | None = None
    table: str | None = None
    key: tuple[str, ...] = ()
    unreadable: str | None = None

    def of_other_table(self) -> ChangeEvent:
        return replace(self, changes=(), ignored=OTHER_TABLE, is_truncate=False, unreadable=None)


class MessageReader(Protocol):
    """One format. Keeps the schemas that it has met."""

    def read(self, key: bytes | None, value: bytes | None, names: tuple[str, ...]) -> ChangeEvent:
        """`names`: the columns of the primary key, () while they are not known. Raises one of UNREADABLE."""


@dataclass(frozen=True)
class ReadRules:
    """`source_table`: a pattern; messages of other tables are ignored. `key`: columns of the primary key.
    `finds_keys`: what messages say the key is is of interest.
    """

    key: tuple[str, ...] = ()
    finds_keys: bool = False
    source_table: str | None = None
    decimals: str | None = None
    infer: bool = False
    types: Mapping[str, Any] = field(default_factory=dict)

    def wire_of(self, name: str, wire: WireType) -> WireType:
        """What the messages say of a column, as a text where the table or the caller says STRING."""
        kind = self.types.get(name.lower())
        return as_text(wire) if kind is not None and kind.root == "VARCHAR" else wire

    def takes(self, table: str | None) -> bool:
        """Whether messages of a source's table are meant."""
        if self.source_table is None or table is None:
            return True
        return fnmatch.fnmatchcase(table, self.source_table)


def parse_json(data: bytes | None) -> Any:  # noqa: ANN401 - parsed JSON
    """Numbers with a point are decimals. Raises ValueError."""
    if data is None:
        raise ValueError("neither key nor value")
    return json.loads(data, parse_float=Decimal)


def object_of(value: object, what: str) -> dict[str, Any]:
    """Raises TypeError when it is none."""
    if not isinstance(value, dict):
        raise TypeError(f"{what} is no object")
    return value


def key_changes(
    before: Row | None, after: Row, names: tuple[str, ...], *, is_whole: bool = True
) -> tuple[Change, ...]:
    """An update: the row after it; the old key goes when it is another one. What `before` leaves out did not change."""
    put = Change(after, is_put=True, is_whole=is_whole)
    if not before:
        return (put,)
    was = [(name, before.get(name)) for name in spelled(names, after)]
    if all(value is None or value == after.get(name) for name, value in was):
        return (put,)
    old = {name: after.get(name) if value is None else value for name, value in was}
    return Change(old, is_put=False), put


def spelled(names: tuple[str, ...], row: Row) -> tuple[str, ...]:
    """Names as the row writes them: tables do not mind case, sources do."""
    if all(name in row for name in names):
        return names
    have = {name.lower(): name for name in row}
    return tuple(have.get(name.lower(), name) for name in names)
