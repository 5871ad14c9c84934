"""What is stored with a staged snapshot: by the build that made it, in its properties, and by its tests, beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.read_log import TableRead
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.metadata.commit_history import commit_of, was_committed
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.stage.stage_rebase import StagedSnapshot, StoredOutcome
from tablestore_engine.store.stage.staging import stage_context
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.gate.failing_rows import decode_failing_rows
from tablestore_engine.warehouse.gate.gate_rule import Outcome, Staged

NAME, OWNER, POLICY, GATES, PARENTS, BATCHES = (
    f"tablestore.stage.{key}" for key in ("name", "owner", "publish", "gates", "parents", "batches")
)


def stage_properties(item: Staged) -> dict[str, str]:
    made = {
        NAME: item.name,
        OWNER: item.owner,
        POLICY: item.policy,
        GATES: json.dumps(list(item.gates)),
        PARENTS: json.dumps([asdict(read) for read in item.parents]),
    }
    return {**made, BATCHES: json.dumps(list(item.batches))} if item.batches else made


def was_published_as(snapshots: SnapshotStore, newest: Snapshot | None, read: TableRead) -> bool:
    """Whether a commit that was read while it was staged is one of the table's: publishing never gives a lower id."""
    return was_committed(snapshots, newest, read.version, first=read.snapshot)


def read_staged(identifier: Identifier, seen: TableContext, staged: StagedSnapshot) -> Staged:
    """One staged snapshot with all that was kept beside it."""
    properties = staged.snapshot.properties or {}
    as_read = TableRead(str(identifier), commit_of(staged.snapshot), staged.snapshot.id)
    return Staged(
        table=str(identifier),
        name=staged.name,
        version=as_read.version,
        snapshot=staged.snapshot.id,
        owner=properties.get(OWNER, ""),
        policy=properties.get(POLICY, "auto"),
        gates=tuple(json.loads(properties.get(GATES, "[]"))),
        parents=tuple(TableRead(**one) for one in json.loads(properties.get(PARENTS, "[]"))),
        outcomes=tuple(_outcome(seen, one) for one in staged.outcomes),
        is_out=not identifier.is_replacement
        and was_published_as(seen.snapshots, seen.newest_snapshot(), as_read),
        is_beside=identifier.is_replacement,
        batches=tuple(json.loads(properties.get(BATCHES, "[]"))),
        written_ms=staged.snapshot.time_millis,
        used_ms=max((staged.snapshot.time_millis, *(one.time_millis for one in staged.outcomes))),
        kept_ms=_retention(seen, staged),
    )


def _retention(seen: TableContext, staged: StagedSnapshot) -> int | None:
    """In ms, as the table says or as the staged snapshot would have it, whichever is longer; None: without end."""
    said = [seen.latest_schema()]
    if said[0].id != staged.snapshot.schema_id:
        said.append(stage_context(seen, staged.name).schemas.get(staged.snapshot.schema_id))
    try:
        found = [TableTraits(schema).staged_retention_ms for schema in said]
    except FixRequest:  # written by another engine: nothing is dropped by a value that cannot be read
        return None
    return None if None in found else max(one for one in found if one is not None)


def _outcome(seen: TableContext, kept: StoredOutcome) -> Outcome:
    try:
        found = json.loads(kept.details or "[]")
        if isinstance(found, list):  # as versions before kept it
            found = {"reads": found}
        return Outcome(
            kept.test_id,
            kept.status,
            _table_reads(found["reads"]),
            _table_reads(found.get("constants", [])),
            decode_failing_rows(found),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FixData(
            "TS1077",
            f"what {kept.test_id} said of a staged snapshot of {seen.layout.location} cannot be read",
            why=str(error),
            fix="drop the staged snapshot (tablestore staged drop) and build the model again",
        ) from error


def _table_reads(kept: list[Mapping[str, Any]]) -> tuple[TableRead, ...]:
    return tuple(TableRead(**one) for one in kept)
