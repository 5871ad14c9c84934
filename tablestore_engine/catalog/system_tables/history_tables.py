"""`$snapshots`, `$tags`, `$branches`, `$consumers`: the states of a table and what keeps them.

CHANGE     the columns of $snapshots, $tags, $branches and $consumers
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from tablestore_engine.catalog.system_tables.system_table import Row, SystemState, SystemTable, moment
from tablestore_engine.format.layout import BRANCH_PREFIX
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.metadata.tags import TagStore

_AT_ONCE = 64


def _snapshots(state: SystemState) -> Iterator[Row]:
    store = state.context.snapshots
    ids = store.list_ids()
    for at in range(0, len(ids), _AT_ONCE):
        reads = [partial(store.find, number) for number in ids[at : at + _AT_ONCE]]
        yield from (_snapshot(one) for one in state.context.fileio.run_together(reads) if one is not None)


def _snapshot(one: Snapshot) -> Row:
    return (
        one.id,
        one.schema_id,
        one.commit_user,
        one.commit_identifier,
        one.commit_kind.value,
        moment(one.time_millis),
        one.base_manifest_list,
        one.delta_manifest_list,
        one.changelog_manifest_list,
        one.total_record_count,
        one.delta_record_count,
        one.changelog_record_count,
        one.watermark,
        one.next_row_id,
        one.operation,
        one.writer_version,
    )


def _tags(state: SystemState) -> Iterator[Row]:
    context = state.context
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    for name in sorted(tags.list_all()):
        tag = tags.get(name)
        yield (
            name,
            tag.snapshot.id,
            tag.snapshot.schema_id,
            moment(tag.snapshot.time_millis),
            tag.snapshot.total_record_count,
            tag.create_time,
            None if tag.time_retained is None else duration_text(tag.time_retained),
        )


def duration_text(span: timedelta) -> str:
    """As Java's Duration prints it: `PT36H30M1.5S`."""
    micros = span // timedelta(microseconds=1)
    minutes, seconds = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    parts = f"{hours}H" if hours else ""
    parts += f"{minutes}M" if minutes else ""
    if seconds or not parts:
        whole, rest = divmod(seconds, 1_000_000)
        parts += f"{whole}{f'.{rest:06}'.rstrip('0') if rest else ''}S"
    return f"PT{parts}"


def _branches(state: SystemState) -> Iterator[Row]:
    """A branch is as old as its folder says: its last change of files counts, as in Paimon."""
    listed = state.context.fileio.list(state.context.layout.branches_dir)
    for one in sorted(listed, key=lambda status: status.name):
        if one.is_dir and one.name.startswith(BRANCH_PREFIX):
            yield (one.name.removeprefix(BRANCH_PREFIX), moment(one.modified_ms))


def _consumers(state: SystemState) -> Iterator[Row]:
    for one in state.context.consumers.list_all():
        yield (one.name, one.consumer.next_snapshot)


HISTORY_TABLES = (
    SystemTable(
        "snapshots",
        (
            ("snapshot_id", "BIGINT"),
            ("schema_id", "BIGINT"),
            ("commit_user", "STRING"),
            ("commit_identifier", "BIGINT"),
            ("commit_kind", "STRING"),
            ("commit_time", "TIMESTAMP(3)"),
            ("base_manifest_list", "STRING"),
            ("delta_manifest_list", "STRING"),
            ("changelog_manifest_list", "STRING?"),
            ("total_record_count", "BIGINT?"),
            ("delta_record_count", "BIGINT?"),
            ("changelog_record_count", "BIGINT?"),
            ("watermark", "BIGINT?"),
            ("next_row_id", "BIGINT?"),
            ("operation", "STRING?"),
            ("writer_version", "STRING?"),
        ),
        _snapshots,
    ),
    SystemTable(
        "tags",
        (
            ("tag_name", "STRING"),
            ("snapshot_id", "BIGINT"),
            ("schema_id", "BIGINT"),
            ("commit_time", "TIMESTAMP(3)"),
            ("record_count", "BIGINT?"),
            ("create_time", "TIMESTAMP(3)?"),
            ("time_retained", "STRING?"),
        ),
        _tags,
    ),
    SystemTable("branches", (("branch_name", "STRING"), ("create_time", "TIMESTAMP(3)")), _branches),
    SystemTable("consumers", (("consumer_id", "STRING"), ("next_snapshot_id", "BIGINT")), _consumers),
)
