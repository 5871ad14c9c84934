"""The states of one table: its snapshots, their names, going back to one; partitions that go or are done."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from tablestore_engine.format.schema import TableSchema
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport
    from tablestore_engine.store.iceberg_metadata.iceberg_sync import IcebergReport


@dataclass(frozen=True, repr=False)
class TableStates(TableHandle):
    """Snapshots, tags and partitions of a Table."""

    def snapshots(self, *, last: int | None = None) -> tuple[Snapshot, ...]:
        """All snapshots, or the newest `last`, oldest first."""
        return self.store.snapshots.list_all(last)

    history = snapshots  # its name in other libraries

    def snapshot_ids(self) -> tuple[int, ...]:
        """Their ids, ascending."""
        return self.store.snapshots.list_ids()

    def latest_snapshot_id(self) -> int | None:
        """None when nothing was committed yet."""
        newest = self.store.latest()
        return None if newest is None else newest.id

    def tag(
        self, name: str, snapshot_id: int | None = None, *, time_retained: timedelta | None = None
    ) -> None:
        """Name a snapshot, by default the newest. Expiry keeps it as long as it has a name.

        `time_retained`: the tag is deleted when it is older; None: as `tag.default-time-retained` of the table says.

        >>> orders.tag("month_end")
        >>> orders.scan(tag="month_end")
        Scan('demo.orders', snapshot=1)
        """
        from tablestore_engine.store.tag_period import wall_clock

        store = self.store
        store.context.guard.check()
        retained = TableTraits(store.schema).tag_retained if time_retained is None else time_retained
        store.tags.create(
            name, snapshot_id, create_time=wall_clock(store.runtime.now_ms()), time_retained=retained
        )
        self.warehouse.iceberg.follow(self.identifier)

    def create_tag(self, name: str, snapshot: int | None = None) -> None:
        """`tag`, under its name in other libraries."""
        self.tag(name, snapshot)

    def delete_tag(self, name: str) -> None:
        """Remove a tag, and what only it kept; a snapshot that has not expired stays."""
        from tablestore_engine.store.expiry.expire_tag import delete_tag

        self.store.context.guard.check()
        delete_tag(self.store.context, name)

    def list_tags(self) -> Mapping[str, int]:
        """Tag name -> snapshot id."""
        return self.store.tags.list_all()

    tags = list_tags  # its name in other libraries

    def rollback(self, snapshot_id: int) -> None:
        """Make an earlier snapshot the newest again; later ones are deleted. Refused with a log: see restore."""
        self.store.rollback(snapshot_id)

    rollback_to = rollback  # its name in other libraries

    def sync_iceberg(self) -> IcebergReport | None:
        """Write the Iceberg metadata that commits could not write; None for a table without a snapshot.

        Raises FixRequest TS1028 for a table without Iceberg metadata, RetryError TS1371.
        """
        return self.warehouse.iceberg.sync(self.identifier)

    def restore(
        self, snapshot: int | None = None, *, tag: str | None = None, timestamp_ms: int | None = None
    ) -> WriteReport:
        """The rows of a past state again, as the newest snapshot: history stays, and the log gets what changed.

        The columns stay as they are. Raises NotFound, FixRequest TS1015, TS1343, RetryError TS1324 when another writer
        committed rows meanwhile, PublishPending TS1070.

        >>> report = orders.delete("region = 'eu'")
        >>> orders.restore(snapshot=1).inserted
        2
        """
        return self.warehouse.restore(
            self.identifier, TableVersion(snapshot=snapshot, tag=tag, timestamp_ms=timestamp_ms)
        )

    def expire_partitions(self, *, dry_run: bool = False) -> PartitionReport:
        """Delete the rows of partitions whose time is longer ago than `partition.expiration-time`, in one commit.

        Raises FixRequest TS1341 without that option, Unsupported TS1136, TS1137; PublishPending TS1070 when only the
        log is pending.
        """
        return self.warehouse.expire_partitions(self.identifier, dry_run=dry_run)

    def drop_partitions(
        self, where: str | pc.Expression | Mapping[str, object], *, dry_run: bool = False
    ) -> PartitionReport:
        """Delete all rows of the partitions that a filter of partition columns is TRUE of, in one commit.

        `where`: as a filter of `scan`, or values of some of the columns (None: NULL). Which partitions go is decided by
        the newest snapshot; rows that come into them meanwhile go, too. Snapshots and tags keep theirs. Raises
        FixRequest TS1215 (other columns), TS1311 (values), TS1565 (types); PublishPending TS1070 when only the log is
        pending.

        >>> table.drop_partitions("dt < '2026-02-01' and region != 'eu'")  # doctest: +SKIP
        """
        from tablestore_engine.api.scan_request import condition_of

        wanted = _equal_to(self.schema, where) if isinstance(where, Mapping) else where
        return self.warehouse.expire_partitions(self.identifier, condition_of(wanted), dry_run=dry_run)

    def mark_done(self, where: str | pc.Expression | Mapping[str, object] | None = None) -> tuple[str, ...]:
        """Mark partitions as done, as `partition.mark-done-action` says; their folders, as `dt=2026-01-31`.

        `where` as for drop_partitions; None: those that are idle by partition.idle-time-to-done. No row changes. Raises
        FixRequest TS1215, TS1217 (options), TS1219 (a report failed), NotFound TS1218 when no partition is meant.
        """
        from tablestore_engine.api.scan_request import condition_of
        from tablestore_engine.store.expiry.done_partitions import mark_where

        wanted = _equal_to(self.schema, where) if isinstance(where, Mapping) else where
        condition = None if wanted is None else condition_of(wanted)
        return mark_where(self.store.context, str(self.identifier), condition)


def _equal_to(schema: TableSchema, partition: Mapping[str, object]) -> pc.Expression:
    import pyarrow.compute as pc

    from tablestore_engine.format.type_arrow import type_to_arrow
    from tablestore_engine.store.write.write_request import static_values

    found = pc.scalar(True)
    for name, value in static_values(schema, partition).items():
        column, scalar = pc.field(name), pa.scalar(value, type_to_arrow(schema.field(name).type))
        found = found & (column.is_null() if value is None else column == scalar)
    return found
