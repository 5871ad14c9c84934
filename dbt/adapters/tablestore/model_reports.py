"""What dbt's log says of a model besides its result: how `dbt compile` finds its inputs, and warnings of macros.

dbt calls nothing of an adapter for a node that it only compiles, but opens and closes a connection around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.spark.impl import SparkAdapter

from dbt.adapters.tablestore.config.changed_keys_config import MATERIALIZED_VIEW, STRATEGY
from dbt.adapters.tablestore.dbt_errors import as_dbt_errors, for_macros
from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.run_branch import begin_branch, builds_tables
from dbt.adapters.tablestore.write.model_writer import ModelWriter
from tablestore_engine.api import Engine


class ModelReports(SparkAdapter):
    """A part of the adapter, which knows no other part."""

    writer: ModelWriter
    engine: Engine

    @for_macros()
    def tablestore_warn_is_incremental(self, name: str) -> None:
        """Called by is_incremental(), which is false in a changed_keys model."""
        self.writer.changed_keys.warn_is_incremental(name)

    @contextmanager
    def connection_named(
        self,
        name: str,
        query_header_context: Any = None,  # noqa: ANN401 - dbt's untyped node
        should_release_connection: bool = True,
    ) -> Iterator[None]:
        """Around each node, which is `query_header_context`."""
        with super().connection_named(name, query_header_context, should_release_connection):
            try:
                if builds_tables(query_header_context, self.config):
                    with as_dbt_errors():
                        begin_branch(self.engine, query_header_context, logger.info)
                yield
            finally:
                self.writer.looks.end()
            args = getattr(
                self.config, "args", None
            )  # `dbt debug` makes the adapter of a profile, which has none
            if getattr(args, "which", None) == "compile":
                with as_dbt_errors():
                    self._report(query_header_context)

    def _report(self, node: Any) -> None:  # noqa: ANN401 - dbt's untyped node
        text = getattr(node, "compiled_code", None) if getattr(node, "language", None) == "sql" else None
        if not text:  # not every connection is a node's
            return
        kinds = {str(node.config.get("incremental_strategy")), str(node.config.get("materialized"))}
        if {STRATEGY, MATERIALIZED_VIEW} & kinds:
            settings = self.writer.read_settings(node.to_dict(), {})
            self.writer.changed_keys.explain(f"{node.schema}.{node.alias}", str(text), settings)
