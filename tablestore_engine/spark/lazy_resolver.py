"""Names for SQL in one warehouse, with the session that they need: made when a statement needs them first.

INVARIANT  no JVM before the first statement that needs one.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.spark.lazy_session import LazySession

if TYPE_CHECKING:
    from tablestore_engine.spark.resolver import Resolver


class LazyResolver:
    """Shared by the threads of a process."""

    def __init__(
        self,
        session: LazySession,
        names: NameLookup,
        fileio: FileIO,
        *,
        trusted_sql: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.session, self._fileio, self._say = session, fileio, say
        self.trusted_sql = trusted_sql
        self._names = names
        self._resolver: Resolver | None = None
        self._making = OrderedLock("first use of names in SQL", Rank.ENGINE_SPARK)

    def get(self) -> Resolver:
        """Starts the session at first use."""
        from tablestore_engine.spark.read_way import choose_reads
        from tablestore_engine.spark.resolver import Resolver
        from tablestore_engine.spark.spark_settings import ReadWay

        if self._resolver is not None:
            return self._resolver
        session = self.session.get()  # under its own lock, not under ours
        with self._making:
            if self._resolver is None:
                scratch = self.session.scratch()
                reads = choose_reads(session, self._fileio, self.session.settings.read_way)
                if reads.way is not ReadWay.LINKS:  # a folder has one way, of which there is nothing to say
                    self._say(reads.sentence)
                self._resolver = Resolver(
                    session, self._names, scratch, reads=reads, trusted_sql=self.trusted_sql
                )
            return self._resolver

    def forget_function(self, identifier: Identifier) -> None:
        """A function was dropped. REQUIRES no lock of ours."""
        if self._resolver is not None:
            self._resolver.forget_function(identifier.database, identifier.name)

    def forget(self, identifier: Identifier) -> None:
        """A table or view was dropped or renamed. REQUIRES no lock of ours: the resolver looks names up."""
        if self._resolver is not None:
            self._resolver.forget(identifier.database, identifier.name)
