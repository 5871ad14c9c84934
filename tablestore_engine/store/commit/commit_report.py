"""Who commits, and what the commit did: both stand in the snapshot.

INVARIANT  a repeated commit returns the report of the first: its counts are read from the snapshot's properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from tablestore_engine.format.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.seen_table import SeenTable

if TYPE_CHECKING:
    from tablestore_engine.store.commit.snapshot_files import Planned

PROPERTY_PREFIX = "tablestore."


@dataclass(frozen=True)
class CommitIdentity:
    """`is_new`: made here, so that no snapshot from before this call can carry it."""

    user: str
    identifier: int
    is_new: bool = False

    @classmethod
    def of(cls, runtime: Runtime, user: str | None, identifier: int | None) -> CommitIdentity:
        """A full pair is the caller's identity; a user alone is the prefix of a new one (format.md#snapshots)."""
        if user is not None and identifier is not None:
            return cls(user, identifier)
        unique = runtime.new_uuid()
        name = unique if user is None else f"{user}_{unique}"
        return cls(name, BATCH_COMMIT_IDENTIFIER if identifier is None else identifier, is_new=True)


@dataclass(frozen=True, kw_only=True)
class CommitCounts:
    """Rows and files of one commit: CommitReport and WriteReport have these fields."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    files_added: int = 0
    bytes_added: int = 0
    changelog_rows: int = 0

    def counts(self) -> dict[str, Any]:
        """These fields alone, by name: arguments for another object that has them."""
        return {one.name: getattr(self, one.name) for one in fields(CommitCounts)}


# a snapshot has the rows of its changelog in a field of the format
_KEPT = tuple(one.name for one in fields(CommitCounts) if one.name != "changelog_rows")


@dataclass(frozen=True)
class CommitReport(CommitCounts):
    """`snapshot_id` None: nothing to write into a table without snapshots. `staged`: name of the staged snapshot.

    `is_empty`: there was nothing to commit; the newest snapshot stayed. `early`: what the receiver of its changelog
    rows answered for each change, of the attempt that won; None where it has not got all of them. `seen`: the table
    right behind the commit, for what follows in the same operation; None of a staged or an earlier one.
    `chosen_buckets`: how many buckets the new table got where `bucket` is `auto`.
    """

    snapshot_id: int | None
    schema_id: int = 0
    staged: str | None = None
    commit_user: str | None = None
    commit_identifier: int | None = None
    is_empty: bool = False
    early: tuple[object, ...] | None = None
    chosen_buckets: int | None = None
    seen: SeenTable | None = field(default=None, compare=False, repr=False)


def report_of(snapshot: Snapshot) -> CommitReport:
    """The report that a snapshot keeps in its properties; counts of other writers' snapshots are 0."""
    kept = snapshot.properties or {}
    counts: dict[str, Any] = {
        name: int(kept.get(PROPERTY_PREFIX + name.replace("_", "-"), "0")) for name in _KEPT
    }
    return CommitReport(
        snapshot_id=snapshot.id,
        changelog_rows=snapshot.changelog_record_count or 0,
        schema_id=snapshot.schema_id,
        commit_user=snapshot.commit_user,
        commit_identifier=snapshot.commit_identifier,
        **counts,
    )


def report_of_nothing(base: Snapshot | None, planned: Planned, identity: CommitIdentity) -> CommitReport:
    """The report of a commit that needed no snapshot: the newest one stays."""
    return CommitReport(
        snapshot_id=None if base is None else base.id,
        unchanged=sum(change.unchanged for change in planned.changes),
        schema_id=planned.schema.id,
        commit_user=identity.user,
        commit_identifier=identity.identifier,
        is_empty=True,
    )


def early_answers(planned: Planned) -> tuple[object, ...] | None:
    """Of all changes that have a changelog; None when one is missing, or none has one."""
    answers = tuple(change.early for change in planned.changes if change.changelog)
    return answers if answers and None not in answers else None


def count_properties(planned: Planned) -> dict[str, str]:
    """The counts of a plan as snapshot properties; zeros are left out."""
    added = [meta for change in planned.changes for meta in change.added]
    counts = {
        "inserted": sum(change.inserted for change in planned.changes),
        "updated": sum(change.updated for change in planned.changes),
        "deleted": sum(change.deleted for change in planned.changes),
        "unchanged": sum(change.unchanged for change in planned.changes),
        "files_added": len(added),
        "bytes_added": sum(meta.file_size for meta in added),
    }
    return {PROPERTY_PREFIX + name.replace("_", "-"): str(count) for name, count in counts.items() if count}


def added_counts(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """The counts of two commits together, from their properties."""
    names = [PROPERTY_PREFIX + name.replace("_", "-") for name in _KEPT]
    totals = {name: int(one.get(name, "0")) + int(other.get(name, "0")) for name in names}
    return {name: str(total) for name, total in totals.items() if total}
