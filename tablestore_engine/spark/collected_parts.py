"""Changed rows of a part of a plan, and the keys of changed parts: evaluated once, in the driver, for all their places.

CHANGE     up to how many changed parts are literals of a plan, by which files are pruned
INVARIANT  a row or key comes back with the value that it had: types are those of equal_values.is_carried.
WHY        a node with a key needs its changed parts and changed rows in several places. As values of the plan they cost
           one evaluation, and the optimizer pushes them down to scans, below joins and aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.trace_steps import Step
from tablestore_engine.runtime.moments import datetime_text
from tablestore_engine.spark.arrow_frame import frame_of_rows
from tablestore_engine.spark.net_rows import net_rows

Collect = Callable[[DataFrame], pa.Table]  # runs a frame over the files that it needs
ROWS_MAX = 1_000_000  # more changed rows of one node are not collected: there are no deltas
LITERALS_MAX = 200  # more values of a column are joined; plan_conditions does not look at longer lists
_SIGN = st.StructField("n", st.IntegerType(), False)


@dataclass(frozen=True)
class NetTable:
    """`rows`: with `n`, how often more than before. `schema`: without it."""

    rows: pa.Table
    schema: st.StructType

    def signed(self, factor: int) -> pa.Table:
        """Each row as often as it is there more or less, with its sign times `factor`."""
        net = np.asarray(self.rows.column("n"))
        index = np.repeat(np.arange(len(net)), np.abs(net))
        rows = self.rows.drop_columns(["n"]).take(pa.array(index))
        return rows.append_column("n", pa.array(np.sign(net[index]) * factor, pa.int32()))

    def frame(self, session: SparkSession, factor: int) -> DataFrame:
        """Of these rows."""
        return frame_of_rows(session, self.signed(factor), st.StructType([*self.schema.fields, _SIGN]))

    def states(self) -> tuple[list[str | None], list[str | None]] | None:
        """Of a part with one row: its values as SQL, None for NULL, before and after. None: a value has no SQL."""
        net = np.asarray(self.rows.column("n"))
        assert sorted(net) == [-1, 1], "a part with other than one row"
        found = []
        for sign in (-1, 1):
            row = self.rows.slice(int(np.flatnonzero(net == sign)[0]), 1)
            texts: list[str | None] = []
            for at, field in enumerate(self.schema.fields):
                if row.column(at).null_count:
                    texts.append(None)
                    continue
                known = PartKeys(row.select([at]), st.StructType([field])).texts(0)
                if known is None:
                    return None
                texts.append(known[0])
            found.append(texts)
        return found[0], found[1]


FindNet = Callable[[Step], NetTable | None]


@dataclass(frozen=True)
class NetColumns:
    """Some columns of changed rows, by their positions."""

    net: NetTable
    positions: tuple[int, ...]

    def rows(self) -> pa.Table:
        """Each as often as it is there."""
        columns = [self.net.rows.column(at) for at in self.positions]
        return pa.table(columns, names=[f"c{at}" for at in range(len(columns))])

    def schema(self) -> st.StructType:
        """Of these rows."""
        found = (self.net.schema.fields[at] for at in self.positions)
        return st.StructType([st.StructField(f"c{at}", one.dataType) for at, one in enumerate(found)])


@dataclass(frozen=True)
class PartKeys:
    """Keys of parts, each once."""

    rows: pa.Table
    schema: st.StructType

    def frame(self, session: SparkSession) -> DataFrame:
        """A column for each part of the key."""
        return frame_of_rows(session, self.rows, self.schema)

    def has_null(self, at: int) -> bool:
        """Of one column."""
        return bool(self.rows.column(at).null_count)

    def texts(self, at: int) -> tuple[str, ...] | None:
        """SQL of the values of one column without NULL; None: they are too many, or have no SQL."""
        values = pc.unique(self.rows.column(at)).drop_null()
        if len(values) > LITERALS_MAX:
            return None
        write = _writer(self.schema.fields[at].dataType)
        try:
            return None if write is None else tuple(map(write, values))
        except (OverflowError, ValueError):  # a date beyond Python's years
            return None

    def row_texts(self) -> tuple[str, ...] | None:
        """SQL of the keys without NULL, each a tuple; None as for texts."""
        writers = [_writer(field.dataType) for field in self.schema.fields]
        if self.rows.num_rows > LITERALS_MAX or None in writers:
            return None
        rows = zip(*self.rows.columns, strict=True)
        try:
            return tuple(
                f"({', '.join(write(one) for write, one in zip(writers, row, strict=True) if write)})"
                for row in rows
            )
        except (OverflowError, ValueError):
            return None


class CollectedParts:
    """Of one plan; steps that are equal are evaluated once."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect
        self._rows: dict[Step, NetTable] = {}
        self._keys: dict[Step, PartKeys] = {}

    def rows(self, step: Step, find: FindNet, make: Callable[[Step], DataFrame]) -> NetTable:
        """`find`: without a job, if it can. `make`: the signed rows of the step, the sign last. Raises NoDelta."""
        if step not in self._rows:
            self._rows[step] = find(step) or NetTable(*self._collected(net_rows(_numbered(make(step)))))
        return self._rows[step]

    def keys(self, step: Step, make: Callable[[], DataFrame | Sequence[NetColumns]]) -> PartKeys:
        """`make`: keys of the step, some more than once, as a frame or as columns of changed rows. Raises NoDelta."""
        if step not in self._keys:
            made = make()
            if isinstance(made, DataFrame):
                rows, schema = self._collected(_numbered(made))
            else:
                rows = pa.concat_tables([one.rows() for one in made])
                schema = made[0].schema()
            self._keys[step] = PartKeys(rows.group_by(rows.column_names).aggregate([]), schema)
        return self._keys[step]

    def _collected(self, frame: DataFrame) -> tuple[pa.Table, st.StructType]:
        rows = self._collect(frame.limit(ROWS_MAX + 1))
        if rows.num_rows > ROWS_MAX:
            raise NoDelta(f"more than {ROWS_MAX:,} changed rows below an operation that is not linear")
        fields = [st.StructField(one.name, one.dataType) for one in frame.schema.fields if one.name != "n"]
        return rows, st.StructType(fields)


def _numbered(frame: DataFrame) -> DataFrame:
    return frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))


def _writer(type_: st.DataType) -> Callable[[pa.Scalar], str] | None:
    """What writes a value as SQL of just this type."""
    match type_:
        case st.BooleanType():
            return lambda one: str(one.as_py()).lower()
        case st.IntegralType() | st.DecimalType():
            return lambda one: f"cast('{one.as_py()}' as {type_.simpleString()})"
        case st.StringType():
            return lambda one: f"cast(X'{one.as_buffer().to_pybytes().hex()}' as string)"
        case st.BinaryType():
            return lambda one: f"X'{one.as_py().hex()}'"
        case st.DateType():
            return lambda one: f"cast('{one.as_py()}' as date)"
        case st.TimestampType():
            return lambda one: f"cast('{datetime_text(one.as_py())}' as timestamp)"
        case _:
            return None
