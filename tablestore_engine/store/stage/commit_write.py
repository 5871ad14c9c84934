"""A write goes into a new snapshot of its branch, into a new staged snapshot, or into one that is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tablestore_engine.store.commit.commit import CommitIdentity, CommitReport, Plan
from tablestore_engine.store.commit.snapshot_claim import StageExistsError
from tablestore_engine.store.metadata.identity import table_gone
from tablestore_engine.store.stage.append_to_stage import More, write_more
from tablestore_engine.store.stage.staged_destination import StagedDestination
from tablestore_engine.store.stage.staging import find_staged, stage_context
from tablestore_engine.store.table_context import TableContext, committer_of
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.prepublish_rows import TaskReceiver, with_commit
from tablestore_engine.store.write.write_request import WriteRequest


def commit_write(
    context: TableContext,
    write_on: Callable[[TableContext, TaskReceiver | None], Plan],
    request: WriteRequest,
) -> CommitReport:
    """Commit what `write_on` plans. Raises RetryError TS1365, and what a commit can."""
    if request.identity is not None and request.identity != context.guard.identity:
        raise table_gone(context.layout.location, is_replaced=context.guard.identity is not None)
    committer, stage = committer_of(context), request.stage
    identity = CommitIdentity.of(context.runtime, request.commit_user, request.commit_identifier)

    seen, context = context.seen, replace(context, seen=None if request.new_schema else context.seen)

    def retries_max() -> int:
        return TableTraits(context.latest_schema()).retries_max

    def append(name: str) -> CommitReport:
        plan = write_on(stage_context(context, name), None)
        return write_more(More(context, committer, name, plan, identity, request.properties, retries_max()))

    if stage is not None and request.builds_on_stage and find_staged(context, stage) is not None:
        return append(stage)
    early = request.early if stage is None else None  # what waits for tests is not visible
    destination = (
        None
        if stage is None
        else StagedDestination(context, stage, committer.main, takes_more=request.builds_on_stage)
    )
    receiver = None if early is None else with_commit(early, f"{identity.user}:{identity.identifier}")
    try:
        return committer.commit(
            write_on(context, receiver),
            identity,
            destination=destination,
            properties=request.properties,
            retries_max=retries_max,
            seen=seen,
        )
    except StageExistsError:
        return append(str(stage))
