"""Messages of Canal, Maxwell and Oracle GoldenGate, in JSON.

CHANGE     the decoding of Canal, Maxwell and GoldenGate messages
Updates    Canal and Maxwell have the whole row, and of the old one what changed. GoldenGate may leave out what did not:
           it is taken from `before`, and what stands in neither is not known (Change.is_whole)
CHANGE     the types of MySQL
Rules      a number that is unsigned takes the next wider type · DATETIME and TIMESTAMP are wall clocks, since Canal
           writes no zone · a DECIMAL with more than 38 digits, TIME, YEAR and what is not known stay texts or numbers
           as they are: a TIME of MySQL may be negative or longer than a day · binaries come as Latin-1 characters
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablestore_engine.format.data_type import BIGINT, BYTES, INT, STRING, DataType
from tablestore_engine.ingest.change_event import (
    HEARTBEAT,
    MARK,
    SCHEMA_CHANGE,
    TOMBSTONE,
    Change,
    ChangeEvent,
    key_changes,
    object_of,
    parse_json,
)
from tablestore_engine.ingest.wire_types import Reading, WireType

_TYPE = re.compile(r"(\w+)(?:\(([^)]*)\))?(.*)")
_INTEGERS = {"tinyint": "TINYINT", "smallint": "SMALLINT", "mediumint": "INT", "int": "INT", "integer": "INT"}
_WIDER = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT"}
_BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_OTHERS = {
    "float": DataType("FLOAT"),
    "double": DataType("DOUBLE"),
    "real": DataType("DOUBLE"),
    "date": DataType("DATE"),
    "year": INT,
    "bit": BIGINT,
}
_DIGITS_MAX = 38


def mysql_row(types: Mapping[str, str]) -> Mapping[str, WireType]:
    return {name: WireType(_type(text), Reading.TEXT) for name, text in types.items()}


def _type(text: str) -> DataType:
    found = _TYPE.fullmatch(text.strip().lower())
    if found is None:
        return STRING
    name, parameters, behind = found[1], found[2] or "", found[3]
    is_unsigned = "unsigned" in behind
    if name in _INTEGERS:
        root = _INTEGERS[name]
        is_same = not is_unsigned or name == "mediumint"  # 24 bits have room in an INT
        return DataType(root if is_same else _WIDER[root])
    if name == "bigint":
        return DataType("DECIMAL", precision=20, scale=0) if is_unsigned else BIGINT
    if name in ("decimal", "numeric"):
        digits, _, scale = parameters.partition(",")
        if int(digits or 10) > _DIGITS_MAX:
            return STRING
        return DataType("DECIMAL", precision=int(digits or 10), scale=int(scale or 0))
    if name in ("datetime", "timestamp"):
        return DataType("TIMESTAMP", precision=3 if int(parameters or 0) <= 3 else 6)
    if name in _BINARIES:
        return BYTES
    return _OTHERS.get(name, STRING)


_MAXWELL_PUTS = frozenset({"insert", "update", "bootstrap-insert"})
_MAXWELL_MARKS = frozenset({"bootstrap-start", "bootstrap-complete"})
_MAXWELL_DDL = ("table-", "database-")


def _names_of(told: object, what: str) -> tuple[str, ...]:
    if told is None:
        return ()
    if not isinstance(told, list) or not all(isinstance(one, str) for one in told):
        raise TypeError(f"{what} is no list of names")
    return tuple(told)


@dataclass
class CanalJson:
    """Remembers what it has made of the types of a table."""

    _wires: dict[tuple[tuple[str, str], ...], Mapping[str, WireType]] = field(default_factory=dict)

    def read(self, key: bytes | None, value: bytes | None, names: tuple[str, ...]) -> ChangeEvent:  # noqa: ARG002 - the key says nothing
        if value is None:
            return ChangeEvent(ignored=TOMBSTONE)
        message = object_of(parse_json(value), "the message")
        kind, table = message["type"], _table(message)
        if kind == "TRUNCATE":
            return ChangeEvent(is_truncate=True, table=table)
        if message.get("isDdl"):
            return ChangeEvent(ignored=SCHEMA_CHANGE, table=table)
        rows = _rows(message["data"], "data")
        if kind == "UPDATE":
            changes = self._updates(rows, message.get("old"), names)
        elif kind in ("INSERT", "DELETE"):
            changes = tuple(Change(row, is_put=kind == "INSERT") for row in rows)
        else:
            raise ValueError(f"unknown type {kind!r}")
        wires = self._types(message.get("mysqlType"))
        return ChangeEvent(
            changes, wires=wires, table=table, key=_names_of(message.get("pkNames"), "pkNames")
        )

    @staticmethod
    def _updates(
        rows: Sequence[Mapping[str, Any]], old: object, names: tuple[str, ...]
    ) -> tuple[Change, ...]:
        before = [{}] * len(rows) if old is None else _rows(old, "old", may_be_empty=True)
        if len(before) != len(rows):
            raise ValueError(f"{len(rows)} rows in data, {len(before)} in old")
        return tuple(
            change
            for was, row in zip(before, rows, strict=True)
            for change in key_changes(was, row, names)
        )  # fmt: skip

    def _types(self, told: object) -> Mapping[str, WireType] | None:
        if told is None:
            return None
        types = tuple((name, str(text)) for name, text in object_of(told, "mysqlType").items())
        if types not in self._wires:
            self._wires[types] = mysql_row(dict(types))
        return self._wires[types]


def _rows(told: object, what: str, *, may_be_empty: bool = False) -> list[dict[str, Any]]:
    if not isinstance(told, list) or not (told or may_be_empty):
        raise TypeError(f"{what} is no list of rows")
    return [{} if one is None and may_be_empty else object_of(one, f"a row of {what}") for one in told]


def _table(message: Mapping[str, Any]) -> str | None:
    if not message.get("table"):
        return None
    return f"{message.get('database')}.{message['table']}"


@dataclass
class MaxwellJson:
    """Its values carry no types."""

    def read(self, key: bytes | None, value: bytes | None, names: tuple[str, ...]) -> ChangeEvent:
        if value is None:
            return _maxwell_tombstone(key, names)
        message = object_of(parse_json(value), "the message")
        kind, table = message["type"], _table(message)
        if kind == "heartbeat":
            return ChangeEvent(ignored=HEARTBEAT)
        if kind in _MAXWELL_MARKS:
            return ChangeEvent(ignored=MARK, table=table)
        if kind.startswith(_MAXWELL_DDL):
            is_truncate = str(message.get("sql", "")).lstrip().lower().startswith("truncate")
            return ChangeEvent(
                ignored=None if is_truncate else SCHEMA_CHANGE, is_truncate=is_truncate, table=table
            )
        row = object_of(message["data"], "data")
        if kind == "delete":
            changes: tuple[Change, ...] = (Change(row, is_put=False),)
        elif kind in _MAXWELL_PUTS:
            old = message.get("old")
            before = object_of(old, "old") if kind == "update" and old is not None else None
            changes = key_changes(before, row, names)
        else:
            raise ValueError(f"unknown type {kind!r}")
        return ChangeEvent(
            changes, table=table, key=_names_of(message.get("primary_key_columns"), "primary_key_columns")
        )


def _maxwell_tombstone(key: bytes | None, names: tuple[str, ...]) -> ChangeEvent:
    """Its keys are {database, table, pk.NAME: value}."""
    if key is None or not key.startswith(b"{"):
        return ChangeEvent(ignored=TOMBSTONE)
    said = object_of(parse_json(key), "the key")
    row = {name.removeprefix("pk."): one for name, one in said.items() if name.startswith("pk.")}
    if not row or any(row.get(name) is None for name in names):
        return ChangeEvent(ignored=TOMBSTONE)
    return ChangeEvent((Change(row, is_put=False),), table=_table(said))


@dataclass
class OggJson:
    """Its values carry no types."""

    def read(self, key: bytes | None, value: bytes | None, names: tuple[str, ...]) -> ChangeEvent:  # noqa: ARG002 - the key says nothing
        if value is None:
            return ChangeEvent(ignored=TOMBSTONE)
        message = object_of(parse_json(value), "the message")
        kind, table = message["op_type"], message.get("table")
        told = _names_of(message.get("primary_keys"), "primary_keys")
        if kind == "T":
            return ChangeEvent(is_truncate=True, table=table)
        if kind == "I":
            changes: tuple[Change, ...] = (Change(object_of(message["after"], "after"), is_put=True),)
        elif kind == "D":
            changes = (Change(object_of(message["before"], "before"), is_put=False),)
        elif kind == "U":
            before = object_of(message.get("before") or {}, "before")
            after = object_of(message["after"], "after")
            changes = key_changes(before, {**before, **after}, names, is_whole=False)
        else:
            raise ValueError(f"unknown op_type {kind!r}")
        return ChangeEvent(changes, table=table, key=told)
