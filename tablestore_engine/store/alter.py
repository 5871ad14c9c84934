"""ALTER TABLE: a schema change as a commit of its own.

Steps      table with snapshots: a snapshot without rows that names the new schema, claimed like any other
           table without: the schema file alone is the change, since no rows are read with it
INVARIANT  a change of comments alone is COMPACT, which says that every row is what it was: statements, verdicts and
           staged rows that were computed before stay right.
INVARIANT  the changelog producer does not change while rows wait in level 0: the old one may have sent their changes,
           or may not, and the new one is asked when they are taken in.
INVARIANT  a change is made from the table's schema at the base of its commit: of two changes at once none is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tablestore_engine.errors import RetryError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.commit import CommitIdentity, Committer
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.metadata.schemas import is_described, is_same_schema
from tablestore_engine.store.read.scan import waiting_rows
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits

SchemaChange = Callable[[TableSchema], TableSchema]
_ATTEMPTS = 20


def alter_table(context: TableContext, committer: Committer, change: SchemaChange) -> TableSchema:
    """The schema after the change; an unchanged one commits nothing.

    Raises NotFound TS1310, RetryError TS1305, TS1365, TS1366, OutcomeUnknown TS1306, and what `change` raises.
    """
    for _ in range(_ATTEMPTS):
        if context.snapshots.find_latest() is not None:
            return _commit_change(context, committer, change)
        current = context.schema_at(None)
        changed = change(current)
        if is_same_schema(changed, current):
            return current
        newest = context.schemas.get_newest_id()
        successor = replace(changed, id=newest + 1, time_millis=context.runtime.now_ms(), claim=None)
        if context.schemas.claim(successor, context.guard.check):
            return successor
    raise RetryError(
        "TS1366",
        f"the schema of {context.layout.location} could not be changed",
        why=f"others changed it {_ATTEMPTS} times meanwhile",
        fix="run the statement again",
    )


def _commit_change(context: TableContext, committer: Committer, change: SchemaChange) -> TableSchema:
    claim = context.runtime.new_uuid()
    planned: list[TableSchema] = []

    def plan(base: Snapshot | None) -> Planned:
        current = context.schema_at(base)
        changed = change(current)
        is_new = not is_same_schema(changed, current)
        if is_new:
            _check_waiting(context, base, current, changed)
            changed = context.schemas.numbered(
                replace(changed, time_millis=context.runtime.now_ms()), claim, above=current
            )
        planned[:] = [changed if is_new else current]
        kind = CommitKind.COMPACT if is_described(changed, current) else CommitKind.APPEND
        return Planned(
            kind, planned[0], (), ConflictScope(), is_forced=is_new, claims_schema=is_new, operation=None
        )

    retries = TableTraits(context.latest_schema()).retries_max
    committer.commit(plan, CommitIdentity.of(context.runtime, None, None), retries_max=lambda: retries)
    return planned[0]


def _check_waiting(
    context: TableContext, base: Snapshot | None, current: TableSchema, changed: TableSchema
) -> None:
    """Raises FixRequest TS1670."""
    before, after = TableTraits(current), TableTraits(changed)
    if base is None or not current.is_keyed or before.changelog_producer == after.changelog_producer:
        return
    waiting = [one for one in context.scanner.live_entries(base) if not one.file.level]
    if waiting:
        raise waiting_rows(context.layout.location, waiting, "'changelog-producer' cannot change")
