"""Types as Spark SQL writes them, without pyspark: for DDL, and for people who list a table.

INVARIANT  `spark_ddl` is the text of the type that spark_types.spark_type makes (tests/unit/spark/test_type_ddl.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import DataField, DataType, is_fine_timestamp
from tablestore_engine.format.type_text import type_to_text
from tablestore_engine.sql.scanner import quote_name

_NAMES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "CHAR": "string",
    "VARCHAR": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP_LTZ": "timestamp",
    "VARIANT": "variant",
}


def no_spark_type(type_: DataType) -> Unsupported:
    """The error TS1508."""
    return Unsupported(
        "TS1508",
        f"type {type_to_text(type_)} cannot be read in Spark",
        why="Spark has no type for it that reads the stored form",
        fix="read the table through the Python API (to_arrow), or leave the column out",
    )


def has_spark_type(type_: DataType) -> bool:
    """Whether Spark has one: not for TIME, BLOB, VECTOR and timestamps in nanoseconds, nor for types that contain them.

    WHY  Spark cuts nanoseconds off: equal rows, keys and counts of such values would be wrong without a word.
    """
    known = {*_NAMES, "DECIMAL", "ARRAY", "MULTISET", "MAP", "ROW"}
    return all(part.root in known and not is_fine_timestamp(part) for part in type_.walk())


def spark_ddl(type_: DataType) -> str:
    """The type as Spark SQL writes it. Raises Unsupported TS1508 for types Spark does not have."""
    if type_.root == "DECIMAL":
        return f"decimal({type_.precision or 10},{type_.scale or 0})"
    if type_.root == "ARRAY" and type_.element is not None:
        return f"array<{spark_ddl(type_.element)}>"
    if type_.root == "MULTISET" and type_.element is not None:
        return f"map<{spark_ddl(type_.element)},int>"
    if type_.root == "MAP" and type_.key is not None and type_.value is not None:
        return f"map<{spark_ddl(type_.key)},{spark_ddl(type_.value)}>"
    if type_.root == "ROW":
        return "struct<" + ",".join(f"{quote_name(f.name)}:{spark_ddl(f.type)}" for f in type_.fields) + ">"
    if type_.root not in _NAMES or is_fine_timestamp(type_):
        raise no_spark_type(type_)
    return _NAMES[type_.root]


def shown_type(type_: DataType) -> str:
    """For descriptions of tables: as Spark SQL writes it, else as the format does, in lower case."""
    return spark_ddl(type_) if has_spark_type(type_) else type_to_text(type_).lower()


def columns_ddl(fields: Iterable[DataField]) -> str:
    """Column definitions for CREATE TABLE; nullability is not repeated, readers must not trust it."""
    return ", ".join(f"{quote_name(f.name)} {spark_ddl(f.type)}" for f in fields)
