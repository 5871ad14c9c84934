"""What keeps old snapshots and files from expiring: staged snapshots, consumers, rollbacks; tags, branches.

CHANGE     what keeps a snapshot from expiring (option consumer.expiration-time)
Holds      a staged snapshot's base: publishing compares with it and walks from it to the newest. A consumer's next
           snapshot, and the one before it where its changes are the difference. The target of a rollback that is at
           work.
Kept       a tag and a branch are copies of snapshots: their files stay, the snapshot of that number may go.
INVARIANT  one that cannot be read is an error: nothing is taken away before it can.
"""

from __future__ import annotations

from collections.abc import Iterator

from tablestore_engine.format.layout import BRANCH_PREFIX, KEEP_PREFIX, MAIN_BRANCH, find_id
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.expiry.expiry_rules import Hold
from tablestore_engine.store.expiry.named_line import names_of_line
from tablestore_engine.store.expiry.referenced_files import needed_names
from tablestore_engine.store.metadata.store_clock import store_now_ms
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.stage.staging import find_stage, find_staged
from tablestore_engine.store.table_context import TableContext


def find_holds(context: TableContext, *, idle_ms: int | None = None) -> tuple[Hold, ...]:
    """`idle_ms`: consumers that did not move for so long hold nothing.

    Raises FixData TS1391 for a consumer that cannot be read, and what a damaged snapshot raises.
    """
    return (*_consumers(context, idle_ms), *_rollbacks(context), *_stages(context))


def find_kept(context: TableContext, end: int) -> frozenset[str]:
    """Files that snapshots of this branch below `end` may share with its tags, and with all other branches.

    A tag, and a staged snapshot, is a copy of a snapshot of main: one from `end` on needs no file that `end` does not
    need. A branch that a user made has a line of its own, whose numbers say nothing: all of it counts.
    """
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    found: set[str] = set()
    for name, number in tags.list_all().items():
        if number < end:
            found |= needed_names(context, tags.get(name).snapshot)
    for branch in list_branches(context):
        on_branch = context.on_branch(branch)
        if branch == context.layout.branch:
            continue
        stage = find_stage(branch)
        if stage is None or (stage[1], context.layout.branch) != (MAIN_BRANCH, MAIN_BRANCH):
            found |= _names_of_branch(on_branch)
            continue
        copies = tuple(_copies(on_branch))
        if copies and min(one.id for one in copies) < end:
            for one in copies:
                found |= needed_names(on_branch, one)
    if context.layout.branch != MAIN_BRANCH:
        found |= _names_of_branch(context.on_branch(MAIN_BRANCH))
    return frozenset(found)


def _names_of_branch(context: TableContext) -> set[str]:
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    found = names_of_line(context)
    for name in tags.list_all():
        found |= needed_names(context, tags.get(name).snapshot)
    return found


def has_own_changelog(context: TableContext) -> bool:
    """Other engines put such a snapshot into `changelog/` when it expires: data files that it names live on."""
    options = context.latest_schema().options
    is_wanted = any(
        key.startswith("changelog.") and key.endswith(("-retained", "-retained.max")) for key in options
    )
    return is_wanted or bool(context.fileio.list(context.layout.changelog_dir))


def _copies(branch: TableContext) -> Iterator[Snapshot]:
    yield from branch.snapshots.list_all()
    tags = TagStore(branch.fileio, branch.layout, branch.snapshots)
    for name in tags.list_all():
        yield tags.get(name).snapshot


def list_branches(context: TableContext) -> list[str]:
    """Names of all, those of staged snapshots too."""
    entries = context.fileio.list(context.layout.branches_dir)
    return [
        one.name.removeprefix(BRANCH_PREFIX)
        for one in entries
        if one.is_dir and one.name.startswith(BRANCH_PREFIX)
    ]


def _stages(context: TableContext) -> Iterator[Hold]:
    for branch in list_branches(context):
        stage = find_stage(branch)
        is_own = stage is not None and stage[1] == context.layout.branch
        staged = find_staged(context, stage[0]) if stage is not None and is_own else None
        if staged is not None and staged.base is not None:
            yield Hold(staged.base.id, f"staged snapshot {staged.name} is built on snapshot {staged.base.id}")


def _rollbacks(context: TableContext) -> Iterator[Hold]:
    for one in context.fileio.list(context.layout.expire_dir):
        target = find_id(one.name, KEEP_PREFIX)
        if target is not None and context.snapshots.is_own_mark(one.path):
            yield Hold(
                target, f"a rollback to snapshot {target} has started: if it was stopped, run it again"
            )


def _consumers(context: TableContext, idle_ms: int | None) -> Iterator[Hold]:
    idle = list_idle_consumers(context, idle_ms)
    for one in context.consumers.list_names():
        found = None if one in idle else context.consumers.find(one)
        if found is not None:
            yield Hold(
                _first_needed(context, found.next_snapshot),
                f"consumer {one} goes on at snapshot {found.next_snapshot}",
            )


def _first_needed(context: TableContext, following: int) -> int:
    snapshot = context.snapshots.find(following)
    if snapshot is None or not ChangelogReader(context).needs_previous(snapshot):
        return following
    return following - 1


def list_idle_consumers(context: TableContext, idle_ms: int | None) -> tuple[str, ...]:
    """Those that did not move for so long (option `consumer.expiration-time`); none without it."""
    if idle_ms is None:
        return ()
    now = store_now_ms(context.fileio, context.runtime, context.layout.expire_dir)
    return context.consumers.list_idle(now - idle_ms)
