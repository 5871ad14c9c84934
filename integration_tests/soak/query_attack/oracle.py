"""DuckDB: what a query gives over rows that were read without SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from integration_tests.soak.query_attack.relation import render
from integration_tests.soak.query_attack.tables import FIRST_MOMENT

_NO_NAMES: Mapping[str, str] = {}


class Unfit(Exception):
    """DuckDB cannot run the query."""


@dataclass(frozen=True)
class Result:
    """Column names and rows, values as Python has them, timestamps without zone."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def normal(value: Any) -> Any:
    """Equal values are equal: numbers by value, timestamps without their zone."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, float) and value != value:
        return "NaN"
    return value


class Oracle:
    """A database in memory."""

    def __init__(self) -> None:
        self._db = duckdb.connect(":memory:", config={"threads": 1})
        self._db.execute("set default_null_order = 'nulls_first'")
        self.redefine(0)
        self.set_moment(FIRST_MOMENT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def put(self, name: str, rows: pa.Table) -> None:
        """An input as it is now."""
        self._db.register(f"arrow_{name}", rows)
        self._db.execute(f"create or replace table {name} as select * from arrow_{name}")
        self._db.unregister(f"arrow_{name}")

    def redefine(self, number: int) -> None:
        """The session's function."""
        self._db.execute(f"create or replace macro moved(x) as x + {number}")

    def set_moment(self, moment: dt.datetime) -> None:
        """What functions of the time give."""
        for name, kind, text in (
            ("run_day", "date", moment.date().isoformat()),
            ("run_moment", "timestamp", moment.replace(tzinfo=None).isoformat(" ")),
        ):
            self._db.execute(f"create or replace macro {name}() as {kind} '{text}'")

    def define(self, name: str, text: str) -> None:
        """A view, or a model that is read by others."""
        self._db.execute(f"create or replace view {name} as {render(text, _NO_NAMES, spark=False)}")

    def rows(self, text: str, limit: int | None = None) -> Result:
        """All rows. Raises Unfit."""
        try:
            done = self._db.execute(render(text, _NO_NAMES, spark=False))
            rows: Sequence[tuple[Any, ...]] = done.fetchall() if limit is None else done.fetchmany(limit)
        except duckdb.Error as error:
            raise Unfit(str(error)) from error
        names = tuple(str(one[0]) for one in done.description or ())
        return Result(names, tuple(tuple(normal(value) for value in row) for row in rows))
