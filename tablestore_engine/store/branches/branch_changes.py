"""Create, delete and fast-forward a branch.

    branch/branch-<name>/snapshot/snapshot-<N>   the copy of main's snapshot that it begins with; none: it begins empty
                        /tag/tag-<tag>           of a branch made from a tag, as Paimon makes it
                        /schema/schema-<0…>      the schemas up to that snapshot's, the first one last

CHANGE     how a branch is created, deleted and fast-forwarded
Create     snapshot, tag, schemas, each an exclusive create → does the source still count? else all of it goes again
Forward    branch's snapshots behind main's newest one, which must be one of the branch: schemas → snapshot by snapshot
           the claim of a commit → tags
INVARIANT  an expiry hides snapshots first and then looks for branches; a branch is written first and then looks for
           its source: one of both sees the other (expire_snapshots). The same holds for a tag that is deleted.
INVARIANT  main only ever gets its next number, by an exclusive create after a look at the newest one: a commit of
           somebody else is never replaced. Paimon deletes such commits; here it is RetryError TS1363.
CRASH      create: no branch, since its first schema is missing; creating it again from the same source ends it.
           forward: main is at one of the branch's snapshots; doing it again continues. delete: as create; do it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.format.capability import check_writable
from tablestore_engine.format.layout import MAIN_BRANCH, check_branch_name
from tablestore_engine.format.snapshot import Snapshot, Tag, encode_snapshot, encode_tag
from tablestore_engine.store.branches.branch_list import check_branch, is_branch
from tablestore_engine.store.commit.snapshot_claim import MainDestination, OvertakenError
from tablestore_engine.store.metadata.schemas import is_same_schema
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.stage.staging import STAGED_PREFIX, find_stage_name
from tablestore_engine.store.table_context import TableContext


@dataclass(frozen=True)
class ForwardReport:
    """`before`: main's newest snapshot until then, None for none; `added`: ids that main got, ascending."""

    before: int | None
    added: tuple[int, ...]


def create_branch(
    context: TableContext, name: str, *, snapshot: int | None = None, tag: str | None = None
) -> None:
    """From a snapshot or a tag of main, or empty with main's schema. REQUIRES the main branch.

    Raises FixRequest TS1107, TS1350, NotFound TS1302, TS1321, RetryError TS1365, TS1375.
    """
    check_branch_name(name)
    require_main(context, "a branch of a branch")
    check_writable(context.latest_schema())
    branch = context.on_branch(name)
    if find_stage_name(name) is not None:
        raise _exists(context, name, f"names that begin with {STAGED_PREFIX} are those of staged snapshots")
    if is_branch(context, name):
        raise _exists(context, name, "there is a branch of that name")
    source, tagged = _source(context, snapshot, tag)
    context.guard.check()
    files: list[tuple[str, bytes]] = []
    if source is not None:
        files.append((branch.layout.snapshot_path(source.id), encode_snapshot(source)))
    if tag is not None and tagged is not None:
        files.append((branch.layout.tag_path(tag), encode_tag(tagged)))
    for path, data in files:
        if not context.fileio.create_exclusive(path, data) and context.fileio.read(path) != data:
            raise _exists(
                context, name, f"{path} is there: its creation was stopped, or another one is at work"
            )
        context.runtime.crash_point("branch.copied")
    _copy_schemas(context, branch, source)
    context.runtime.crash_point("branch.created")
    if not _still_counts(context, source, tag):
        delete_tree(branch)
        _source(context, snapshot, tag)  # says what is gone
        raise RetryError(
            "TS1375",
            f"branch {name} of {context.layout.name} was not created",
            why="another snapshot or tag took the place of its source meanwhile",
            fix="look at the snapshots, and create it again",
        )
    if source is not None:
        branch.snapshots.write_hints(source.id)


def _source(
    context: TableContext, snapshot: int | None, tag: str | None
) -> tuple[Snapshot | None, Tag | None]:
    """The snapshot's own file where it is there: other engines leave keys out of a tag that they do not know."""
    if tag is not None:
        found = TagStore(context.fileio, context.layout, context.snapshots).get(tag)
        own = context.snapshots.find(found.snapshot.id)
        return own if own is not None and _is_same(own, found.snapshot) else found.snapshot, found
    return (None if snapshot is None else context.snapshots.get(snapshot)), None


def _is_same(one: Snapshot, other: Snapshot) -> bool:
    """The same commit; names of manifest lists never come back."""
    return (one.id, one.delta_manifest_list) == (other.id, other.delta_manifest_list)


def _still_counts(context: TableContext, source: Snapshot | None, tag: str | None) -> bool:
    if source is None:
        return True
    if tag is None:
        return context.snapshots.find(source.id) == source
    return TagStore(context.fileio, context.layout, context.snapshots).list_all().get(tag) == source.id


def _copy_schemas(context: TableContext, branch: TableContext, source: Snapshot | None) -> None:
    """The current one counts by itself: its claim was by a snapshot that the branch may not have."""
    current = context.latest_schema() if source is None else context.schemas.get(source.schema_id)
    for number in reversed(context.schemas.list_ids()):
        if number <= current.id:
            schema = context.schemas.get(number)
            branch.schemas.copy(replace(schema, claim=None) if number == current.id else schema)
            context.runtime.crash_point("branch.schema")


