"""The changelog of `changelog-producer` = input: the rows of a commit as they came, in key order.

CHANGE     the changelog of a table whose changelog producer is input
INVARIANT  all rows that came are in it, late ones and repeated keys too: nothing was merged, and nothing is looked up.
INVARIANT  retractions that the table ignores are none of its rows (options `ignore-delete`,
           `ignore-update-before`), as in Paimon.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.lsm.key_versions import retracts, sort_versions
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.rows.incoming_batch import sequence_of, written_mask


def write_input(
    files: DataFiles, state: BucketState, rows: pa.Table, kinds: npt.NDArray[np.int8] | None, *, level: int
) -> tuple[DataFileMeta, ...]:
    """Changelog files of rows in the order of their arrival; `kinds` None: all add."""
    given = np.full(rows.num_rows, RowKind.INSERT, np.int8) if kinds is None else kinds
    kept = written_mask(given, files.traits)
    if kept is not None:
        rows, given = rows.filter(pa.array(kept)), given[kept]
    keys = order_columns(rows, files.schema.trimmed_primary_keys)
    order = sort_versions(keys, retracts(given), sequence_of(rows, files.traits)).order
    with files.open_changelog(state, level=level) as output:
        output.add(RunRows(take_rows(rows, order), state.next_sequence + order, given[order]))
    return output.metas
