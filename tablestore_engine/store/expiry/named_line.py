"""All files that the snapshots of one branch name, main or another one.

INVARIANT  what cannot be read is an error and never nothing: who asks is about to delete. No snapshot where there was
           one before (a hint), or a gap between two, is an error too (TS1326).
Cost       a snapshot whose base list is what the one before had names that one's files and its own; the others are
           read whole. So a history costs its changes, not snapshots times files.
"""

from __future__ import annotations

import itertools

from tablestore_engine.errors import FixData
from tablestore_engine.format.layout import MAIN_BRANCH
from tablestore_engine.format.manifest import FileKind
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.expiry.referenced_files import (
    mentioned_names,
    metadata_files,
    names_of,
    needed_names,
)
from tablestore_engine.store.table_context import TableContext


def names_of_line(context: TableContext) -> set[str]:
    """Files that the snapshots of one branch name. Raises FixData TS1326."""
    found: set[str] = set()
    line = _line(context)
    known: tuple[str, ...] = ()
    floor = context.snapshots.find_floor()
    for snapshot in line:
        if snapshot.id < floor:
            found |= mentioned_names(
                context, snapshot
            )  # until the floor goes, an expiry may still be given up
            continue
        base, delta = (
            tuple(meta.file_name for meta in context.manifests.read_list(name))
            for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        )
        found |= _own_names(context, snapshot) if base == known else needed_names(context, snapshot)
        known = base + delta
    return found


def _own_names(context: TableContext, snapshot: Snapshot) -> set[str]:
    """What it names beside the data files of the snapshot before it."""
    entries = (
        *context.manifests.read_entries(snapshot.delta_manifest_list),
        *context.manifests.read_changelog_entries(snapshot),
    )
    added = {name for entry in entries if entry.kind is FileKind.ADD for name in names_of(entry)}
    return {*metadata_files(context, snapshot), *added}


def _line(context: TableContext) -> list[Snapshot]:
    """Ascending, without gaps but for what expires right now. Raises FixData TS1326."""
    ids, floor, layout = context.snapshots.list_file_ids(), context.snapshots.find_floor(), context.layout
    if (
        not ids
        and layout.branch == MAIN_BRANCH
        and any(map(context.fileio.exists, (layout.latest_hint, layout.earliest_hint)))
    ):
        raise _broken(context, "there were snapshots once, and none is there now")
    counted = [number for number in ids if number >= floor]
    for before, after in itertools.pairwise(counted):
        if after != before + 1:
            raise _broken(context, f"none is there between snapshots {before} and {after}")
    found = [(number, context.snapshots.find_file(number)) for number in ids]
    for number, snapshot in found:
        if snapshot is None:
            raise _broken(context, f"snapshot {number} went while it was read")
    return [snapshot for _, snapshot in found if snapshot is not None]


def _broken(context: TableContext, why: str) -> FixData:
    return FixData(
        "TS1326",
        f"the snapshots of {context.layout.root} are not complete",
        why=why,
        fix="run tablestore verify; restore the missing files from a copy",
    )
