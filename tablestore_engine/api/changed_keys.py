"""Queries that are kept up to date by the keys that changes of their inputs affect.

The proof is queryplan.key_trace; a TracedQuery (spark) holds the analyzed plan of one query and computes the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from tablestore_engine.api.pinned_versions import to_overrides
from tablestore_engine.spark.traced_query import TracedQuery
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.warehouse.warehouse import Warehouse


class ChangedKeys:
    """Of one engine. `running`: while the thread works, so that it can be stopped."""

    def __init__(self, warehouse: Warehouse, running: Callable[[], AbstractContextManager[None]]) -> None:
        self._warehouse, self._running = warehouse, running

    @contextmanager
    def trace(self, sql: str, *, versions: Mapping[str, TableVersion]) -> Iterator[TracedQuery]:
        """The query over these states of its tables, analyzed and not run. Raises what Spark's analysis raises."""
        with self._running():
            yield TracedQuery(self._warehouse.resolver, sql, to_overrides(versions))

    def new_view(self) -> str:
        """A name for a temporary view of affected keys."""
        return f"tablestore_keys_{self._warehouse.catalog.runtime.new_uuid().replace('-', '')}"

    def drop_view(self, name: str) -> None:
        """The affected keys are not needed any more; a missing one is fine."""
        self._warehouse.resolver.session.catalog.dropTempView(name)
