"""The texts of types without pyspark are those of pyspark's own types."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.spark.spark_types import spark_type
from tablestore_engine.spark.type_ddl import has_spark_type, shown_type, spark_ddl

ATOMIC = [
    *map(
        DataType,
        ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "CHAR", "VARCHAR"),
    ),
    *map(DataType, ("BINARY", "VARBINARY", "TIMESTAMP", "TIMESTAMP_LTZ", "DECIMAL")),
    DataType("DECIMAL", precision=38, scale=9),
]
INT = DataType("INT")
NESTED = [
    DataType("ARRAY", element=DataType("DECIMAL", precision=5, scale=2)),
    DataType("MULTISET", element=INT),
    DataType("MAP", key=INT, value=DataType("ARRAY", element=INT)),
]


@pytest.mark.parametrize("type_", [*ATOMIC, *NESTED], ids=str)
def test_text_of_a_type_is_the_one_that_spark_writes(type_: DataType) -> None:
    """`simpleString` of the Spark type, which DDL is made of."""
    assert has_spark_type(type_)
    assert spark_ddl(type_) == shown_type(type_) == spark_type(type_).simpleString()


def test_text_of_a_struct_quotes_its_names() -> None:
    """Spark's own `simpleString` does not, and could not be read back."""
    row = DataType("ROW", fields=(DataField(0, "a b", INT), DataField(1, "c", ATOMIC[-1])))
    assert spark_ddl(row) == "struct<`a b`:int,`c`:decimal(38,9)>"


@pytest.mark.parametrize("text", ["TIME(0)", "BLOB", "TIMESTAMP(9)", "TIMESTAMP(7) WITH LOCAL TIME ZONE"])
def test_type_that_spark_does_not_have_is_refused_in_ddl_and_shown_as_the_format_writes_it(text: str) -> None:
    """Alone, and inside another type: TS1508 for both functions."""
    alone = parse_type(text)
    for type_ in (alone, DataType("ARRAY", element=alone)):
        assert not has_spark_type(type_)
        assert text.lower() in shown_type(type_)
        for make in (spark_ddl, spark_type):
            with pytest.raises(Unsupported, match="TS1508"):
                make(type_)
