"""The Spark session of one warehouse, started by whatever needs it first: a statement, or work on many rows.

INVARIANT  no JVM before that.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.scratch import ScratchPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tablestore_engine.spark.spark_settings import SparkSettings


class LazySession:
    """Shared by the threads of a process; `place`: where scratch lies. A function `settings` is asked at first use."""

    def __init__(self, settings: SparkSettings | Callable[[], SparkSettings], place: ScratchPlace) -> None:
        self._given = settings
        self._place = place
        self._session: SparkSession | None = None
        self._starting = OrderedLock("first use of Spark", Rank.ENGINE_SPARK)

    def get(self) -> SparkSession:
        """Starts it at first use."""
        from tablestore_engine.spark.session import open_session

        if self._session is not None:
            return self._session
        with self._starting:
            if self._session is None:
                self._session = open_session(self.settings, self._place)
            return self._session

    @property
    def is_started(self) -> bool:
        """Whether `get` returns at once."""
        return self._session is not None

    @cached_property
    def settings(self) -> SparkSettings:
        """As the engine was made with them."""
        from tablestore_engine.spark.spark_settings import SparkSettings

        return self._given if isinstance(self._given, SparkSettings) else self._given()

    def scratch(self) -> Path:
        """The session's folder for files that end with it."""
        from tablestore_engine.spark.session import session_scratch

        return session_scratch(self._place, self.settings)

    def cancel_jobs(self, tag: str) -> None:
        """Stop the jobs that carry the tag; none without a session. The JVM may go on planning: a resident one is not
        used again.
        """
        from tablestore_engine.spark import fetch_rows
        from tablestore_engine.spark.resident_session import leave_work_behind

        if self._session is not None:
            leave_work_behind()
            fetch_rows.cancel(self._session, tag)
