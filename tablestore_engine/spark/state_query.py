"""The state of groups of one query: computed over all rows, for some groups, or followed by changes.

CHANGE     up to how many groups a `changed_keys` model keeps state
Steps      contributions of changed rows + the state before → the new state, and keys to evaluate → their state, from
           the query's own tables → rows of the query for all touched groups (state_results)
INVARIANT  a group whose result does not follow from its state (a sum without room) is evaluated by the query itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from tablestore_engine.format.group_state_file import GroupState
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.queryplan.group_state import StateRoot
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.trace_steps import Column, Signed, Stored
from tablestore_engine.spark.arrow_frame import frame_of_rows, known_rows
from tablestore_engine.spark.delta_query import all_contributions, columns_of
from tablestore_engine.spark.fetch_rows import collect_arrow
from tablestore_engine.spark.merged_rows import FindRows, MergedRows, has_null, positions_in, with_kind
from tablestore_engine.spark.merged_state import ChangedState, key_names, merge_state, without
from tablestore_engine.spark.spark_internals import Jvm
from tablestore_engine.spark.state_results import StateResults
from tablestore_engine.spark.traced_answers import GROUPS_MAX
from tablestore_engine.spark.traced_plan import TracedPlan

FEW_GROUPS = 50_000  # rows of more are computed by a job, on all cores


@dataclass(frozen=True)
class MergedGroups:
    """`merged`: rows of the query, as those of deltas. `state`: of all groups."""

    merged: MergedRows
    state: GroupState


@dataclass(frozen=True)
class StateQuery:
    """`prune`: a frame over fewer files. `names`: of the result's columns; `key`: some of them."""

    session: SparkSession
    prune: Callable[[DataFrame], DataFrame]
    plan: TracedPlan
    known: KnownColumns
    root: StateRoot
    names: Sequence[str]
    key: Sequence[str]

    def read_all(self) -> pa.Table | None:
        """The state of all groups; None: there are more than GROUPS_MAX."""
        found = self._collected(self._rows(), GROUPS_MAX + 1)
        return None if found.num_rows > GROUPS_MAX else found

    def all_rows(self, state: pa.Table) -> pa.Table | None:
        """Rows of the query, columns by position; None where some do not follow from their state."""
        if StateResults(self.plan, self.root).unknown(state).any():
            return None
        return self._results(state)

    def follow(self, found: pa.Table, state: GroupState, find_rows: FindRows) -> MergedGroups:
        """`found`: contributions of the changed rows. `find_rows`: of the stored result. Raises NoDelta."""
        return self._finish(
            merge_state(found, self.root.slots, state, is_total=self.root.is_total), find_rows
        )

    def evaluate(self, keys: pa.Table, state: GroupState, find_rows: FindRows) -> MergedGroups:
        """All groups that may differ have `keys`, by position. Raises NoDelta."""
        return self._finish(without(keys, state), find_rows)

    def _finish(self, changed: ChangedState, find_rows: FindRows) -> MergedGroups:
        fresh = changed.rows.slice(0, 0)
        if changed.again.num_rows:
            fresh = self._collected(self._of_keys(self._rows(), changed.again), GROUPS_MAX + 1)
        touched, state = changed.with_evaluated(fresh)
        if state.rows.num_rows > GROUPS_MAX and state.count() > GROUPS_MAX:
            raise NoDelta(f"more than {GROUPS_MAX:,} groups")
        unknown = StateResults(self.plan, self.root).unknown(touched)
        if self.root.is_total:
            if unknown.any():
                raise NoDelta("a total that does not fit its type")
            return MergedGroups(self._put_all(touched), state)
        again = self._keys_of(touched).filter(pa.array(unknown))
        rows = self._results(touched.filter(pa.array(~unknown)))
        gone = self._gone(self._keys_of(changed.keys), pa.concat_tables([rows.select(list(self.key)), again]))
        stored = find_rows(gone) if gone.num_rows else None
        deletes = rows.slice(0, 0) if stored is None else stored.rows.select(self.names).cast(rows.schema)
        made = [with_kind(rows, RowKind.INSERT), with_kind(deletes, RowKind.DELETE)]
        return MergedGroups(MergedRows(pa.concat_tables(made), again), state)

    def _put_all(self, touched: pa.Table) -> MergedRows:
        rows = self._results(touched)
        return MergedRows(with_kind(rows, RowKind.INSERT), rows.select(list(self.key)).slice(0, 0))

    def _gone(self, keys: pa.Table, left: pa.Table) -> pa.Table:
        """Keys that are not `left`; NULL is no key of a stored row."""
        index = positions_in(keys, left.cast(keys.schema), list(self.key))
        return keys.filter(pa.array(~np.asarray(index.is_valid()) & ~has_null(keys)))

    def _keys_of(self, states: pa.Table) -> pa.Table:
        return states.select(key_names(self.root.slots)).rename_columns(list(self.key))

    def _results(self, states: pa.Table) -> pa.Table:
        frame = StateResults(self.plan, self.root).frame(self.session, states)
        found = known_rows(frame) if states.num_rows <= FEW_GROUPS else None
        return pa.table((collect_arrow(frame) if found is None else found).columns, names=list(self.names))

    def _rows(self) -> DataFrame:
        """Values of the slots of all rows below the groups."""
        names, places = columns_of(self.root.slots)
        fresh = tuple(Column(-at, place) for at, place in enumerate(places, 1))
        step = Signed(Stored(self.root.below.path), fresh, (), -len(places) - 1)
        builder = self.plan.builder(self.known, _no_changes, None, self._run)
        return builder.frame(step).toDF(*names, "s")

    def _of_keys(self, rows: DataFrame, keys: pa.Table) -> DataFrame:
        if not keys.num_columns:
            return rows
        types = [rows.schema[f"x{at}_0"].dataType for at in range(keys.num_columns)]
        schema = StructType([StructField(f"k{at}", one, True) for at, one in enumerate(types)])
        asked = frame_of_rows(self.session, keys.rename_columns(schema.names), schema)
        pairs = [
            sf.expr(f"x{at}_0 {'<=>' if keys.column(at).null_count else '='} k{at}")
            for at in range(keys.num_columns)
        ]
        return rows.join(asked, pairs, "leftsemi")

    def _collected(self, rows: DataFrame, limit: int) -> pa.Table:
        frame = all_contributions(rows, self.root.slots).limit(limit)
        found = self._run(frame).combine_chunks()
        return pa.table(found.columns, names=found.column_names)  # without NOT NULL

    def _run(self, frame: DataFrame) -> pa.Table:
        return collect_arrow(self.prune(frame))


def _no_changes(*_: object) -> Jvm:
    raise AssertionError("all rows have no changes")
