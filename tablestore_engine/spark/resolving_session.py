"""The Spark session as the code of a Python model has it: names of the warehouse mean the states that the model reads.

CHANGE     the session of a Python model
WHY        Spark's own catalog holds whatever state some statement has registered last: a plain session would read that.
INVARIANT  queries and names of tables go through `read`; everything else is the session's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.sql.parser import parse
from tablestore_engine.sql.statement import Query

Read = Callable[[str, Mapping[str, Any] | None], DataFrame]


class ResolvingSession(SparkSession):
    """Shares everything with the session that it is made of."""

    _read_query: Read

    @staticmethod
    def of(session: SparkSession, read: Read) -> ResolvingSession:
        """`read`: the frame of a query, with its named arguments."""
        made = object.__new__(ResolvingSession)
        made.__dict__.update(vars(session))
        made._read_query = read
        return made

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: ANN401, N803 - pyspark's
        """Queries see the model's states; statements of the session and formatted texts are Spark's own."""
        if kwargs or isinstance(args, list) or not _is_query(sqlQuery):
            return super().sql(sqlQuery, args, **kwargs)
        return self._read_query(sqlQuery, args)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - pyspark's
        """A table of the warehouse, or a temporary view."""
        return self._read_query(f"select * from {tableName}", None)

    @property
    def read(self) -> DataFrameReader:
        """Its table() is the session's."""
        return _ResolvingReader(self)

    def stop(self) -> None:
        """Other models use the session. Raises FixRequest TS1579."""
        raise FixRequest(
            "TS1579",
            "the Spark session cannot be stopped by a model",
            why="all models of a run share one session",
            fix="remove the call of stop(); the session ends with dbt",
        )


class _ResolvingReader(DataFrameReader):
    def __init__(self, session: ResolvingSession) -> None:
        super().__init__(session)
        self._session = session

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - pyspark's
        return self._session.table(tableName)


def _is_query(text: str) -> bool:
    try:
        return isinstance(parse(text), Query)
    except TablestoreError:  # a statement of Spark alone, or a mistake that Spark explains
        return False


@contextmanager
def imported(module: ModuleType) -> Iterator[None]:
    """The module is importable in this process meanwhile; its functions are sent to Spark's workers whole.

    WHY     pickle names a function of an importable module, and no worker can import this one.
    """
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
        del sys.modules[module.__name__]
