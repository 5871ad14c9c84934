"""The rows of a query for few keys, merged with the stored rows in Arrow: one Spark job over the query alone.

CHANGE     up to how many keys of a `changed_keys` run are evaluated in the driver
Steps      tables of which the query needs only rows with these keys (keyed_readings) are filtered by the driver, and
           are values of the plan → the query → stored rows of keys without a row
WHY        a statement that joins the keys, the query and the stored rows is three broadcasts and a shuffle. As literals
           the keys are pushed below joins and aggregates, and stored rows are needed only of keys without a new row.
           Arrow reads two columns of all rows in less than half of the time of a scan by Spark (decision 0172).
INVARIANT  what the statement would refuse is left to it: NULL in a key, a key with several rows, an error of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.queryplan.keyed_readings import find_keyed_readings
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.occurrences import output_ids
from tablestore_engine.spark.collected_parts import PartKeys
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.local_steps import LocalInputs
from tablestore_engine.spark.merged_rows import FindRows, MergedRows, has_null, positions_in, with_kind
from tablestore_engine.spark.plan_rows import PlanRows, TypedValues
from tablestore_engine.spark.traced_plan import TracedPlan

FEW = 10_000
ROWS_MAX, _OF_ONE_TASK = 500_000, 50_000  # rows of keys as values of a plan


@dataclass(frozen=True)
class RowsOfKeys:
    """`frame`: a query over fewer rows of some tables. `is_alone`: it reads no others."""

    frame: DataFrame
    is_alone: bool


def read_rows_of_keys(
    plan: TracedPlan, known: KnownColumns, reads: LocalInputs, ids: Sequence[int], keys: pa.Table
) -> RowsOfKeys | None:
    """The query, as far as rows with `keys` need it; other rows of it mean nothing. `ids`: of its columns that are the
    key. None: the query over all rows is as good. Raises what Spark raises.
    """
    if not plan.is_deterministic:
        return None
    given: dict[int, PlanRows] = {}
    for one in find_keyed_readings(known, reads.occurrences, ids):
        leaf = one.occurrence
        columns = list(leaf.columns.values())
        values = dict(zip(one.names, keys.columns, strict=True))
        found = reads.find_listed(leaf.table, values, columns, ROWS_MAX)
        if found is not None:
            typed = {
                number: TypedValues(column, known.attributes[number].type)
                for number, column in zip(leaf.columns, found.columns, strict=True)
            }
            given[output_ids(known.at(leaf.path))[0]] = PlanRows(typed, found.num_rows)
    if not given:
        return None
    frame = plan.over_rows(known, given, is_one_task=sum(one.count for one in given.values()) <= _OF_ONE_TASK)
    return None if frame is None else RowsOfKeys(frame, len(given) == len(reads.occurrences))


@dataclass(frozen=True)
class KeyedQuery:
    """`frame`: makes the query, analyzed. `prune`: over fewer files. `names`: of its columns, and `key`: some of them.
    `over_rows_of`: the query over rows of keys.
    """

    frame: Callable[[], DataFrame]
    prune: Callable[[DataFrame], DataFrame]
    names: Sequence[str]
    key: Sequence[str]
    over_rows_of: Callable[[pa.Table], RowsOfKeys | None]

    def evaluate(self, keys: pa.Table, find_rows: FindRows) -> MergedRows | None:
        """`keys`: by position, each once. None: the statement has to do it."""
        keys = keys.rename_columns(list(self.key))
        if not 0 < keys.num_rows <= FEW or has_null(keys).any():
            return None
        try:
            few = self.over_rows_of(keys)
            frame = self.frame() if few is None else few.frame
            is_alone = few is not None and few.is_alone
            # a query over values reads no file that could be left out
            found = collect_arrow(frame if is_alone else self.prune(self._restricted(frame, keys)))
            rows = pa.table(found.columns, names=list(self.names))  # without NOT NULL
            if is_alone:
                own = positions_in(rows.select(list(self.key)).cast(keys.schema), keys, list(self.key))
                rows = rows.filter(own.is_valid())
            found_keys = rows.select(list(self.key))
            if found_keys.group_by(list(self.key)).aggregate([]).num_rows < rows.num_rows:
                return None
            return MergedRows(
                pa.concat_tables([with_kind(rows, RowKind.INSERT), self._gone(keys, rows, find_rows)]),
                found_keys.slice(0, 0),
            )
        except (PySparkException, Py4JError, pa.ArrowException):
            check_connected()
            return None

    def _restricted(self, frame: DataFrame, keys: pa.Table) -> DataFrame:
        places = [f"r{at}" for at in range(len(self.names))]
        rows, asked = frame.toDF(*places), [places[self.names.index(one)] for one in self.key]
        types = StructType([rows.schema[one] for one in asked])
        listed = PartKeys(keys.rename_columns(asked), types)
        for at, one in enumerate(asked):
            if texts := listed.texts(at):
                rows = rows.where(f"{one} in ({', '.join(texts)})")
        if len(asked) == 1 and texts:
            return rows
        if (tuples := listed.row_texts()) is not None:
            return rows.where(f"({', '.join(asked)}) in ({', '.join(tuples)})")
        wanted = listed.frame(rows.sparkSession).toDF(*(f"k{at}" for at in range(len(asked))))
        return rows.join(wanted, [sf.expr(f"{one} = k{at}") for at, one in enumerate(asked)], "leftsemi")

    def _gone(self, keys: pa.Table, rows: pa.Table, find_rows: FindRows) -> pa.Table:
        """Stored rows of keys that the query does not give any more."""
        key = list(self.key)
        is_found = np.asarray(positions_in(keys, rows.select(key).cast(keys.schema), key).is_valid())
        missing = keys.filter(pa.array(~is_found))
        if not missing.num_rows:
            return with_kind(rows.slice(0, 0), RowKind.DELETE)
        stored = find_rows(missing).rows.select(list(self.names)).cast(rows.schema)
        return with_kind(stored, RowKind.DELETE)
