"""The rows of some keys at one state of a keyed table: what a log looks up that has to set keys right.

Steps      keys → their buckets (rows.routing) → sorted, each once → the visible row of each (merge.lookup)
INVARIANT  a key has at most one visible row; keys without one are simply not in the answer.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import order_columns, order_permutation, starts_of_groups
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.merge.lookup import fetch, find_hits
from tablestore_engine.store.read.scan import ScanPlan, bucket_files
from tablestore_engine.store.read.scan_rows import result_schema
from tablestore_engine.store.rows.routing import route_rows


def find_rows(
    fileio: FileIO, plan: ScanPlan, keys: pa.Table, *, routed_by: TableSchema | None = None
) -> pa.Table:
    """`keys`: the primary key's columns, in any order, repeats allowed. REQUIRES a table with a key.

    `routed_by`: the schema whose buckets the files have, when the plan's has more by now. Memory holds the rows that
    are found. Raises FixData TS1602, TS1603 for keys that no row can have.
    """
    schema, groups = plan.schema, bucket_files(plan.files)
    reader, found = FileReader(fileio, schema), [result_schema(schema, None).empty_table()]
    if not keys.num_rows:
        return found[0]
    # as deletes: nothing but the key is asked of such rows
    for one in route_rows(keys, np.full(keys.num_rows, RowKind.DELETE, np.int8), routed_by or schema):
        files = groups.get((one.partition_bytes, one.bucket), ())
        frame = order_columns(one.rows, schema.trimmed_primary_keys)
        frame = frame[order_permutation(frame)]
        hits = find_hits(reader, files, frame.filter(starts_of_groups(frame)), None)
        rows = fetch(reader, hits.by_file, None)
        if rows is not None:
            found.append(rows)
    return pa.concat_tables(found)
