"""Queries that are kept up to date by the keys that changes of their inputs affect.

The proof is queryplan.key_trace; a TracedQuery (spark) holds the analyzed plan of one query and computes the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa

from tablestore_engine.api.pinned_versions import to_overrides
from tablestore_engine.api.table import Table
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.format.group_state_file import GroupState
from tablestore_engine.spark.merged_rows import FindRows, StoredRows
from tablestore_engine.spark.traced_query import TracedQuery
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.warehouse.group_state_files import GroupStateFiles
from tablestore_engine.warehouse.warehouse import Warehouse


class ChangedKeys:
    """Of one engine. `running`: while the thread works, so that it can be stopped. `seen`: see Overrides."""

    def __init__(
        self,
        warehouse: Warehouse,
        running: Callable[[], AbstractContextManager[None]],
        seen: SeenStates | None = None,
    ) -> None:
        self._warehouse, self._running, self._seen = warehouse, running, seen

    @contextmanager
    def trace(self, sql: str, *, versions: Mapping[str, TableVersion]) -> Iterator[TracedQuery]:
        """The query over these states of its tables, analyzed and not run. Raises what Spark's analysis raises."""
        with self._running():
            yield TracedQuery(self._warehouse.resolver, sql, to_overrides(versions, seen=self._seen))

    def stored_rows(self, table: Table) -> FindRows:
        """Finds rows of a table by its primary key, in the state that the handle sees. REQUIRES that it has a key.

        Keys have the columns of the primary key, and rows those of the table, with names in lower case. The columns of
        the keys may be of other types with the same values. NULL is no key.
        """
        store = table.store
        context = store.context
        snapshot, schema = context.newest_snapshot(), context.latest_schema()
        names = list(schema.primary_keys)
        fields = [schema.arrow_schema().field(name).with_name(name.lower()) for name in names]

        def find(keys: pa.Table) -> StoredRows:
            same = keys.select([name.lower() for name in names]).cast(pa.schema(fields))
            rows = schema.arrow_schema().empty_table()
            if snapshot is not None and keys.num_rows:
                rows = store.find_rows(snapshot, same.rename_columns(names))
            return StoredRows(same, rows.rename_columns([name.lower() for name in rows.column_names]))

        return find

    def read_state(self, table: str, name: str, header: str) -> GroupState:
        """The state of the groups of a table's query, which a commit names. Raises UnusableState."""
        return self._states(table).read(name, header)

    def write_state(self, table: str, state: GroupState, header: str) -> str:
        """Its name, for the commit of the rows that go with it."""
        identifier = Identifier.parse(table)
        return self._states(table).write(state, header, self._warehouse.stores.find(identifier))

    def _states(self, table: str) -> GroupStateFiles:
        return GroupStateFiles(self._warehouse.catalog, Identifier.parse(table))

    def now_ms(self) -> int:
        """The engine's clock: epoch milliseconds, as snapshots have them."""
        return self._warehouse.catalog.runtime.now_ms()

    def moment_ms(self) -> int:
        """The moment of a run that begins now, which its functions of the time give: epoch milliseconds."""
        return self.now_ms()

    def new_view(self) -> str:
        """A name for a temporary view of affected keys."""
        return f"tablestore_keys_{self._warehouse.catalog.runtime.new_uuid().replace('-', '')}"

    def drop_view(self, name: str) -> None:
        """The affected keys are not needed any more; a missing one is fine."""
        self._warehouse.resolver.session.catalog.dropTempView(name)
