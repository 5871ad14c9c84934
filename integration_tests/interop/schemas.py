"""Tables as the tests describe them: columns with Paimon types, as schema JSON and as Arrow, without our engine.

INVARIANT  field ids are stable: `ids` goes with the column through renames and is never given again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

Type = str | tuple[Any, ...]

_PLAIN: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
}


def arrow_type(wanted: Type) -> pa.DataType:
    """The Arrow type of a Paimon type, timestamps in the unit that Paimon's parquet needs."""
    if isinstance(wanted, tuple):
        if wanted[0] == "ARRAY":
            return pa.list_(pa.field("element", arrow_type(wanted[1])))
        if wanted[0] == "MAP":
            return pa.map_(arrow_type(wanted[1]), arrow_type(wanted[2]))
        return pa.struct([pa.field(name, arrow_type(child)) for name, child in wanted[1]])
    if wanted in _PLAIN:
        return _PLAIN[wanted]
    numbers = [int(n) for n in re.findall(r"\d+", wanted)]
    root = wanted.split("(")[0]
    if root == "DECIMAL":
        return pa.decimal128(*numbers)
    if root in {"VARCHAR", "CHAR"}:
        return pa.string()
    if root in {"VARBINARY", "BINARY"}:
        return pa.binary()
    if root == "TIME":
        return pa.time32("ms")
    if root == "TIMESTAMP":
        unit = "ms" if numbers[0] <= 3 else "us"
        return pa.timestamp(unit, tz="UTC" if wanted.endswith("LOCAL TIME ZONE") else None)
    raise ValueError(wanted)


def type_json(wanted: Type, ids: Iterator[int], *, required: bool = False) -> Any:
    """The JSON form; `ids` numbers nested fields."""
    end = " NOT NULL" if required else ""
    if not isinstance(wanted, tuple):
        return wanted + end
    if wanted[0] == "ARRAY":
        return {"type": "ARRAY" + end, "element": type_json(wanted[1], ids)}
    if wanted[0] == "MAP":
        key = type_json(wanted[1], ids, required=True)
        return {"type": "MAP" + end, "key": key, "value": type_json(wanted[2], ids)}
    fields = [{"id": next(ids), "name": name, "type": type_json(child, ids)} for name, child in wanted[1]]
    return {"type": "ROW" + end, "fields": fields}


@dataclass(frozen=True)
class Column:
    """One column; nested fields take the ids from 1000 × (id + 1) on, so they never move.

    `default`: what writes store for NULL, as the schema spells it and as a plain value.
    """

    id: int
    name: str
    type: Type
    default: tuple[str, Any] | None = None


@dataclass(frozen=True)
class Schema:
    """One version of a table's schema."""

    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    def arrow(self) -> pa.Schema:
        """The rows as Arrow."""
        required = {*self.keys}
        return pa.schema([pa.field(c.name, arrow_type(c.type), c.name not in required) for c in self.columns])

    def json(self, schema_id: int = 0) -> str:
        """The text of `schema/schema-<id>`."""
        fields, highest = [], 0
        for column in self.columns:
            ids = iter(range(1000 * (column.id + 1), 1000 * (column.id + 2)))
            stored = type_json(column.type, ids, required=column.name in self.keys)
            default = {} if column.default is None else {"defaultValue": column.default[0]}
            fields.append({"id": column.id, "name": column.name, "type": stored, **default})
            highest = max(highest, column.id, next(ids) - 1 if isinstance(column.type, tuple) else 0)
        document = {
            "version": 3,
            "id": schema_id,
            "fields": fields,
            "highestFieldId": highest,
            "partitionKeys": list(self.partitions),
            "primaryKeys": list(self.keys),
            "options": dict(self.options),
            "timeMillis": 1_700_000_000_000,
        }
        return json.dumps(document)

    def with_options(self, **options: str) -> Schema:
        """The same table with more options; `_` in a name stands for `-`, `__` for `.`."""
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        return replace(self, options={**self.options, **named})


def schema(columns: Mapping[str, Type], **rest: Any) -> Schema:
    """A first version: ids count from 0."""
    listed = tuple(Column(number, name, wanted) for number, (name, wanted) in enumerate(columns.items()))
    return Schema(listed, **rest)
