"""What the materialization of unit tests asks the adapter for, where a test is about the table or its changelog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import agate
from dbt.adapters.base.meta import available
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.clients.agate_helper import table_from_data_flat

from dbt.adapters.tablestore.connections import show_value
from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from dbt.adapters.tablestore.write.model_writer import ModelWriter
from dbt.adapters.tablestore.write.unit_test_run import (
    UnitRun,
    UnitTest,
    name_of_result,
    new_database,
    read_unit_test,
)
from tablestore_engine.api import Engine
from tablestore_engine.spi import SYSTEM


class UnitTestCalls(SparkAdapter):
    """A part of the adapter, which knows no other part."""

    engine: Engine
    writer: ModelWriter

    @available.parse_none
    @as_dbt_errors()
    def tablestore_unit_test(self, node: Mapping[str, Any]) -> UnitTest:
        """What a unit test asks for. `node`: dbt's of the test."""
        manifest: Any = self._macro_resolver
        definition = manifest.unit_tests[node["unique_id"]]
        tested = manifest.nodes[node["tested_node_unique_id"]].to_dict(omit_none=True)
        return read_unit_test(definition, tested)

    @available.parse(lambda *_: False)
    def tablestore_is_tested(self, node: Mapping[str, Any]) -> bool:
        """Whether the table of a model is the result of a unit test, so that it may have rows before it is there."""
        manifest: Any = self._macro_resolver
        tests = (one for one in manifest.unit_tests.values() if node["unique_id"] in one.depends_on.nodes)
        return any(
            read_unit_test(one, {**node, "config": {"materialized": "table"}}).result != "query"
            for one in tests
        )

    @available.parse_none
    @as_dbt_errors()
    def tablestore_unit_database(self) -> str:
        """A schema for one unit test."""
        return new_database(self.engine, SYSTEM.now_ms(), SYSTEM.new_uuid())

    @available.parse_none
    def tablestore_unit_result(self, test: UnitTest, database: str) -> str:
        """The name of what is compared with `expect`."""
        return name_of_result(test, database)

    @available.parse_none
    @as_dbt_errors()
    def tablestore_unit_rows(
        self, test: UnitTest, database: str, prior: str | None, sql: str, compared: str
    ) -> agate.Table:
        """Rows of `compared` once `prior`, if there is any, and `sql` were written as the model's runs."""
        settings = self.writer.read_settings(test.model, {})
        names, rows = UnitRun(self.engine, settings, test, database).rows(prior or None, sql, compared)
        shown = [dict(zip(names, map(show_value, row), strict=True)) for row in rows]
        return table_from_data_flat(shown, names)
