"""Rows of one pinned state of a table, for Arrow, pandas, polars, DuckDB and Spark.

INVARIANT  nothing but to_spark starts a JVM.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablestore_engine.api.scan_request import (
    Filter,
    ScanRequest,
    filtered,
    refuse_spark,
    selected,
)
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import result_schema
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame

    from tablestore_engine.catalog.resolved_names import ResolvedTable
    from tablestore_engine.store.rows.row_condition import BoundCondition


@dataclass(frozen=True, repr=False)
class Scan:
    """Rows of one pinned state of a table: what Table.scan returns. Each method reads them again.

    Libraries that take the Arrow PyCapsule stream (`__arrow_c_stream__`) take a scan as it is.

    >>> scan = orders.scan(columns=["id", "amount"], filter="amount >= 20")
    >>> scan
    Scan('demo.orders', snapshot=1, columns=['id', 'amount'], filter='amount >= 20')
    >>> pl.DataFrame(scan).rows()
    [(2, 20.0), (3, 30.0)]
    """

    warehouse: Warehouse
    identifier: Identifier
    store: TableStore
    resolved: ResolvedTable
    request: ScanRequest

    def __repr__(self) -> str:
        """`Scan('demo.orders', snapshot=7, columns=['id'], filter='amount > 5', limit=10)`."""
        stage = self.resolved.stage
        state = f"snapshot={self.resolved.snapshot.id}" if stage is None else f"staged={stage!r}"
        return f"Scan('{self.identifier}', {state}{self.request!r})"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows.

        >>> orders.scan(columns=["id"]).schema.names
        ['id']
        """
        return result_schema(self.resolved.schema, self.request.columns)

    def filter(self, wanted: Filter) -> Scan:
        """The same rows, of those for which `wanted` is TRUE besides. Raises FixRequest TS1564 to TS1566, TS1569.

        >>> orders.scan(columns=["id"]).filter("amount >= 20").filter("region = 'eu'").to_polars().rows()
        [(3,)]
        """
        return replace(self, request=filtered(self.request, self.resolved.schema, wanted))

    def select(self, *columns: str) -> Scan:
        """The same rows with these columns. Raises NotFound TS1110, FixRequest TS1569.

        >>> orders.scan(filter="amount >= 20").select("id").to_polars().rows()
        [(2,), (3,)]
        """
        return replace(self, request=selected(self.request, self.resolved.schema, columns))

    def plan(self) -> ScanPlan:
        """All files of the state, with the positions of deleted rows; filter and limit do not count here."""
        return self._plan(None)

    def plan_needed(self) -> ScanPlan:
        """The files of `plan`; with a limit and no filter the first that have so many rows, where metadata can tell."""
        return self._plan(self.request.limit if self.request.condition is None else None)

    def _plan(self, rows_max: int | None) -> ScanPlan:
        plan = self.resolved.load_plan(rows_max=rows_max)
        assert isinstance(plan, ScanPlan)  # never changes
        return plan

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table.

        >>> orders.scan(filter="id = 2").to_arrow().to_pylist()
        [{'id': 2, 'region': 'us', 'amount': 20.0}]
        """
        request, plan = self.request, self.plan_needed()
        if (
            request.limit is not None or not self.schema.names
        ):  # Arrow's tables without columns lose their rows
            batches = list(self._batches(plan))
            return pa.Table.from_batches(batches, schema=self.schema)
        bound = self._bound(plan)
        if bound is None:
            return self.store.read(plan, request.columns)
        return self.store.read_matching(plan, bound, request.columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches; memory holds a step of them, however large the files are.

        With a limit, files after the last row are not opened; without a filter their deletion vectors neither.

        >>> sum(batch.num_rows for batch in orders.scan().to_batches())
        3
        """
        return self._batches(self.plan_needed())

    def _batches(self, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        return self.store.read_batches(
            plan, self.request.columns, wanted=self._bound(plan), limit=self.request.limit
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow PyCapsule stream, for pyarrow, polars, DuckDB and others.

        >>> pa.table(orders.scan()).num_rows
        3
        """
        reader = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is imported by the first call only
        """The rows as a pandas frame. Integer columns with NULL have pandas' nullable types.

        >>> orders.scan(filter="region = 'eu'").to_pandas()["amount"].tolist()
        [10.0, 30.0]
        """
        from tablestore_engine.spark.frame_kinds import to_pandas

        return to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame.

        >>> orders.scan().to_polars()["id"].to_list()
        [1, 2, 3]
        """
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_json(self) -> list[str]:
        """Each row as a JSON object, with the texts that the messages of a topic have for its values.

        Decimals have all their digits. Raises FixData TS1716 for a year that these texts do not have.

        >>> orders.scan(filter="id = 2").to_json()
        ['{"id":2,"region":"us","amount":20.0}']
        """
        from tablestore_engine.log.json_values import json_column_of, object_texts

        rows = self.to_arrow()
        texts = tuple((name, json_column_of(rows[name])) for name in rows.column_names)
        return object_texts(texts, rows.num_rows).to_list()

    def to_duckdb(self, connection: Any = None) -> Any:  # noqa: ANN401 - duckdb is an extra
        """The rows as a DuckDB relation of a connection, or of DuckDB's default one.

        Each query over it reads the columns and files that it needs, and raises NotFound once the snapshot has expired.

        Raises FixRequest TS1567 when DuckDB is missing: `pip install 'dbt-tablestore[duckdb]'`.

        >>> orders.scan().to_duckdb().aggregate("sum(amount)").fetchall()
        [(60.0,)]
        """
        from tablestore_engine.api.scan_dataset import Failures, ScanDataset

        duckdb = load_package("duckdb", extra="duckdb", needed_by="Scan.to_duckdb")
        rows = ScanDataset(self, Failures())
        return (
            duckdb.from_arrow(rows, connection=connection)
            if connection is not None
            else duckdb.from_arrow(rows)
        )

    def to_spark(self) -> DataFrame:
        """The rows as a Spark frame; the first call starts Spark. Raises FixRequest TS1569 with a filter or limit.

        >>> orders.scan().to_spark().count()  # doctest: +SPARK
        3
        """
        if not self.request.is_whole:
            raise refuse_spark(self.request)
        frame = self.warehouse.resolver.table(self.identifier.database, self.identifier.name, self.resolved)
        columns = self.request.columns
        return frame if columns is None else frame.select(*(frame[f"`{name}`"] for name in columns))

    def _bound(self, plan: ScanPlan) -> BoundCondition | None:
        condition = self.request.condition
        return None if condition is None else condition.bind(plan.schema)


def load_package(name: str, *, extra: str, needed_by: str) -> Any:  # noqa: ANN401 - a module that may be missing
    """The module. Raises FixRequest TS1567 that names the extra which installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FixRequest(
            "TS1567",
            f"{needed_by} needs the package {name}",
            why=str(error),
            fix=f"pip install 'dbt-tablestore[{extra}]'",
        ) from error
