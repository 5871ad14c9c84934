"""The partitions of a table: which expire, which are dropped, which are marked as done."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.api.table_handle import TableHandle

if TYPE_CHECKING:
    from tablestore_engine.format.schema import TableSchema
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport


class TablePartitions(TableHandle):
    """Part of Table."""

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
    from tablestore_engine.format.type_arrow import type_to_arrow
    from tablestore_engine.store.write.write_request import static_values

    found = pc.scalar(True)
    for name, value in static_values(schema, partition).items():
        column, scalar = pc.field(name), pa.scalar(value, type_to_arrow(schema.field(name).type))
        found = found & (column.is_null() if value is None else column == scalar)
    return found
