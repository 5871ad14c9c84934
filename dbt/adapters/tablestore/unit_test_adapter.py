"""What the materialization of unit tests asks the adapter for, where a test is about the table or its changelog.

Asked by   `config: {meta: {tablestore: {result: table}}}` (or changelog) of a unit test; `given` for `this` is what the
           table holds before, without it there is no table yet
CHANGE     the rows that a unit test of a table or changelog compares
Steps      1 prior rows are written as the model's first run  2 the model's rows are written as its next one
           3 the table, or what changed, is compared with `expect`
Where      in a schema of its own, `dbt_unit_test_<epoch ms>_<random>`, dropped at the end. The plan, the write and the
           reading are those of a real run; only the log is left out, as its messages are what step 3 reads (promise P2)
INVARIANT  nothing else of the warehouse is written or dropped.
CRASH      the schema of a killed test stays for a day; the next unit test of this kind drops it then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import agate
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.clients.agate_helper import table_from_data_flat

from dbt.adapters.tablestore.config.changed_keys_config import MATERIALIZED_VIEW
from dbt.adapters.tablestore.config.value_shapes import read_choice, read_mapping
from dbt.adapters.tablestore.connections import show_value
from dbt.adapters.tablestore.dbt_errors import for_macros
from dbt.adapters.tablestore.plan.build_plan import plan_build
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings, model_spec
from dbt.adapters.tablestore.plan.run_context import PlanContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_job import read_situation
from dbt.adapters.tablestore.write.model_writer import ModelWriter
from tablestore_engine.api import ChangesBetween, Engine, FixRequest, SqlResult, TableVersion, Unsupported
from tablestore_engine.spi import SYSTEM, versioned_database

RESULTS = ("query", "table", "changelog")
_PREFIX = "dbt_unit_test_"
_NAME = re.compile(rf"{_PREFIX}(?P<ms>\d+)_\w+")
_DAY_MS = 86_400_000
_BUILT = ("table", "incremental", "tablestore", MATERIALIZED_VIEW)
_LOG = ("log.", "kafka.")


@dataclass(frozen=True)
class UnitTest:
    """`result`: one of RESULTS; `prior`: rows of `this`, their SQL text, or None; `model`: the tested one, of dbt."""

    result: str
    prior: list[dict[str, Any]] | str | None
    model: Mapping[str, Any]


def read_unit_test(definition: Any, model: Mapping[str, Any]) -> UnitTest:  # noqa: ANN401 - dbt's untyped definition
    """Raises FixRequest TS1811 for another result, Unsupported TS1869 for a model whose write cannot be tested so."""
    name, meta = str(definition.name), getattr(definition.config, "meta", None) or {}
    asked = read_mapping(name, "tablestore", meta.get("tablestore"))
    unknown = sorted(set(asked) - {"result"})
    if unknown:
        raise FixRequest(
            "TS1873",
            f"unit test {name} has an unknown key meta.tablestore.{unknown[0]}",
            why="known is result",
            fix=f"write result: {', '.join(RESULTS)}",
        )
    result = read_choice(name, "result", asked, RESULTS, "query")
    kind = str(model["config"].get("materialized"))
    if result != "query" and (kind not in _BUILT or model.get("language") == "python"):
        raise Unsupported(
            "TS1869",
            f"unit test {name} asks for the {result} of {model['name']}",
            why=f"it is a {model.get('language')} model with materialized={kind!r}",
            fix=f"test its query (result: query); a {result} have SQL models with {', '.join(_BUILT)}",
        )
    prior = next((one for one in definition.given if one.input.strip() == "this"), None)
    return UnitTest(result, None if prior is None else prior.rows, model)


def name_of_result(test: UnitTest, database: str) -> str:
    """In SQL."""
    if test.result == "changelog":
        first = 1 if test.prior is not None else None
        database = versioned_database(database, TableVersion(changes=ChangesBetween(first)))
    return f"`{database}`.`{test.model['alias']}`"


@dataclass(frozen=True)
class UnitRun:
    """One unit test; `database`: its own."""

    engine: Engine
    settings: ModelSettings
    test: UnitTest
    database: str

    def result(self, prior: str | None, sql: str, compared: str) -> SqlResult:
        """Of `compared`, once `prior` and then `sql` were written."""
        self.engine.create_database(self.database)
        try:
            if prior is not None:
                self._write(prior, is_there=False)
            self._write(sql, is_there=prior is not None)
            return self.engine.sql(compared)
        finally:
            self.engine.drop_database(self.database, cascade=True)

    def _write(self, sql: str, *, is_there: bool) -> None:
        """As the model's run does, with nothing to follow and nobody to publish to."""
        made = TablestoreRelation.create(
            schema=self.database, identifier=self.test.model["alias"], type=RelationType.Table
        )
        columns = tuple((one.name, one.type_text) for one in self.engine.query_columns(sql))
        context = PlanContext(existing=made if is_there else None)
        situation = read_situation(self.engine, made, sql, columns, context)
        options = tuple(pair for pair in self.settings.table.options if not pair[0].startswith(_LOG))
        table = replace(self.settings.table, affected=None, options=options)
        plan = plan_build(table, situation)
        spec = model_spec(replace(self.settings, table=table), plan)
        self.engine.write(made.table_name, plan.select, spec)


def new_database(engine: Engine, now_ms: int, unique: str) -> str:
    """Its name; what killed tests left behind a day ago goes."""
    for name in engine.databases():
        began = _NAME.fullmatch(name)
        if began is not None and now_ms - int(began["ms"]) > _DAY_MS:
            engine.drop_database(name, cascade=True)
    return f"{_PREFIX}{now_ms}_{unique.replace('-', '')[:8]}"


class UnitTestCalls(SparkAdapter):
    """A part of the adapter, which knows no other part."""

    engine: Engine
    writer: ModelWriter

    @for_macros()
    def tablestore_unit_test(self, node: Mapping[str, Any]) -> UnitTest:
        """What a unit test asks for. `node`: dbt's of the test."""
        manifest: Any = self._macro_resolver
        definition = manifest.unit_tests[node["unique_id"]]
        tested = manifest.nodes[node["tested_node_unique_id"]].to_dict(omit_none=True)
        return read_unit_test(definition, tested)

    @for_macros(lambda *_: False)
    def tablestore_is_tested(self, node: Mapping[str, Any]) -> bool:
        """Whether the table of a model is the result of a unit test, so that it may have rows before it is there."""
        manifest: Any = self._macro_resolver
        tests = (one for one in manifest.unit_tests.values() if node["unique_id"] in one.depends_on.nodes)
        return any(
            read_unit_test(one, {**node, "config": {"materialized": "table"}}).result != "query"
            for one in tests
        )

    @for_macros()
    def tablestore_unit_result(self, test: UnitTest) -> tuple[str, str]:
        """A schema for one unit test, and the name of what is compared with `expect`."""
        database = new_database(self.engine, SYSTEM.now_ms(), SYSTEM.new_uuid())
        return database, name_of_result(test, database)

    @for_macros()
    def tablestore_unit_rows(
        self, test: UnitTest, database: str, prior: str | None, sql: str, compared: str
    ) -> agate.Table:
        """Rows of `compared` once `prior`, if there is any, and `sql` were written as the model's runs."""
        settings = self.writer.read_settings(test.model, {})
        found = UnitRun(self.engine, settings, test, database).result(prior or None, sql, compared)
        names = [name for name, _ in found.columns]
        shown = [dict(zip(names, map(show_value, row), strict=True)) for row in found.rows]
        return table_from_data_flat(shown, names)
