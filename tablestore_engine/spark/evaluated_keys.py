"""The rows of a query for few keys, merged with the stored rows in Arrow: one Spark job over the query alone.

CHANGE     up to how many keys of a `changed_keys` run are evaluated in the driver
WHY        a statement that joins the keys, the query and the stored rows is three broadcasts and a shuffle. As literals
           the keys are pushed below joins and aggregates, and stored rows are needed only of keys without a new row.
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
from tablestore_engine.spark.collected_parts import PartKeys
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.jvm_connection import check_connected
from tablestore_engine.spark.merged_rows import FindRows, MergedRows, has_null, positions_in, with_kind

FEW = 10_000


@dataclass(frozen=True)
class KeyedQuery:
    """`frame`: the query, analyzed. `prune`: over fewer files. `names`: of its columns, and `key`: some of them."""

    frame: DataFrame
    prune: Callable[[DataFrame], DataFrame]
    names: Sequence[str]
    key: Sequence[str]

    def evaluate(self, keys: pa.Table, find_rows: FindRows) -> MergedRows | None:
        """`keys`: by position, each once. None: the statement has to do it."""
        keys = keys.rename_columns(list(self.key))
        if not 0 < keys.num_rows <= FEW or has_null(keys).any():
            return None
        try:
            found = collect_arrow(self.prune(self._restricted(keys)))
            rows = pa.table(found.columns, names=list(self.names))  # without NOT NULL
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

    def _restricted(self, keys: pa.Table) -> DataFrame:
        places = [f"r{at}" for at in range(len(self.names))]
        rows, asked = self.frame.toDF(*places), [places[self.names.index(one)] for one in self.key]
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
