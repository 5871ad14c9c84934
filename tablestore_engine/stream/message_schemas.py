"""Messages of a log, decoded by the schema that they were written with, as rows of the current schema.

Why        a message names its columns and not their types: FLOAT 0.1 is another DOUBLE than the text "0.1". The
           boundary behind a message says which schema was the newest when it was sent; what lies behind all boundaries
           is of today.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tablestore_engine.format.evolution import evolve
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.followed_log import FollowedLog, Messages
from tablestore_engine.stream.log_boundaries import BoundaryList


def decode_by_boundaries(
    log: FollowedLog,
    schemas: Sequence[TableSchema],
    boundaries: BoundaryList,
    messages: Messages,
) -> pa.Table:
    """As FollowedLog.decode. Raises FixData TS1718."""
    newest = schemas[0]
    if len(schemas) == 1 or not len(messages):
        return log.decode(messages, schemas)
    known = boundaries.schemas_of(messages.partitions, messages.offsets, newest.id)
    if bool((known >= newest.id).all()):
        return log.decode(messages, schemas)
    parts, order = [], []
    for schema_id in np.unique(known).tolist():
        places = np.flatnonzero(known == schema_id)
        older = [one for one in schemas if one.id <= schema_id] or list(schemas[-1:])
        rows = log.decode(messages.take(places), older)
        if older[0].id != newest.id:
            rows = evolve(rows, older[0], newest, keep=[ROW_KIND_COLUMN])
        rows = rows.select([*(field.name for field in newest.fields), ROW_KIND_COLUMN])
        parts.append(pa.table(dict(zip(rows.column_names, rows.columns, strict=True))))
        order.append(places)
    return pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(order))))
