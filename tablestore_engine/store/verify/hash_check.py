"""The hash indexes of dynamic buckets against the rows of a snapshot: each key in its bucket's index, in one bucket.

MEMORY     4 bytes for each key of one partition, and a step of keys
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.bucket import hash_rows
from tablestore_engine.format.hash_index import NO_HASHES, Hashes
from tablestore_engine.format.index_manifest import HASH, IndexEntry
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan, bucket_files
from tablestore_engine.store.read.scan_rows import read_batches
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.verify.problems import describe_error


def hash_problems(context: TableContext, snapshot: Snapshot) -> Iterator[str]:
    """Of one snapshot, which a writer would continue. Raises nothing: what cannot be read is a problem."""
    try:
        schema = context.schemas.get(snapshot.schema_id)
        if schema.has_dynamic_buckets:
            yield from _problems(context, snapshot, schema)
    except TablestoreError as broken:
        yield describe_error(broken)


def _problems(context: TableContext, snapshot: Snapshot, schema: TableSchema) -> Iterator[str]:
    entries: dict[BucketId, IndexEntry] = {}
    for entry in context.manifests.read_index(snapshot.index_manifest):
        if entry.index_type == HASH:
            entries[entry.partition, entry.bucket] = entry
    plan = context.scanner.plan_scan(snapshot, schema=schema)
    groups = bucket_files(plan.files)
    for partition in sorted({place for place, _ in (*entries, *groups)}):
        held: list[Hashes] = [NO_HASHES]
        for key in sorted(key for key in {*entries, *groups} if key[0] == partition):
            stored = NO_HASHES
            if key in entries:
                stored = np.sort(context.manifests.read_hashes(entries[key]))
                held.append(np.unique(stored))
            elif key in groups:
                yield f"bucket {key[1]} has rows and no hash index"
            lacking = _count_lacking(context, plan, groups.get(key, ()), stored)
            if lacking and key in entries:
                yield f"{lacking} keys of bucket {key[1]} are not in its hash index"
        every = np.sort(np.concatenate(held))
        repeated = len(every) - len(np.unique(every))
        if repeated:
            yield f"{repeated} hashes of keys are in two buckets of one partition"


def _count_lacking(
    context: TableContext, plan: ScanPlan, files: tuple[StoredFile, ...], stored: Hashes
) -> int:
    """How many visible rows have a key whose hash is not stored."""
    fields = plan.schema.fields_of(plan.schema.trimmed_primary_keys)
    names, lacking = [field.name for field in fields], 0
    for batch in read_batches(context.fileio, replace(plan, files=files), names):
        hashes = hash_rows([batch.column(name) for name in names], [field.type for field in fields])
        lacking += int((~np.isin(hashes, stored)).sum())
    return lacking
