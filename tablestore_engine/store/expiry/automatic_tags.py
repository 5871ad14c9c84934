"""Tags that commits make, and tags whose time is over.

CHANGE     which tags a commit makes and deletes (options tag.automatic-creation, tag.num-retained-max,
           tag.default-time-retained, tag.time-expire-enabled)
Steps      names of tags → is one due for the newest snapshot → the first snapshot for which it was due gets it, until
           none is due → of the tags of periods the oldest go, and each tag whose retention is over
INVARIANT  concurrent commits create a tag once: its file is created exclusively, as any tag's. A snapshot gets at most
           one tag of a period.
CRASH      a commit whose process died before its tag: the next commit makes it, of the snapshot that was due.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress

from tablestore_engine.errors import NotFound, TagTaken
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.iceberg_metadata.iceberg_sync import follow_iceberg
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tag_period import TagRule, wall_clock


def make_due_tags(context: TableContext, rule: TagRule) -> tuple[str, ...]:
    """Names of the tags that this call made, the oldest first. Raises what TagStore.create and delete_tag raise."""
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    made = tuple(_make(context, rule, tags))
    if made:
        follow_iceberg(context)
        expire_tags(context)
        if rule.most is not None:
            for name in rule.find_last(tags.list_names())[rule.most :]:
                _delete(context, name)
    return made


def expire_tags(context: TableContext, *, dry_run: bool = False) -> tuple[str, ...]:
    """Names of the tags whose retention is over; they go, but for a dry run. Raises what delete_tag raises."""
    if not TableTraits(context.latest_schema()).expires_tags:
        return ()
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    now = wall_clock(context.runtime.now_ms())
    over = []
    for name in tags.list_names():
        with suppress(NotFound):  # another process deleted it meanwhile
            tag = tags.get(name)
            if tag.create_time is not None and tag.time_retained is not None:
                over += [name] if now > tag.create_time + tag.time_retained else []
    if not dry_run:
        for name in over:
            _delete(context, name)
    return tuple(over)


def _make(context: TableContext, rule: TagRule, tags: TagStore) -> Iterator[str]:
    snapshots = context.snapshots
    newest = snapshots.find_latest()
    last = _find_last(rule, tags)
    while newest is not None and rule.find_due(newest.time_millis, last) is not None:
        after = 0 if last is None else tags.get(last).snapshot.id
        ids = [one for one in snapshots.list_ids() if one > after]
        if not ids:
            return
        at = bisect_left(ids, True, key=lambda one: _is_due(context, rule, one, last))
        chosen = snapshots.get(ids[min(at, len(ids) - 1)])
        name = rule.find_due(chosen.time_millis, last)
        if name is None:
            return
        with suppress(TagTaken):  # another process made it, of a snapshot that is due as well
            tags.create(
                name, chosen.id, create_time=wall_clock(context.runtime.now_ms()), time_retained=rule.retained
            )
            yield name
        if name == last:
            return
        last = name


def _is_due(context: TableContext, rule: TagRule, snapshot_id: int, last: str | None) -> bool:
    return rule.find_due(context.snapshots.get(snapshot_id).time_millis, last) is not None


def _find_last(rule: TagRule, tags: TagStore) -> str | None:
    """The newest tag of a period that is this table's: a name that a former table left says nothing."""
    for name in rule.find_last(tags.list_names()):
        with suppress(NotFound):
            tags.get(name)
            return name
    return None


def _delete(context: TableContext, name: str) -> None:
    with suppress(NotFound):  # another process was faster
        delete_tag(context, name)
