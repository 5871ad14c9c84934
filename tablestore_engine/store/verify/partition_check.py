"""Keys across partitions: each key of a snapshot has one row in all partitions together.

MEMORY     8 bytes for each key of the table, a step of rows, and the keys whose hash is there twice
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from tablestore_engine.error_values import count_of
from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import read_batches
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.verify.problems import describe_error


def partition_problems(context: TableContext, snapshot: Snapshot) -> Iterator[str]:
    """Of one snapshot, which a writer would continue. Raises nothing: what cannot be read is a problem."""
    try:
        schema = context.schemas.get(snapshot.schema_id)
        if schema.crosses_partitions:
            repeated = _count_repeated(context, context.scanner.plan_scan(snapshot, schema=schema))
            if repeated:
                yield f"{count_of(repeated, 'key has', 'keys have')} rows in several partitions or buckets"
    except TablestoreError as broken:
        yield describe_error(broken)


def _count_repeated(context: TableContext, plan: ScanPlan) -> int:
    """Keys with several visible rows: first by their hashes, then those of equal hash by their values."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *(found for found, _ in _keys(context, plan))])
    hashes.sort()
    doubtful = pl.Series(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
    if not len(doubtful):
        return 0
    parts = [keys.filter(pl.Series(found).is_in(doubtful.implode())) for found, keys in _keys(context, plan)]
    return int(pl.concat(parts).filter(pl.struct(pl.all()).is_duplicated()).unique().height)


def _keys(context: TableContext, plan: ScanPlan) -> Iterator[tuple[np.ndarray, pl.DataFrame]]:
    """Visible keys, comparable, with their hashes, a batch at a time."""
    names = plan.schema.primary_keys
    for batch in read_batches(context.fileio, plan, list(names)):
        keys = order_columns(batch, names)
        yield keys.hash_rows().to_numpy(), keys
