"""Reading one state of a table: `scan`, and in one call for Arrow, pandas, polars and DuckDB."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablestore_engine.api.guessed_names import OF_TABLE, unknown_attribute
from tablestore_engine.api.scan_request import Filter, parse_scan, refuse_scan, state_of
from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.api.table_scan import Scan
from tablestore_engine.catalog.name_lookup import find_snapshot, resolve_table
from tablestore_engine.store.table_traits import TableTraits

if TYPE_CHECKING:
    import polars as pl

    from tablestore_engine.certify.certificate import Certificate


@dataclass(frozen=True, repr=False)
class TableReads(TableHandle):
    """The reads of a Table or Branch of one state."""

    def scan(  # noqa: PLR0913 - each of the last six names a state
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,  # noqa: A002 - the name that users guess
        limit: int | None = None,
        snapshot: int | str | None = None,
        tag: str | None = None,
        timestamp: datetime | int | None = None,
        timestamp_ms: int | datetime | None = None,
        staged: str | None = None,
        watermark: datetime | int | None = None,
    ) -> Scan:
        """The rows of one state: the current one, or that of a snapshot, tag, time, watermark or staged snapshot.

        columns  names of columns; None: all
        filter   SQL text, or a pyarrow expression. Rows stay for which it is TRUE; files that cannot have such a row
                 are not opened
        limit    so many rows at most
        timestamp  a datetime with a time zone, or epoch milliseconds; `timestamp_ms` is the same
        watermark  the same; the first snapshot whose watermark (of Flink) has reached it

        Raises NotFound for a state or column, FixRequest TS1564 to TS1566, TS1569.

        >>> orders.scan(columns=["id"], filter="amount > 15 and region = 'us'").to_polars().rows()
        [(2,)]
        >>> orders.scan(filter=pc.field("amount") * 2 > 50).to_arrow()["id"].to_pylist()
        [3]
        >>> orders.scan(snapshot=1, limit=2).to_pandas().shape
        (2, 3)
        """
        if timestamp is not None and timestamp_ms is not None:
            raise refuse_scan("timestamp_ms", timestamp_ms, "timestamp alone, which means the same")
        moment = timestamp_ms if timestamp is None else timestamp
        version = state_of(
            snapshot=snapshot, tag=tag, timestamp_ms=moment, branch=staged, watermark=watermark
        )
        store = self.store if staged is None else self.store.on_staged(staged)
        resolved = resolve_table(store, None if staged is not None else version)
        request = parse_scan(resolved.schema, columns, filter, limit)
        return Scan(self.warehouse, self.identifier, store, resolved, request)

    def to_arrow(self, *, snapshot: int | str | None = None, tag: str | None = None) -> pa.Table:
        """All rows of the current state, or of a snapshot or tag, as `scan().to_arrow()`.

        >>> orders.to_arrow().num_rows
        3
        """
        return self._rows(snapshot=snapshot, tag=tag).to_arrow()

    def to_pandas(self, *, snapshot: int | str | None = None, tag: str | None = None) -> Any:  # noqa: ANN401 - pandas is imported by the first call only
        """All rows of the current state, or of a snapshot or tag, as `scan().to_pandas()`.

        >>> orders.to_pandas().shape
        (3, 3)
        """
        return self._rows(snapshot=snapshot, tag=tag).to_pandas()

    def to_polars(self, *, snapshot: int | str | None = None, tag: str | None = None) -> pl.DataFrame:
        """All rows of the current state, or of a snapshot or tag, as `scan().to_polars()`.

        >>> orders.to_polars()["id"].to_list()
        [1, 2, 3]
        """
        return self._rows(snapshot=snapshot, tag=tag).to_polars()

    def to_duckdb(self, *, snapshot: int | str | None = None, tag: str | None = None) -> Any:  # noqa: ANN401 - duckdb is an extra
        """All rows of the current state, or of a snapshot or tag, as `scan().to_duckdb()`.

        Raises FixRequest TS1567 when DuckDB is missing.

        >>> orders.to_duckdb().aggregate("sum(amount)").fetchall()
        [(60.0,)]
        """
        return self._rows(snapshot=snapshot, tag=tag).to_duckdb()

    def head(self, rows: int = 5) -> pl.DataFrame:
        """Some rows of the current state as a polars frame, `rows` at most; files after the last one are not opened.

        >>> orders.head(2)["id"].to_list()
        [1, 2]
        """
        return self._rows(rows).to_polars()

    def count(self) -> int:
        """How many rows the current state has, by metadata alone; `len(table)` is the same.

        >>> orders.count(), len(orders)
        (3, 3)
        """
        return self.store.plan_scan(find_snapshot(self.store, None)).visible_rows

    def certify(
        self,
        readers: Sequence[str] | None = None,
        *,
        snapshot: int | str | None = None,
        python: str | None = None,
    ) -> Certificate:
        """Whether readers of others show the rows of a state as this engine does: schema, columns and rows.

        `readers`: pypaimon, pypaimon-rust, duckdb, pyiceberg; by default all that are installed. `python`: the
        interpreter of the environment that has them, by default this one. Each reader is a process of its own. Tables
        are in a folder or in an S3-compatible store.
        Raises FixRequest TS1581, TS1582, TS1583.

        >>> result = orders.certify(["pypaimon-rust"])
        >>> result.is_clean, result.readers[0].status, result.readers[0].rows
        (True, 'OK', 3)
        """
        from tablestore_engine.certify.certificate import CertifiedState, certify
        from tablestore_engine.certify.reader_process import ReaderEnvironment, reader_store
        from tablestore_engine.store.branches.branch_changes import require_main
        from tablestore_engine.store.iceberg_metadata.iceberg_place import find_place

        require_main(self.store.context, "certify")
        scan = self._rows(snapshot=snapshot)
        place = find_place(self.store.context.layout, TableTraits(scan.resolved.schema).iceberg_storage)
        state = CertifiedState(
            str(self.identifier),
            scan.resolved.snapshot.id,
            self.store.location,
            None if place is None else place.location,
            scan.schema,
            scan.to_batches,
            reader_store(self.warehouse.address, os.environ),
        )
        return certify(state, readers, ReaderEnvironment(python))

    def __len__(self) -> int:
        return self.count()

    def __getattr__(self, name: str) -> object:
        """Names of other libraries: the error has the call. Raises AttributeError."""
        if hasattr(type(self), name):  # a property that failed so: its own error is the true one
            return object.__getattribute__(self, name)
        raise unknown_attribute("Table", name, OF_TABLE)

    def __bool__(self) -> bool:
        """True, also without rows: a handle is no container of rows."""
        return True

    def _rows(
        self, limit: int | None = None, *, snapshot: int | str | None = None, tag: str | None = None
    ) -> Scan:
        resolved = resolve_table(self.store, state_of(snapshot=snapshot, tag=tag))
        request = parse_scan(resolved.schema, None, None, limit)
        return Scan(self.warehouse, self.identifier, self.store, resolved, request)