def _exists(context: TableContext, name: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1350",
        f"branch {name} of {context.layout.name} cannot be created",
        why=why,
        fix=f"choose another name, or delete it first: tablestore branch delete {context.layout.name} {name}",
    )


def delete_branch(context: TableContext, name: str) -> None:
    """Its files of metadata go; files of data that it alone had are orphan files then.

    Raises FixRequest TS1107, NotFound TS1346 when there is nothing of that name.
    """
    check_branch_name(name)
    require_main(context, "deleting a branch")
    branch = context.on_branch(name)
    if find_stage_name(name) is not None or not _has_files(branch):
        check_branch(context, name)
    context.guard.check()
    delete_tree(branch)


def _has_files(branch: TableContext) -> bool:
    layout = branch.layout
    return any(
        branch.fileio.list(folder) for folder in (layout.schema_dir, layout.snapshot_dir, layout.tag_dir)
    )


def delete_tree(branch: TableContext) -> None:
    """Schemas first: without one it is no branch for anybody, whatever else is still there."""
    for number in branch.schemas.list_ids():
        branch.fileio.delete(branch.layout.schema_path(number))
        branch.runtime.crash_point("branch.hidden")
    branch.fileio.delete_tree(branch.layout.root)


def fast_forward(context: TableContext, name: str) -> ForwardReport:
    """Main gets the snapshots that the branch has beyond main's newest one. REQUIRES the main branch.

    Raises NotFound TS1346, RetryError TS1363 (main has commits that the branch has not), TS1365, FixRequest TS1364.
    """
    require_main(context, "a fast-forward")
    check_branch(context, name)
    check_writable(context.latest_schema())
    branch = context.on_branch(name)
    newest = context.snapshots.find_latest()
    added = _beyond(context, name, branch.snapshots.list_all(), newest)
    _copy_forward_schemas(context, branch, name, added)
    main = MainDestination(context.snapshots, context.schemas, context.guard, context.sweeps, context.runtime)
    for snapshot in added:
        context.runtime.crash_point("branch.forward")
        try:
            won = main.claim(snapshot, None)
        except OvertakenError:
            won = False
        if not won:
            raise _moved(context, name, f"another writer committed snapshot {snapshot.id} meanwhile")
        main.settle(snapshot)
    _copy_tags(context, branch)
    return ForwardReport(None if newest is None else newest.id, tuple(one.id for one in added))


def _beyond(
    context: TableContext, name: str, line: Sequence[Snapshot], newest: Snapshot | None
) -> tuple[Snapshot, ...]:
    if not line:
        raise FixRequest(
            "TS1364",
            f"{context.layout.name} cannot be fast-forwarded to branch {name}",
            why="the branch has no snapshot",
            fix="write to the branch first",
        )
    if newest is None:
        if line[0].id == 1:
            return tuple(line)
        raise _moved(context, name, f"main has no snapshot, the branch begins with snapshot {line[0].id}")
    same = next((one for one in line if one.id == newest.id), None)
    if same is None or not _is_same(same, newest):
        has = "another snapshot of that number" if same else f"snapshots {line[0].id} to {line[-1].id}"
        raise _moved(context, name, f"the newest snapshot of main is {newest.id}; the branch has {has}")
    return tuple(one for one in line if one.id > newest.id)


def _moved(context: TableContext, name: str, why: str) -> RetryError:
    return RetryError(
        "TS1363",
        f"{context.layout.name} cannot be fast-forwarded to branch {name}",
        why=f"{why}: main has commits that the branch was not made from, and they would be lost",
        fix="create another branch from main's newest snapshot and write the rows there",
    )


def _copy_forward_schemas(
    context: TableContext, branch: TableContext, name: str, added: Sequence[Snapshot]
) -> None:
    """New ones, each with a claim: it counts once a snapshot of main names it. All are compared before one is made."""
    if not added:
        return
    named = max(one.schema_id for one in added)
    wanted = [branch.schemas.get(number) for number in branch.schemas.list_ids() if number <= named]
    there = set(context.schemas.list_ids())
    for schema in wanted:
        if schema.id in there and not is_same_schema(context.schemas.get(schema.id), schema):
            raise FixRequest(
                "TS1364",
                f"{context.layout.name} cannot be fast-forwarded to branch {name}",
                why=f"both have a schema {schema.id}, and these differ",
                fix="write the rows of the branch to main, after the same ALTER TABLE there",
            )
    for schema in wanted:
        if schema.id not in there:
            claim = schema.claim or context.runtime.new_uuid()
            context.schemas.copy(replace(schema, claim=claim), context.guard.check)
            context.runtime.crash_point("branch.forward_schema")


def _copy_tags(context: TableContext, branch: TableContext) -> None:
    """Of the branch, where main has none of that name."""
    mine = TagStore(context.fileio, context.layout, context.snapshots)
    theirs = TagStore(branch.fileio, branch.layout, branch.snapshots)
    known = mine.list_all()
    for name in theirs.list_all():
        if name not in known:
            context.fileio.create_exclusive(context.layout.tag_path(name), encode_tag(theirs.get(name)))


def require_main(context: TableContext, what: str) -> None:
    """Raises FixRequest TS1372 on another branch."""
    if context.layout.branch != MAIN_BRANCH:
        raise FixRequest(
            "TS1372",
            f"{what} is not supported on branch {context.layout.branch} of {context.layout.name}",
            why="a branch takes rows, and gives them back to main by fast-forward",
            fix="do it on main",
        )
