"""Every on-disk invariant of a table, checked against the files themselves.

CHANGE     what `tablestore verify` checks
Steps      snapshot ids and hint → of each snapshot its metadata, and what it changed of which bucket (snapshot_check,
           bucket_history) → each data and changelog file once (file_check) → the rules of each bucket (bucket_check)
           → the hash indexes of the newest snapshot (hash_check)
           deep: every page decoded and checked, keys sorted, each visible once, kinds and sequence numbers as the
           metadata says
Cost       each file once, each snapshot by its difference to the one before
INVARIANT  it only reads. What it reports would make some reader return wrong rows, or fail.
INVARIANT  a problem is reported of each snapshot that has it; one of a file as such, of the first that has the file.
INVARIANT  a snapshot that expires meanwhile has no problems: its files may be gone for that reason alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.verify.hash_check import hash_problems
from tablestore_engine.store.verify.partition_check import partition_problems
from tablestore_engine.store.verify.problems import describe_error
from tablestore_engine.store.verify.verify_run import VerifyRun

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
