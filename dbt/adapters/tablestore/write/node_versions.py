"""At which versions the statements of a node read: what this run has staged, a test's own pins, tablestore_as_of.

INVARIANT  looked up again for each statement: another thread may publish a staged snapshot between two statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from dbt.adapters.tablestore.gate.publish_coordinator import PublishCoordinator
from dbt.adapters.tablestore.inputs.changed_inputs import ChangedInputs
from dbt.adapters.tablestore.inputs.stream_inputs import StreamInputs
from dbt.adapters.tablestore.node_looks import NodeLooks
from dbt.adapters.tablestore.pinned_reads import (
    Done_co,
    PinnedRead,
    check_as_of_names,
    read_as_of,
    retry_published,
)
from dbt.adapters.tablestore.relation import TablestoreRelation
from tablestore_engine.api import ColumnInfo, TableVersion
from tablestore_engine.spi import ReadLog


def but_own(versions: Mapping[str, TableVersion], relation: TablestoreRelation) -> dict[str, TableVersion]:
    """What a model reads: its own table as others see it, not as it was staged before."""
    return {table: version for table, version in versions.items() if table != relation.table_name}


class NodeVersions:
    """Of one invocation; `looks`: the engine as nodes use it; `config` is dbt's, `adopt` takes over what the runs that
    it continues have staged.
    """

    def __init__(
        self,
        looks: NodeLooks,
        config: Any,  # noqa: ANN401 - dbt's untyped config
        coordinator: PublishCoordinator,
        databases: Callable[[], tuple[str, ...]],
        adopt: Callable[[], None],
    ) -> None:
        self.looks, self._engine, self._coordinator = looks, looks.engine, coordinator
        self._databases, self._adopt = databases, adopt
        self._as_of = read_as_of(getattr(config, "cli_vars", None) or {}, config.credentials.schema)
        self._is_as_of_checked = False
        self.inputs = ChangedInputs(looks.engine, self.of)
        self.streams = StreamInputs(looks.engine, self.of)

    @property
    def as_of(self) -> Mapping[str, TableVersion]:
        """Tables that tests read at another version by the user's wish."""
        return self._as_of

    def of(self, node: str) -> Mapping[str, TableVersion]:
        """table -> version that statements of this node read instead of the current one."""
        self._adopt()
        staged = self._coordinator.branches_for(node, self._databases())
        pins = {table: TableVersion(branch=branch) for table, branch in staged.items()}
        self.looks.keep(pins)
        if not node.startswith("test."):
            return {**pins, **self.inputs.versions(node, pins), **self.streams.staged(node, pins)}
        self.check_as_of()
        own = self.inputs.test_pins(
            node
        )  # what rows were made from stays so, whatever state a test is asked for
        return {**own, **pins, **{name: at for name, at in self._as_of.items() if name not in own}}

    def read(self, node: str, read: PinnedRead[Done_co]) -> Done_co:
        """Once more when another thread has published what the node was about to read. Raises NotFound TS1317."""
        return retry_published(lambda: self.of(node), read)

    def retry(self, node: str, work: Callable[[], Done_co]) -> Done_co:
        """The same for work that asks for the versions itself."""
        return retry_published(lambda: self.of(node), lambda **_: work())

    def query_columns(self, node: str, sql: str, reads: ReadLog | None = None) -> tuple[ColumnInfo, ...]:
        def ask(*, versions: Mapping[str, TableVersion]) -> tuple[ColumnInfo, ...]:
            return self._engine().query_columns(sql, versions=versions, reads=reads)

        return self.read(node, ask)

    @as_dbt_errors()
    def check_as_of(self) -> None:
        """Once per invocation, before anything runs. Raises TS1875 for a name that is no table."""
        if not self._is_as_of_checked:
            check_as_of_names(self._as_of, self._engine())
            self._is_as_of_checked = True
