"""Everything in a table that references files: snapshots, tags, branches, staged snapshots, kept changelogs.

CHANGE     what references files
Steps      1 branches: turns, tags, snapshots  2 tags  3 changelogs  4 snapshots, those below a floor among them
INVARIANT  what can go over into something else is read before it (a stage becomes a snapshot): a file that is named at
           every moment is named here, or when this is done once more (a tag outlives its snapshot).
INVARIANT  what cannot be read is an error (TS1325) and never nothing: who asks is about to delete. Only when somebody
           took snapshots away meanwhile, all is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tablestore_engine.errors import FixData, NotFound
from tablestore_engine.format.layout import find_id
from tablestore_engine.format.snapshot import Snapshot, decode_snapshot
from tablestore_engine.store.expiry.expiry_holds import list_branches
from tablestore_engine.store.expiry.named_line import names_of_line
from tablestore_engine.store.expiry.referenced_files import mentioned_names, needed_names
from tablestore_engine.store.iceberg_metadata.iceberg_cleanup import find_live_files
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.stage.staging import CLOSED, find_stage, find_staged, turn_folder
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
        found |= names_of_line(on_branch) | _changelog_names(on_branch)
    for snapshot in _tags(context):
        found |= needed_names(context, snapshot)
    found |= _changelog_names(context) | names_of_line(context)
    return Named(frozenset(found), tuple(dead), find_live_files(context))


def _is_dead_stage(context: TableContext, branch: str) -> bool:
    """Not complete, so that it counts for nobody."""
    stage = find_stage(branch)
    return stage is not None and find_staged(context.on_branch(stage[1]), stage[0]) is None


def _signature(context: TableContext) -> tuple[tuple[str, int, int], ...]:
    """Changes when somebody makes, replaces or takes away what names files."""
    folders: list[str] = []
    for one in (context, *(context.on_branch(name) for name in list_branches(context))):
        layout = one.layout
        folders += [layout.snapshot_dir, layout.tag_dir, layout.changelog_dir, layout.expire_dir]
        folders.append(turn_folder(layout))
    listed = [status for folder in folders for status in context.fileio.list(folder)]
    return tuple((one.path, one.modified_ms, one.size_bytes) for one in listed)


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


def _changelog_names(context: TableContext) -> set[str]:
    found: set[str] = set()
    for snapshot in _changelogs(context):
        context.manifests.read_changelog_entries(snapshot)  # this much has to be there; its base list is gone
        found |= mentioned_names(context, snapshot)
    return found


def _changelogs(context: TableContext) -> Iterator[Snapshot]:
    """Of snapshots that another engine has expired, and whose changelog it keeps."""
    for status in context.fileio.list(context.layout.changelog_dir):
        if find_id(status.name, "changelog-") is not None:
            yield decode_snapshot(context.fileio.read(status.path), status.path)
