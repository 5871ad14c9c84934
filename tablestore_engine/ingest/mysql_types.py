"""Types of MySQL, as Canal tells them beside each row → what its texts mean.

CHANGE     the types of MySQL
Rules      a number that is unsigned takes the next wider type · DATETIME and TIMESTAMP are wall clocks, since Canal
           writes no zone · a DECIMAL with more than 38 digits, TIME, YEAR and what is not known stay texts or numbers
           as they are: a TIME of MySQL may be negative or longer than a day · binaries come as Latin-1 characters
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tablestore_engine.format.data_type import BIGINT, BYTES, INT, STRING, DataType
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
    """Of all columns of a table."""
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
