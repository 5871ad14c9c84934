"""Signed rows in which equal rows with both signs cancel.

INVARIANT  a floating-point number is compared by its text as well: 0.0 and -0.0 are two values.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType


def net_rows(rows: DataFrame) -> DataFrame:
    """`rows`: the last column is the sign. Each row once, with `n` in its place: the sum of its signs, never 0.

    A group is one struct: each column that an aggregate names is ten calls to the JVM.
    """
    *fields, sign = rows.schema.fields
    names = [field.name for field in fields]
    floats = [one.name for one in fields if isinstance(one.dataType, FloatType | DoubleType)]
    total = sf.expr(f"sum({sign.name}) as n")
    if not names:
        return rows.agg(total).where("n <> 0")
    group = ", ".join([*names, *(f"cast({name} as string)" for name in floats)])
    keyed = rows.selectExpr(f"struct({group}) as k", f"struct({', '.join(names)}) as v", sign.name).groupBy(
        "k"
    )
    net = keyed.agg(sf.expr("any_value(v) as v"), total) if floats else keyed.agg(total)
    return net.where("n <> 0").selectExpr("v.*" if floats else "k.*", "n")


def repeated_rows(net: DataFrame) -> DataFrame:
    """Each row of `net_rows` as often as `n` says, none where that is negative; without `n`."""
    rows = net.where("n > 0").selectExpr("* except (n)", "explode(array_repeat(0, cast(n as int))) as n")
    return rows.selectExpr("* except (n)")
