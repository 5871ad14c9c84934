"""Incoming rows of one bucket become a batch: at most one row per key, in key order, or a refusal.

Names      batch_of    routed rows and their kinds → Batch
Steps      -U rows whose key has another row go → sort by key, sequence field, arrival → the newest of each key
REQUIRES   rows are checked and have the table's columns (routing.route_rows).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.sql_literal import count_of, sql_row
from tablestore_engine.lsm.batch import SequenceOrder, resolve_batch, retracts, without_update_before
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.lsm.rows import SAMPLES, frame_samples
from tablestore_engine.lsm.take import take_rows
from tablestore_engine.store.merge_batch import Batch, sequence_of
from tablestore_engine.store.table_traits import TableTraits


def batch_of(rows: pa.Table, kinds: pa.Array | None, traits: TableTraits) -> Batch:
    """The rows as merge_batch wants them. Raises FixData TS1601 for repeated keys that nothing orders."""
    given = None if kinds is None else np.asarray(kinds).astype(np.int8)
    keys = order_columns(rows, traits.schema.trimmed_primary_keys)
    if given is not None and bool((given == RowKind.UPDATE_BEFORE).any()):
        keep = without_update_before(keys, given)
        rows, given, keys = rows.filter(pa.array(keep)), given[keep], keys.filter(pl.Series(keep))
    sequence = sequence_of(rows, traits)
    resolved = resolve_batch(keys, sequence, last_wins=traits.last_wins)
    if len(resolved.tied):
        raise _tied(rows, traits, resolved.tied)
    order = resolved.winners
    if len(order) != rows.num_rows or not bool((order[1:] > order[:-1]).all()):
        rows, keys = take_rows(rows, order), keys[order]
        sequence = None if sequence is None else SequenceOrder(sequence.frame[order], sequence.descending)
        given = None if given is None else given[order]
    deletes = np.zeros(rows.num_rows, dtype=np.bool_) if given is None else retracts(given)
    return Batch(rows, keys, deletes, sequence)


def _tied(rows: pa.Table, traits: TableTraits, tied: npt.NDArray[np.int64]) -> FixData:
    samples = frame_samples(rows, traits.schema.primary_keys, tied)
    keys_occur = count_of(len(tied), "key occurs", "keys occur")
    return FixData(
        "TS1601",
        f"{keys_occur} more than once with nothing to order their rows",
        why=f"keys with equal order, {min(len(tied), SAMPLES)} of {len(tied)}: "
        + "; ".join(map(sql_row, samples)),
        fix="make the keys unique, set sequence_field to a column that orders the rows, "
        "or accept the last row with duplicates='last'",
        keys=samples,
    )
