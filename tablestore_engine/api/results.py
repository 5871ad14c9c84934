"""What the front door answers, as frozen values."""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class SqlResult:
    """Columns (name, Spark type text) and rows (Python values) of a statement; `report` when it wrote a table.

    `notice`: what of the statement has no effect, and why.

    >>> engine.sql("show tables in demo").rows  # doctest: +SPARK
    (('demo', 'orders', False),)
    """

    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    report: WriteReport | None = None
    notice: str | None = None

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame; types come from the values.

        >>> engine.sql("select count(*) as n from demo.orders").to_polars()["n"].to_list()
        [3]
        """
        import polars as pl

        return pl.DataFrame(
            list(self.rows), schema=[name for name, _ in self.columns], orient="row", infer_schema_length=None
        )


@dataclass(frozen=True)
class ColumnInfo:
    """A column as SQL users see it: `type_text` is Spark SQL's.

    >>> [(column.name, column.type_text) for column in engine.columns("demo.orders")]
    [('id', 'bigint'), ('region', 'string'), ('amount', 'double')]
    """

    name: str
    type_text: str
    nullable: bool
    comment: str | None = None


def shown_columns(schema: TableSchema) -> tuple[ColumnInfo, ...]:
    """The columns of a table as SQL users see them."""
    from tablestore_engine.spark.type_ddl import shown_type

    return tuple(
        ColumnInfo(field.name, shown_type(field.type), field.type.nullable, field.description)
        for field in schema.fields
    )


@dataclass(frozen=True)
class TableFacts:
    """Facts of the current snapshot for catalogs: rows are visible rows, bytes are data files, `log` its name.

    `waiting_rows`: rows that other engines wrote to level 0, which readers show after a compaction.

    >>> facts = orders.facts()
    >>> facts.snapshot_id, facts.rows, facts.primary_key
    (1, 3, ('id',))
    """

    snapshot_id: int | None
    committed_at_ms: int | None
    rows: int
    files: int
    bytes: int
    buckets: int
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    log: str | None = None
    waiting_rows: int = 0


@dataclass(frozen=True)
class CommitInfo:
    """A commit that changed rows, or moved the positions of their sources."""

    committed_at_ms: int
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StagedInfo:
    """A staged snapshot: branch `name`, the base it was planned on, outcomes of its tests so far."""

    table: Identifier
    name: str
    snapshot_id: int
    base_snapshot_id: int | None
    outcomes: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
