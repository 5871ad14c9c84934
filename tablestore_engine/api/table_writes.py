"""Writing to one table: append, upsert, overwrite and delete, each one commit, and `write` for everything else."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.api.scan_request import Filter, condition_of
from tablestore_engine.api.table_handle import TableHandle
from tablestore_engine.errors import FixRequest
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.store.rows.row_filter import RowFilter, SameKeys
    from tablestore_engine.warehouse.write.write_spec import WriteSpec


@dataclass(frozen=True, repr=False)
class TableWrites(TableHandle):
    """The writes of a Table.

    Rows are an Arrow table, batch or reader, a pandas, polars or Spark frame, a list of dicts, SQL text, or any object
    with the Arrow PyCapsule stream. Each write is one snapshot with its changelog.
    """

    def append(self, rows: object) -> WriteReport:
        """Add rows to a table without a primary key. Raises FixRequest TS1568 for a keyed table, and as write.

        >>> events = engine.create_table("demo.events", pa.schema({"at": pa.date32(), "what": pa.string()}))
        >>> report = events.append([{"at": date(2026, 1, 31), "what": "login"}])
        >>> report.inserted
        1
        """
        from tablestore_engine.store.write.write_request import WriteMode
        from tablestore_engine.warehouse.write.write_spec import WriteSpec

        if self.schema.is_keyed:
            raise self._refused(
                "append", "it has a primary key, so rows may replace stored ones", "use upsert"
            )
        return self._write(rows, WriteSpec(mode=WriteMode.APPEND))

    def upsert(self, rows: object) -> WriteReport:
        """Put rows into a table with a primary key: new keys are inserted, rows of stored keys are replaced.

        Raises FixRequest TS1568 for a table without a key, and as write.

        >>> report = orders.upsert(pl.DataFrame({"id": [3, 4], "region": ["eu", "us"], "amount": [33.0, 40.0]}))
        >>> report.summary()
        'snapshot 2 (+1 ~1 -0)'
        """
        from tablestore_engine.store.write.write_request import WriteMode
        from tablestore_engine.warehouse.write.write_spec import WriteSpec

        if not self.schema.is_keyed:
            raise self._refused(
                "upsert", "it has no primary key, so no row replaces another one", "use append"
            )
        return self._write(rows, WriteSpec(mode=WriteMode.UPSERT))

    def overwrite(
        self,
        rows: object,
        *,
        filter: Filter | None = None,  # noqa: A002 - the name that users guess
        partitions: bool = False,
    ) -> WriteReport:
        """Replace all rows, those that a filter is TRUE of, or with `partitions` those of the partitions in `rows`.

        New rows need not match the filter. Raises FixRequest TS1568 for both, or for partitions that the table does
        not have, and as scan and write.

        >>> report = orders.overwrite([{"id": 9, "region": "eu", "amount": 1.0}], filter="region = 'eu'")
        >>> orders.scan().to_polars()["id"].sort().to_list()
        [2, 9]
        """
        from tablestore_engine.store.rows.row_filter import MatchingRows
        from tablestore_engine.store.write.write_request import WriteMode
        from tablestore_engine.warehouse.write.write_spec import WriteSpec

        if filter is not None and partitions:
            raise self._refused(
                "overwrite", "filter and partitions each name the rows to replace", "pass one of them"
            )
        if partitions and not self.schema.partition_keys:
            raise self._refused("overwrite", "it has no partitions", "pass a filter, or replace all rows")
        if filter is not None:
            return self._replace(rows, MatchingRows(condition_of(filter)))
        mode = WriteMode.OVERWRITE_PARTITIONS if partitions else WriteMode.OVERWRITE_TABLE
        return self._write(rows, WriteSpec(mode=mode))

    def delete(self, where: object) -> WriteReport:
        """Delete the rows that a filter is TRUE of, or the rows of these keys.

        Keys are rows as for `upsert`; only the columns of the primary key count. A commit of others meanwhile is no
        error: the rows are chosen again. Raises FixRequest TS1564 to TS1566, TS1568.

        >>> orders.delete("amount < 15").deleted
        1
        >>> orders.delete([{"id": 2}]).deleted
        1
        >>> orders.scan().to_polars()["id"].to_list()
        [3]
        """
        import pyarrow.compute as pc

        from tablestore_engine.store.rows.row_filter import MatchingRows

        if isinstance(where, str | pc.Expression):
            return self._replace([], MatchingRows(condition_of(where)))
        return self._replace([], self._keys(where))

    def write(self, rows: object, spec: WriteSpec | None = None) -> WriteReport:
        """The general form of all writes: what a WriteSpec says, with one commit, as Engine.write does.

        Raises TS1023, TS13xx, TS16xx.

        >>> rows = orders.scan(filter="id = 1").to_arrow()
        >>> orders.write(rows, WriteSpec(properties={"job": "nightly"}, always=True)).snapshot_id
        2
        """
        from tablestore_engine.warehouse.write.write_spec import WriteSpec
        from tablestore_engine.warehouse.write_rows import write_rows

        return write_rows(self.warehouse, self.identifier, rows, spec or WriteSpec())

    def _write(self, rows: object, spec: WriteSpec) -> WriteReport:
        if isinstance(rows, list) and not rows:  # without a row nothing says which columns there are
            rows = self.schema.arrow_schema().empty_table()
        return self.write(rows, spec)

    def _replace(self, rows: object, replaces: RowFilter) -> WriteReport:
        from tablestore_engine.store.write.write_request import WriteMode
        from tablestore_engine.warehouse.write.write_spec import WriteSpec

        return self._write(rows, WriteSpec(mode=WriteMode.REPLACE, replaces=replaces))

    def _keys(self, rows: object) -> SameKeys:
        from tablestore_engine.store.rows.row_filter import SameKeys
        from tablestore_engine.warehouse.write.incoming_rows import to_arrow

        schema = self.schema
        if not schema.is_keyed:
            raise self._refused("delete by key", "it has no primary key", "pass a filter")
        empty = isinstance(rows, list) and not rows
        given = schema.arrow_schema().empty_table() if empty else to_arrow(rows, are_keys=True)
        spelled = {name.lower(): name for name in given.column_names}
        missing = [name for name in schema.primary_keys if name.lower() not in spelled]
        if missing:
            why = f"the rows lack {', '.join(missing)} of the primary key; they have {', '.join(given.column_names)}"
            raise self._refused("delete by key", why, "give all columns of the primary key")
        keys = pa.table(
            [given.column(spelled[name.lower()]) for name in schema.primary_keys], schema.primary_keys
        )
        return SameKeys(schema.primary_keys, keys)

    def _refused(self, what: str, why: str, fix: str) -> FixRequest:
        return FixRequest("TS1568", f"table {self.identifier} cannot {what}", why=why, fix=fix)
