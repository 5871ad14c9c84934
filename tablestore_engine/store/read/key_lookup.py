"""The rows of some keys at one state of a keyed table: the look-up of logs, of planners, and of filters by key.

Steps      keys → their buckets → sorted, each once → positions of the visible rows (merge.lookup) → their columns
INVARIANT  a key has at most one visible row; keys without one are simply not in the answer.
INVARIANT  equality of keys is equality of values: FLOAT and DOUBLE keys (-0.0 equals 0.0, and is another key) and keys
           whose type changed are left to the scan.
Cost       k keys read the key columns of at most k row groups of each file of their buckets whose key range has them,
           and the other columns of row groups with such rows. Many keys read each file once, a step of rows at a time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import order_columns, order_permutation, starts_of_groups
from tablestore_engine.store.files.comparable_values import stored_form
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.bucket_keys import KeysByBucket, sorted_keys
from tablestore_engine.store.merge.lookup import FileHits, KeyCache, find_hits, key_values, may_hit
from tablestore_engine.store.read.row_cache import RowCache
from tablestore_engine.store.read.scan import ScanPlan, bucket_files
from tablestore_engine.store.read.scan_rows import result_schema
from tablestore_engine.store.rows.conformed_rows import conform
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.rows.row_condition import BoundCondition

KEYS_MAX = 100_000  # of a condition; more are compared with every row
_EQUAL_AS_KEYS = (*INTEGER_ROOTS, "BOOLEAN", "DECIMAL", "VARCHAR", "DATE", *TIMESTAMP_ROOTS)


def find_rows(
    fileio: FileIO,
    plan: ScanPlan,
    keys: pa.Table,
    columns: Sequence[str] | None = None,
    *,
    routed_by: TableSchema | None = None,
    cache: KeyCache | None = None,
    kept: RowCache | None = None,
) -> pa.Table:
    """`keys`: the primary key's columns, in any order, repeats allowed. `columns` None: all. REQUIRES a table with a
    key.

    `routed_by`: the schema whose buckets the files have, when the plan's has more by now. `kept`: of a caller that
    looks up many keys again and again; it has keys of its own in place of `cache`. Else memory holds the rows that are
    found, and a step of others. Raises FixData TS1602, TS1603 for keys that no row can have, NotFound TS1110.
    """
    cache = cache if kept is None else kept.keys
    if plan.schema.crosses_partitions:
        return _find_anywhere(fileio, plan, keys, columns, cache)
    schema, files_read = plan.schema, plan.files
    if (routed_by or schema).bucket_count < 1:  # a key may lie in any bucket of its partition
        files_read = tuple(replace(file, bucket=0) for file in files_read)
    groups = bucket_files(files_read)
    reader = FileReader(fileio, schema, None if cache is None else cache.footers)
    found = [result_schema(schema, columns).empty_table()]
    if not keys.num_rows:
        return found[0]
    # as deletes: nothing but the key is asked of such rows
    for one in route_rows(keys, np.full(keys.num_rows, RowKind.DELETE, np.int8), routed_by or schema):
        files = groups.get((one.partition_bytes, one.bucket), ())
        wanted = sorted_keys(one.rows, schema)
        hits = find_hits(reader, files, wanted, cache, remembers=kept is not None)
        reads = [partial(_read, reader, hit, columns, kept, wanted) for hit in hits.by_file]
        found += fileio.run_together(reads)
    return pa.concat_tables(found)


def _read(
    reader: FileReader,
    hit: FileHits,
    columns: Sequence[str] | None,
    kept: RowCache | None,
    keys: pl.DataFrame,
) -> pa.Table:
    if kept is not None:
        return kept.read(reader, hit.file, hit.positions, columns)
    known = key_values(reader.schema, keys, hit.incoming)
    return reader.read_positions(hit.file, hit.positions, columns, known=known, parallel=True)


def _find_anywhere(
    fileio: FileIO, plan: ScanPlan, keys: pa.Table, columns: Sequence[str] | None, cache: KeyCache | None
) -> pa.Table:
    """The same of keys that do not say in which partition they lie."""
    from tablestore_engine.store.merge.stored_keys import find_keys  # noqa: PLC0415 - few tables need it (decision 0137)

    schema = plan.schema
    reader = FileReader(fileio, schema, None if cache is None else cache.footers)
    deletes = np.ones(keys.num_rows, np.bool_)  # nothing but the key is asked of such rows
    made = conform(keys, schema, deletes).select(schema.primary_keys)
    frame = order_columns(made, schema.primary_keys)
    order = order_permutation(frame)
    made = take_rows(made, order[starts_of_groups(frame[order])])
    hits = find_keys(reader, plan.files, made, cache, remembers=False)
    reads = [partial(reader.read_positions, hit.file, hit.positions, columns, parallel=True) for hit in hits]
    return pa.concat_tables([result_schema(schema, columns).empty_table(), *fileio.run_together(reads)])


def keys_by_file(
    reader: FileReader, files: Sequence[StoredFile], wanted: BoundCondition
) -> list[tuple[StoredFile, pl.DataFrame]] | None:
    """The files that can have a key which the condition allows, in their order, with these keys as lookup.hits_in takes
    them; None: a scan has to tell.

    The partition need not be known: the keys are looked up in each partition of the files.
    """
    keys = _condition_keys(reader.schema, files, wanted)
    if keys is None:
        return None
    parts = KeysByBucket(keys, reader.schema)
    asked = [(file, parts.of(file.bucket, file.total_buckets)) for file in files if file.meta.row_count]
    return [(file, mine) for file, mine in asked if mine.height and may_hit(reader.schema, file, mine)]


def is_looked_up(schema: TableSchema, files: Sequence[StoredFile]) -> bool:
    """Whether rows of these files are found by keys of their values: types of the key, now and in each file."""
    fields = schema.fields_of(schema.trimmed_primary_keys) if schema.is_keyed else ()
    if not fields or any(field.type.root not in _EQUAL_AS_KEYS for field in fields):
        return False
    ids = {field.id: field.type.with_nullable(True) for field in fields}
    for stored in {file.schema.id: file.schema for file in files}.values():
        types = {field.id: field.type.with_nullable(True) for field in stored.fields}
        if any(types.get(number) != type_ for number, type_ in ids.items()):
            return False
    return True


def _condition_keys(
    schema: TableSchema, files: Sequence[StoredFile], wanted: BoundCondition
) -> pa.Table | None:
    """All keys that the condition allows, without the partition's columns; None: too many, or not known."""
    if not is_looked_up(schema, files):
        return None
    fields = schema.fields_of(schema.trimmed_primary_keys)
    values = wanted.key_values([field.name for field in fields])
    if values is None or math.prod(map(len, values)) > KEYS_MAX:
        return None
    rows = list(itertools.product(*values))
    try:
        arrays = [stored_form([row[at] for row in rows], field.type) for at, field in enumerate(fields)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None  # a value that no row of the type has
    return pa.table(arrays, names=[field.name for field in fields])
