"""Signed rows in which equal rows with both signs cancel.

INVARIANT  a floating-point number is compared by its text as well: 0.0 and -0.0 are two values.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType


def net_rows(rows: DataFrame) -> DataFrame:
    """`rows`: the last column is the sign. Each row once, with `n` in its place: the sum of its signs, never 0."""
    *fields, sign = rows.schema.fields
    groups = [field.name for field in fields]
    floats = [one.name for one in fields if isinstance(one.dataType, FloatType | DoubleType)]
    groups += [f"cast({name} as string)" for name in floats]
    values = [sf.any_value(field.name).alias(f"v{at}") for at, field in enumerate(fields)]
    net = rows.groupBy(*map(sf.expr, groups)).agg(*values, sf.sum(sign.name).alias("n")).where("n <> 0")
    return net.select(*[sf.col(f"v{at}").alias(field.name) for at, field in enumerate(fields)], "n")


def repeated_rows(net: DataFrame) -> DataFrame:
    """Each row of `net_rows` as often as `n` says, none where that is negative; without `n`."""
    names = net.columns[:-1]
    rows = net.where("n > 0").selectExpr(*names, "explode(array_repeat(0, cast(n as int))) as n")
    return rows.select(*names)
