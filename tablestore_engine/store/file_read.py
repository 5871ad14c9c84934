"""Reading one data file with any newer schema of its table.

Names      FileSource  one file and what is known of it
           read_file   its wanted columns as `schema` has them, hidden positions left out
Steps      plan by field id → read the needed columns → old types to new, partition columns as constants →
           drop hidden positions
INVARIANT  partition columns come from the manifest when they are given, never from the file (format section 2.1).
PAIMON     `ParquetInput` is one open file: dataset readers would add partition columns of the path (trap 21).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.evolution import evolve, plan_columns
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.parquet_input import ParquetInput
from tablestore_engine.store.visible import visible_mask


@dataclass(frozen=True)
class FileSource:
    """A file, the schema it was written with, its partition values (by today's names), positions to leave out."""

    path: str
    schema: TableSchema
    partition: Mapping[str, object] = field(default_factory=dict, hash=False)
    deleted: BitMap | None = None


def read_file(
    fileio: FileIO,
    source: FileSource,
    schema: TableSchema,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    parallel: bool = False,
) -> pa.Table:
    """Rows of a file in file order: `keep` (system columns of the file) first, then the wanted columns."""
    wanted = [
        plan.source
        for plan in plan_columns(source.schema, schema, columns)
        if plan.source is not None and plan.field.name not in source.partition
    ]
    names = list(dict.fromkeys([*keep, *wanted]))
    with ParquetInput(fileio, source.path) as parquet:
        rows = (
            parquet.read(names, parallel=parallel) if names else _without_columns(parquet.metadata.num_rows)
        )
    if source.deleted:
        rows = rows.filter(pa.array(visible_mask(source.path, rows.num_rows, source.deleted)))
    if columns is not None and not columns and not keep:
        return rows.select([])
    return evolve(rows, source.schema, schema, columns, partition=source.partition, keep=keep)


def _without_columns(rows: int) -> pa.Table:
    """A table of that many rows for evolve to fill with nulls and constants."""
    return pa.table({"_": pa.nulls(rows)})
