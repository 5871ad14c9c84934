"""What each model must give: its query in DuckDB, and the comparison of two tables by their key.

INVARIANT  every value is compared. Columns of DuckDB's type DOUBLE where the model has a decimal (averages and ratios,
           which DuckDB computes in floating point) may differ by one unit of the decimal's last place; all others
           are equal, or it is a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from integration_tests.pipelines.feed import SCHEMA
from integration_tests.pipelines.project import Project

_SHOWN = 3


class Oracle:
    """A database in memory with the sources, and all models of a project computed over them."""

    def __init__(self, sources: Mapping[str, pa.Table]) -> None:
        self._db = duckdb.connect(":memory:", config={"threads": 2})
        self._db.execute("set default_null_order = 'nulls_first'")
        self._db.execute(f"set timezone = 'UTC'; create schema {SCHEMA}")
        for name, rows in sources.items():
            self._db.register(f"arrow_{name}", rows)
            self._db.execute(f"create view {SCHEMA}.{name} as select * from arrow_{name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def compute(self, project: Project) -> None:
        """Every model, as a table; models that are views in dbt are views."""
        for model in project.models:
            kind = "table" if model.key else "view"
            self._db.execute(f"create {kind} {model.name} as {project.duckdb_text(model)}")

    def rows(self, name: str) -> pa.Table:
        """Of a model."""
        return self._db.sql(f"select * from {name}").to_arrow_table()


def difference(found: pa.Table, expected: pa.Table, key: Sequence[str]) -> str:
    """How the rows differ, in words with some rows; empty if they are equal."""
    if sorted(found.column_names) != sorted(expected.column_names):
        return f"columns {found.column_names}, expected {expected.column_names}"
    expected = _as_types_of(expected.select(found.column_names), found.schema)
    only = _only(found, expected, key)
    if only:
        return only
    order = [(name, "ascending") for name in key]
    found, expected = found.sort_by(order).combine_chunks(), expected.sort_by(order).combine_chunks()
    for name in found.column_names:
        wrong = np.flatnonzero(~_equal(found.column(name), expected.column(name)))
        if len(wrong):
            shown = [
                ({one: found.column(one)[at].as_py() for one in key}, found.column(name)[at].as_py(),
                 expected.column(name)[at].as_py())
                for at in wrong[:_SHOWN].tolist()
            ]  # fmt: skip
            return f"{len(wrong)} rows differ in {name}: (key, found, expected) {shown}"
    return ""


def _only(found: pa.Table, expected: pa.Table, key: Sequence[str]) -> str:
    """Keys that one of the two does not have, or has twice."""
    ours, theirs = (pl.DataFrame(rows.select(list(key))) for rows in (found, expected))
    if theirs.is_duplicated().any():
        return (
            f"the expected rows have a key twice: {theirs.filter(theirs.is_duplicated()).head(_SHOWN).rows()}"
        )
    extra = ours.join(theirs, on=list(key), how="anti", nulls_equal=True)
    missing = theirs.join(ours, on=list(key), how="anti", nulls_equal=True)
    if extra.height or missing.height:
        return (
            f"{extra.height} keys too many, such as {extra.head(_SHOWN).rows()}; "
            f"{missing.height} missing, such as {missing.head(_SHOWN).rows()}"
        )
    return "" if ours.height == theirs.height else f"{ours.height} rows, expected {theirs.height}"


def _as_types_of(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """DuckDB's wider integers and decimals in the types of the model; its DOUBLE stays."""
    columns = []
    for field in schema:
        column = rows.column(field.name)
        stays = pa.types.is_floating(column.type) and pa.types.is_decimal(field.type)
        columns.append(column if stays else column.cast(field.type))
    return pa.table(dict(zip(schema.names, columns, strict=True)))


def _equal(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> np.ndarray:
    """NULL equals NULL."""
    nulls = np.asarray(found.is_null()), np.asarray(expected.is_null())
    if found.type == expected.type:
        same = np.asarray(pc.fill_null(pc.equal(found, expected), False))
    else:
        last = 10.0**-found.type.scale
        ours, theirs = (np.asarray(pc.fill_null(one.cast(pa.float64()), 0.0)) for one in (found, expected))
        same = np.isclose(ours, theirs, rtol=1e-9, atol=last)
    return np.where(nulls[0] | nulls[1], nulls[0] & nulls[1], same)
