"""Spark for one warehouse, started when a statement needs it first.

Names      LazyResolver   get(): the resolver of names, with its session; forget() a name and cancel_jobs() in it
INVARIANT  no JVM before the first statement that needs one.
"""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.spark import fetch
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.session import SparkSettings, open_session, session_scratch


class LazyResolver:
    """Shared by the threads of a process; `warehouse` is its folder, absolute."""

    def __init__(
        self, settings: SparkSettings, warehouse: str, names: NameLookup, *, trusted_sql: bool = False
    ) -> None:
        self.trusted_sql = trusted_sql
        self._settings = settings
        self._warehouse = warehouse
        self._names = names
        self._resolver: Resolver | None = None
        self._starting = OrderedLock("first use of Spark", Rank.ENGINE_SPARK)

    def get(self) -> Resolver:
        """Names for SQL; starts the session at first use."""
        if self._resolver is not None:
            return self._resolver
        with self._starting:
            if self._resolver is None:
                session = open_session(self._settings, self._warehouse)
                self._resolver = Resolver(session, self._names, self.scratch(), trusted_sql=self.trusted_sql)
            return self._resolver

    @property
    def is_started(self) -> bool:
        """Whether `get` returns at once."""
        return self._resolver is not None

    def scratch(self) -> Path:
        """The session's folder for files that end with it."""
        return session_scratch(self._warehouse)

    def cancel_jobs(self, tag: str) -> None:
        """Stop the jobs that carry the tag; none without a session."""
        if self._resolver is not None:
            fetch.cancel(self._resolver.session, tag)

    def forget(self, identifier: Identifier) -> None:
        """A table or view was dropped or renamed. REQUIRES no lock of ours: the resolver looks names up."""
        if self._resolver is not None:
            self._resolver.forget(identifier.database, identifier.name)
