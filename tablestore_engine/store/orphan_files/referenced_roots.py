"""Everything in a table that references files: snapshots, tags, branches, staged snapshots, kept changelogs.

CHANGE     what references files
Steps      1 branches: turns, tags, snapshots  2 tags  3 changelogs  4 snapshots, those below a floor among them
INVARIANT  what can go over into something else is read before it (a stage becomes a snapshot): a file that is named at
           every moment is named here, or when this is done once more (a tag outlives its snapshot).
INVARIANT  what cannot be read is an error (TS1325) and never nothing: who asks is about to delete. Only when somebody
           took snapshots away meanwhile, all is read again.
INVARIANT  no snapshot where there was one before (a hint), or a gap between two, is an error too (TS1326).
Cost       a snapshot whose base list is what the one before had names that one's files and its own; the others are
           read whole. So a history costs its changes, not snapshots times files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tablestore_engine.errors import FixData, NotFound
from tablestore_engine.format.layout import MAIN_BRANCH, find_id
from tablestore_engine.format.manifest import FileKind
from tablestore_engine.format.snapshot import Snapshot, decode_snapshot
from tablestore_engine.store.expiry.expiry_holds import list_branches
from tablestore_engine.store.expiry.referenced_files import (
    mentioned_names,
    metadata_files,
    names_of,
    needed_names,
)
from tablestore_engine.store.iceberg_metadata.iceberg_cleanup import find_live_files
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.stage.staging import CLOSED, find_stage_name, find_staged, turn_folder
from tablestore_engine.store.table_context import TableContext

_TURNS_MAX = 10


@dataclass(frozen=True)
class Named:
    """`files`: names of data, changelog, manifest, index and statistics files; `dead_stages`: branches; `iceberg`:
    folder of Iceberg metadata that this table wrote → paths of its live files.
    """

    files: frozenset[str]
    dead_stages: tuple[str, ...]
    iceberg: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)


def read_named(context: TableContext, forgotten: Mapping[str, bool]) -> Named:
    """Of the whole table. `forgotten`: folder of a branch → whether nobody touched it for longer than the grace.

    Raises FixData TS1325, TS1326.
    """
    for turn in range(1, _TURNS_MAX + 1):
        before = _signature(context)
        try:
            return _read(context, forgotten)
        except (NotFound, FixData) as damage:
            if turn == _TURNS_MAX or _signature(context) == before:
                raise FixData(
                    "TS1325",
                    f"orphan files of {context.layout.location} are not looked for: nothing was deleted",
                    why=f"what its snapshots name is not known: {damage.what}: {damage.why}",
                    fix="run tablestore verify; restore the file from a copy, or roll back or expire what names it",
                ) from damage
    raise AssertionError("the last turn returns or raises")


def _read(context: TableContext, forgotten: Mapping[str, bool]) -> Named:
    found: set[str] = set()
    dead = []
    for branch in list_branches(context):
        if forgotten.get(context.layout.branch_dir(branch), False) and _is_dead_stage(context, branch):
            dead.append(branch)
            continue
        on_branch = context.on_branch(branch)
        for snapshot in (*_turns(on_branch), *_tags(on_branch)):
            found |= needed_names(on_branch, snapshot)
        found |= _names_of_line(on_branch)
    for snapshot in _tags(context):
        found |= needed_names(context, snapshot)
    for snapshot in _changelogs(context):
        context.manifests.read_changelog_entries(snapshot)  # this much has to be there; its base list is gone
        found |= mentioned_names(context, snapshot)
    found |= _names_of_line(context)
    return Named(frozenset(found), tuple(dead), find_live_files(context))


def _is_dead_stage(context: TableContext, branch: str) -> bool:
    """Not complete, so that it counts for nobody."""
    name = find_stage_name(branch)
    return name is not None and find_staged(context, name) is None


def _signature(context: TableContext) -> tuple[tuple[str, int, int], ...]:
    """Changes when somebody makes, replaces or takes away what names files."""
    folders = [context.layout.changelog_dir, context.layout.expire_dir]
    for one in (context, *(context.on_branch(name) for name in list_branches(context))):
        folders += [one.layout.snapshot_dir, one.layout.tag_dir, turn_folder(one.layout)]
    listed = [status for folder in folders for status in context.fileio.list(folder)]
    return tuple((one.path, one.modified_ms, one.size_bytes) for one in listed)


# ---- snapshots of one branch -----------------------------------------------------------------------------------


def _names_of_line(context: TableContext) -> set[str]:
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


# ---- other snapshots -------------------------------------------------------------------------------------------


def _tags(context: TableContext) -> Iterator[Snapshot]:
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    for name in tags.list_all():
        yield tags.get(name).snapshot


def _turns(branch: TableContext) -> Iterator[Snapshot]:
    """What took the place of a staged snapshot; the writer may have died before he put it there (append_to_stage)."""
    for status in branch.fileio.list(turn_folder(branch.layout)):
        data = branch.fileio.read(status.path)
        if data != CLOSED:
            snapshot = decode_snapshot(data, status.path)
            if not branch.snapshots.is_foreign(snapshot):
                yield snapshot


def _changelogs(context: TableContext) -> Iterator[Snapshot]:
    """Of snapshots that another engine has expired, and whose changelog it keeps."""
    for status in context.fileio.list(context.layout.changelog_dir):
        if find_id(status.name, "changelog-") is not None:
            yield decode_snapshot(context.fileio.read(status.path), status.path)
