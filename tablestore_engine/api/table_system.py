"""The system tables of one table, as Arrow."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.api.scan_request import Filter, ScanRequest, parse_scan, refuse_scan, state_of
from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.api.table_scan import Scan
from tablestore_engine.catalog.name_lookup import find_state, resolve_table
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.sql.table_version import TableVersion

if TYPE_CHECKING:
    from tablestore_engine.format.table_statistics import TableStatistics


@dataclass(frozen=True, repr=False)
class TableSystem(TableHandle):
    """The system tables of a Table."""

    @property
    def system_tables(self) -> tuple[str, ...]:
        """Their names, by name.

        >>> "files" in orders.system_tables
        True
        """
        from tablestore_engine.catalog.system_tables.known_tables import SYSTEM_TABLES

        return SYSTEM_TABLES

    def analyze(self, columns: Sequence[str] | None = None) -> TableStatistics | None:
        """Count rows, and values of columns (None: of all): `$statistics` has them, and other engines plan with them.

        One commit that changes no row; None without a snapshot. Raises FixRequest TS1225, RetryError TS1226.

        >>> found = orders.analyze()
        >>> found.row_count, found.columns["id"].max, found.columns["region"].distinct_count
        (3, '3', 2)
        """
        return self.warehouse.analyze(self.identifier, columns)

    def system_table(  # noqa: PLR0913 - words of one request, by name, each with a default
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002 - as Table.scan
        limit: int | None = None,
        snapshot: int | str | None = None,
        tag: str | None = None,
        timestamp: datetime | int | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> pa.Table:
        """The rows of `orders$NAME`, with Paimon's columns (docs/sql.md#system-tables).

        name      files, snapshots, … (`system_tables`), with or without the `$`
        columns, filter, limit, snapshot, tag, timestamp   as `scan`. All but `ro`, `audit_log` and `binlog` open no
                  data file
        since, until   `audit_log` and `binlog` of the changes of the snapshots in (since, until], as `changes`

        Raises NotFound TS1490 for another name, and for a state; FixRequest TS1345, TS1349, TS1564 to TS1566, TS1569;
        Unsupported TS1348.

        >>> orders.system_table("snapshots", columns=["snapshot_id", "commit_kind"]).to_pylist()
        [{'snapshot_id': 1, 'commit_kind': 'APPEND'}]
        >>> orders.system_table("files", filter="level > 0", limit=1).num_rows
        1
        """
        from tablestore_engine.catalog.system_tables.known_tables import (
            AUDIT_LOG,
            BINLOG,
            find_metadata_table,
        )
        from tablestore_engine.catalog.system_tables.row_tables import row_table_schema

        name = name.removeprefix("$").lower()
        table = find_metadata_table(str(self.identifier), name)
        version = state_of(snapshot=snapshot, tag=tag, timestamp_ms=timestamp)
        if (since is not None or until is not None) and (
            name not in (AUDIT_LOG, BINLOG) or version is not None
        ):
            raise refuse_scan(f"${name} with since", since, f"${AUDIT_LOG} or ${BINLOG}, and no other state")
        if name in (AUDIT_LOG, BINLOG):
            shape = row_table_schema(name, resolve_table(self.store, version).schema)
            request = parse_scan(shape, columns, filter, limit)
            return _chosen(iter([self._kind_rows(name, shape, version, since, until)]), shape, request)
        if table is None:
            resolved = resolve_table(self.store, version, is_read_optimized=True)
            request = parse_scan(resolved.schema, columns, filter, limit)
            return Scan(self.warehouse, self.identifier, self.store, resolved, request).to_arrow()
        request = parse_scan(table.schema, columns, filter, limit)
        _, state, _ = find_state(self.store, version)
        return _chosen(table.batches(state), table.schema, request)

    def _kind_rows(
        self,
        name: str,
        shape: TableSchema,
        version: TableVersion | None,
        since: int | None,
        until: int | None,
    ) -> pa.Table:
        from tablestore_engine.catalog.system_tables.row_tables import changed_rows, state_rows
        from tablestore_engine.warehouse.snapshot_diff import read_changes_table

        if since is not None or until is not None:
            return changed_rows(name, shape, read_changes_table(self.store, since or 0, until))
        resolved = resolve_table(self.store, version)
        rows = Scan(self.warehouse, self.identifier, self.store, resolved, ScanRequest()).to_arrow()
        return state_rows(name, shape, rows)


def _chosen(batches: Iterator[pa.Table], schema: TableSchema, request: ScanRequest) -> pa.Table:
    """The asked columns of the first rows that the filter is TRUE of; what comes after the limit is not made."""
    wanted = None if request.condition is None else request.condition.bind(schema)
    names = list(schema.field_names if request.columns is None else request.columns)
    found: list[pa.Table] = []
    rows = 0
    for batch in batches:
        part = batch if wanted is None else batch.filter(pa.array(wanted.mask(batch.select(wanted.columns))))
        part = part.select(names)
        found.append(part if request.limit is None else part.slice(0, request.limit - rows))
        rows += found[-1].num_rows
        if request.limit is not None and rows >= request.limit:
            break
    return pa.concat_tables(found)
