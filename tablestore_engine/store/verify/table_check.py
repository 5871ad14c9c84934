"""Every on-disk invariant of a table, checked against the files themselves.

CHANGE     what `tablestore verify` checks
Steps      snapshot ids and hint → of each snapshot its metadata, and what it changed of which bucket (snapshot_check,
           bucket_history) → each data and changelog file once (file_check) → the rules of each bucket (bucket_check)
           → the hash indexes of the newest snapshot
           deep: every page decoded and checked, keys sorted, each visible once, kinds and sequence numbers as the
           metadata says
Cost       each file once, each snapshot by its difference to the one before
INVARIANT  it only reads. What it reports would make some reader return wrong rows, or fail.
INVARIANT  a problem is reported of each snapshot that has it; one of a file as such, of the first that has the file.
INVARIANT  a snapshot that expires meanwhile has no problems: its files may be gone for that reason alone.
MEMORY     keys across partitions: 8 bytes for each key of the table, a step of rows, and the keys whose hash is there
           twice; hash indexes: 4 bytes for each key of one partition, and a step of keys
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from tablestore_engine.error_values import count_of
from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.format.bucket import hash_rows
from tablestore_engine.format.hash_index import NO_HASHES, Hashes
from tablestore_engine.format.index_manifest import HASH, IndexEntry
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan, bucket_files
from tablestore_engine.store.read.scan_rows import read_batches
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.verify.problems import describe_error
from tablestore_engine.store.verify.verify_run import VerifyRun


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


_AHEAD = 16  # snapshots


def verify_table(context: TableContext, *, deep: bool = True) -> tuple[str, ...]:
    """Problems of every snapshot. `deep` decodes every page of all files, and checks their keys."""
    try:
        ids = context.snapshots.list_ids()
    except (
        TablestoreError
    ) as broken:  # without folders, when the first schema cannot say which snapshots are its own
        return tuple(_schema_problems(context)) or (describe_error(broken),)
    problems = [] if ids else list(_schema_problems(context))
    if _has_gaps(ids) and _has_gaps(
        ids := context.snapshots.list_ids()
    ):  # a listing during expiry can have some
        problems.append(f"snapshot ids have gaps: {ids}")
    run, newest = VerifyRun(context, deep=deep), None
    with context.runtime.progress.begin(f"{context.layout.name}: verifying", "rows") as meter:
        listed = context.snapshots.list_newest_first()[::-1]
        for at, status in enumerate(listed):
            if at % _AHEAD == 0:
                _read_ahead(context, listed[at : at + _AHEAD])
            try:
                snapshot = context.snapshots.find_listed(status)
            except TablestoreError as broken:
                run.add_unreadable(status.name, describe_error(broken))
                continue
            if snapshot is not None:
                run.add(snapshot)
                newest = snapshot
        run.read_files(meter)
    problems += run.problems(partial(_has_expired, context))
    if deep and newest is not None and not _has_expired(context, newest):
        found = (*hash_problems(context, newest), *partition_problems(context, newest))
        problems += [f"snapshot {newest.id}: {text}" for text in found]
    return tuple(problems)


def verify_snapshot(context: TableContext, snapshot: Snapshot, *, deep: bool = True) -> tuple[str, ...]:
    run = VerifyRun(context, deep=deep)
    run.add(snapshot)
    run.read_files()
    return run.problems(lambda _: False)


def _read_ahead(context: TableContext, listed: Sequence[FileStatus]) -> None:
    """Fetch the metadata of these snapshots together, where each request is a round trip. The check that needs a file
    says what is wrong with it.
    """

    def fetch(status: FileStatus) -> None:
        with suppress(TablestoreError, OSError):
            found = context.snapshots.find_listed(status)
            if found is not None:
                lists = (found.base_manifest_list, found.delta_manifest_list, found.changelog_manifest_list)
                context.manifests.read_all_entries([name for name in lists if name is not None])
                for entry in context.manifests.read_index(found.index_manifest):
                    context.fileio.read(context.layout.index_path(entry.file_name))

    if context.fileio.folders is None:
        context.fileio.run_together([partial(fetch, status) for status in listed])


def _has_gaps(ids: tuple[int, ...]) -> bool:
    return bool(ids) and ids != tuple(range(ids[0], ids[-1] + 1))


def _has_expired(context: TableContext, snapshot: Snapshot) -> bool:
    """Whether a snapshot has been expired, or rolled back, meanwhile."""
    try:
        return context.snapshots.find(snapshot.id) is None
    except TablestoreError:
        return False


def _schema_problems(context: TableContext) -> Iterator[str]:
    """Of a table without snapshots, which would look empty."""
    for number in context.schemas.list_ids():
        try:
            context.schemas.get(number)
        except TablestoreError as broken:
            yield f"schema-{number}: {describe_error(broken)}"
