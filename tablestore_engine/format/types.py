"""The door to the types of the format: what a type is, its text and JSON, its Arrow form.

Names      DataType, DataField   the tree (data_type.py)
           parse_type, type_to_text, type_from_json, type_to_json, field_from_json, field_to_json   (type_text.py)
           type_to_arrow, type_from_arrow, field_to_arrow, field_with_ids, timestamp_unit   (type_arrow.py)
"""

from __future__ import annotations

from tablestore_engine.format.data_type import BIGINT, BYTES, INT, STRING, STRING_LENGTH, DataField, DataType
from tablestore_engine.format.type_arrow import (
    field_to_arrow,
    field_with_ids,
    timestamp_unit,
    type_from_arrow,
    type_to_arrow,
)
from tablestore_engine.format.type_text import (
    field_from_json,
    field_to_json,
    parse_type,
    type_from_json,
    type_to_json,
    type_to_text,
)

__all__ = [
    "BIGINT",
    "BYTES",
    "INT",
    "STRING",
    "STRING_LENGTH",
    "DataField",
    "DataType",
    "field_from_json",
    "field_to_arrow",
    "field_to_json",
    "field_with_ids",
    "parse_type",
    "timestamp_unit",
    "type_from_arrow",
    "type_from_json",
    "type_to_arrow",
    "type_to_json",
    "type_to_text",
]
