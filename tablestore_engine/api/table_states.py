"""The states of one table: its snapshots, their names, and going back to one."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.store.iceberg_metadata.iceberg_sync import IcebergReport


@dataclass(frozen=True, repr=False)
class TableStates(TableHandle):
    """Snapshots and tags of a Table."""

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
