"""The adapter object that dbt and its macros talk to; decisions lie in the packages below it.

INVARIANT  whatever macros call is decorated: errors come out as dbt's, with the engine's text.
INVARIANT  one adapter object is one dbt invocation; engines outlive it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from multiprocessing.context import SpawnContext
from typing import Any, TypeAlias

import agate
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import Connection
from dbt.adapters.contracts.relation import RelationConfig
from dbt_common.contracts.constraints import ConstraintType

from dbt.adapters.tablestore.adapter_response import TablestoreResponse
from dbt.adapters.tablestore.catalog_rows import catalog_table, list_last_modified, read_schema_rows
from dbt.adapters.tablestore.column import TablestoreColumn
from dbt.adapters.tablestore.config.cdc_sources import read_cdc_sources
from dbt.adapters.tablestore.config.custom_strategies import is_tested, with_own_write
from dbt.adapters.tablestore.config.keyless_models import adds_rows
from dbt.adapters.tablestore.config.model_config import STRATEGIES, TablestoreConfig
from dbt.adapters.tablestore.connections import TablestoreConnectionManager, get_engine
from dbt.adapters.tablestore.credentials import describe_warehouse
from dbt.adapters.tablestore.dbt_errors import as_dbt_errors, for_macros
from dbt.adapters.tablestore.function_relations import FunctionRelations
from dbt.adapters.tablestore.inputs.ingested_sources import ingest_sources
from dbt.adapters.tablestore.interruption import end_on_signals
from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.model_graph import built_schemas
from dbt.adapters.tablestore.model_reports import ModelReports
from dbt.adapters.tablestore.plan import run_context
from dbt.adapters.tablestore.plan.build_plan import Columns
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.python_submission import PythonSubmission
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.run_branch import read_branch, tell_reads
from dbt.adapters.tablestore.statements import split_statements
from dbt.adapters.tablestore.unit_test_adapter import UnitTestCalls
from dbt.adapters.tablestore.write.batch_queries import AnalyzedQuery
from dbt.adapters.tablestore.write.dbt_snapshots import read_versions
from dbt.adapters.tablestore.write.model_job import ModelRun, PlannedModel
from dbt.adapters.tablestore.write.model_writer import ModelWriter
from dbt.adapters.tablestore.write.replacement import check_no_topic, check_view
from dbt.adapters.tablestore.write.seeds import read_decimals_exactly
from tablestore_engine.api import Engine, NotFound
from tablestore_engine.spi import ReadLog

_FULL = CapabilitySupport(support=Support.Full)


class TablestoreAdapter(UnitTestCalls, FunctionRelations, ModelReports, PythonSubmission):
    Relation: TypeAlias = TablestoreRelation
    Column: TypeAlias = TablestoreColumn
    ConnectionManager: TypeAlias = TablestoreConnectionManager
    AdapterSpecificConfigs: TypeAlias = TablestoreConfig
    connections: TablestoreConnectionManager

    CONSTRAINT_SUPPORT: dict[ConstraintType, ConstraintSupport] = {  # noqa: RUF012 - dbt declares it so
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_ENFORCED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: _FULL,
            Capability.TableLastModifiedMetadata: _FULL,
            Capability.TableLastModifiedMetadataBatch: _FULL,
            Capability.GetCatalogForSingleRelation: _FULL,
            Capability.MicrobatchConcurrency: _FULL,
        }
    )

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:  # noqa: ANN401 - dbt's own untyped config
        super().__init__(config, mp_context)
        end_on_signals()
        config.credentials.project_root = root = str(getattr(config, "project_root", None) or ".")
        config.credentials.branch = read_branch(config)
        self._warehouse = describe_warehouse(config.credentials, root)
        self._schemas: tuple[int, tuple[str, ...]] | None = None  # number of nodes, and what came of them
        self.writer = ModelWriter(lambda: self.engine, config, self._project_schemas)
        self.connections.versions_for = self.writer.pinned.of
        self.connections.reads_for = self.writer.tests.start
        self.connections.after_statement = self.writer.looks.forget

    @classmethod
    def type(cls) -> str:
        """Prefix of dispatched macros."""
        return "tablestore"

    @property
    def engine(self) -> Engine:  # type: ignore[override]
        """The engine of the target; opening it starts no JVM."""
        return get_engine(self._warehouse)

    @available
    @classmethod
    def quote(cls, identifier: str) -> str:
        """A name in backticks; dbt calls this on the class when it renders constraints."""
        return f"`{identifier}`"

    def _project_schemas(self) -> tuple[str, ...]:
        """Schemas of what the project builds; dbt's macro resolver is its manifest."""
        nodes = getattr(self._macro_resolver, "nodes", None) or {}
        if self._schemas is None or len(nodes) != self._schemas[0]:
            self._schemas = len(nodes), built_schemas(nodes, str(self.config.credentials.schema))
        return self._schemas[1]

    # --- what is there ---

    @as_dbt_errors()
    def list_schemas(self, database: str) -> list[str]:  # noqa: ARG002 - dbt's signature
        return list(self.engine.databases())

    def _make_match_kwargs(self, database: str, schema: str, identifier: str) -> dict[str, str]:
        """Names as they are written: files keep their case, so `Orders` is found as `Orders`."""
        given = {"database": database, "schema": schema, "identifier": identifier}
        return {part: name for part, name in given.items() if name is not None}

    @for_macros(lambda *_, **__: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        return schema.lower() in {name.lower() for name in self.list_schemas(database)}

    @for_macros(lambda *_, **__: [])
    def get_columns_in_relation(self, relation: BaseRelation) -> list[TablestoreColumn]:  # type: ignore[override]
        """Columns from metadata; Spark is asked for names without a schema (temporary views), versions, staged rows."""
        is_plain = relation.schema is not None and relation.include_policy.schema and not relation.is_cte
        if not is_plain or getattr(relation, "version", None) is not None or self._is_staged(relation):
            return list(self.get_column_schema_from_query(f"select * from {relation.render()} where false"))
        try:
            infos = self.writer.looks.engine().columns(f"{relation.schema}.{relation.identifier}")
        except NotFound:
            return []
        return TablestoreColumn.of_relation(relation, infos)

    def _is_staged(self, relation: BaseRelation) -> bool:
        """Whether this thread's node reads another state than readers; of a view only its tables tell."""
        pins = self.writer.pinned.of(self.nice_connection_name())
        name = f"{relation.schema}.{relation.identifier}"
        return name in pins or (bool(pins) and self.writer.looks.is_view(name))

    @for_macros(lambda *_, **__: [])
    def get_column_schema_from_query(self, sql: str, reads: ReadLog | None = None) -> list[TablestoreColumn]:
        """Columns of a query, which Spark analyses and does not run; a header before it is executed."""
        *headers, query = split_statements(sql)
        for header in headers:
            self.execute(header)
        found = self.writer.pinned.query_columns(self.nice_connection_name(), query, reads)
        return [TablestoreColumn(column=info.name, dtype=info.type_text) for info in found]

    # --- dbt docs and freshness ---

    def get_catalog(
        self, relation_configs: Iterable[RelationConfig], used_schemas: frozenset[tuple[str, str]]
    ) -> tuple[agate.Table, list[Exception]]:
        del used_schemas  # the configs say the same, with their case kept
        schemas = sorted({str(config.schema) for config in relation_configs})
        return catalog_table([row for one in schemas for row in self._schema_rows(one, None)]), []

    def get_catalog_by_relations(
        self, used_schemas: frozenset[tuple[str, str]], relations: set[BaseRelation]
    ) -> tuple[agate.Table, list[Exception]]:
        del used_schemas
        wanted = {(str(one.schema), str(one.identifier).lower()) for one in relations}
        names = {schema: {name for at, name in wanted if at == schema} for schema, _ in sorted(wanted)}
        return catalog_table([row for one in names for row in self._schema_rows(one, names[one])]), []

    @as_dbt_errors()
    def _schema_rows(self, schema: str, names: set[str] | None) -> list[tuple[object, ...]]:
        return read_schema_rows(self.engine, schema, names, self.config.credentials.user)

    @for_macros(lambda *_, **__: [])
    def tablestore_last_modified(
        self, relations: Iterable[BaseRelation]
    ) -> list[tuple[str, str, int | None]]:
        """(schema, identifier, epoch ms of the last commit) for source freshness without a query."""
        return list_last_modified(self.engine, [(str(one.schema), str(one.identifier)) for one in relations])

    def set_relations_cache(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - dbt's signature
        """Before the first node: a wrong tablestore_as_of ends the command here."""
        self.writer.pinned.check_as_of()
        super().set_relations_cache(*args, **kwargs)

    # --- models ---

    @available
    def valid_incremental_strategies(self) -> list[str]:
        return list(STRATEGIES)

    @for_macros()
    def tablestore_settings(
        self, model: Mapping[str, Any], nodes: Mapping[str, Any], is_custom: bool = False
    ) -> ModelSettings:
        """Check a node's config; nothing is written before this. `is_custom`: a macro writes its later runs."""
        self.writer.looks.begin()
        return self.writer.read_settings(with_own_write(model) if is_custom else model, nodes)

    @for_macros(lambda *_, **__: False)
    def tablestore_adds_rows(self, relation: TablestoreRelation, model: Mapping[str, Any]) -> bool:
        table = self.engine.find_seen_table(relation.table_name)
        return table is not None and table.latest_snapshot_id() is not None and adds_rows(model)

    @for_macros()
    def tablestore_clone(
        self, relation: TablestoreRelation, source: TablestoreRelation
    ) -> TablestoreResponse:
        """The newest snapshot of another table under this name; no row is read or written."""
        self.engine.clone(source.table_name, relation.table_name)
        snapshot = self.engine.table(relation.table_name).latest_snapshot_id()
        return TablestoreResponse(_message=f"cloned snapshot {snapshot}", code="OK", snapshot_id=snapshot)

    @for_macros()
    def tablestore_check_view(self, relation: TablestoreRelation, sql: str, *, full_refresh: bool) -> None:
        """Before a view takes a table's place: its query is valid and reads another, and no topic goes unasked."""
        if not full_refresh:
            check_no_topic(self.engine, relation.table_name)
        node, ask = self.nice_connection_name(), self.engine.query_names
        reads = self.writer.pinned.read(node, lambda *, versions: ask(sql, versions=versions))
        check_view(relation.table_name, reads)

    @for_macros()
    def tablestore_plan(
        self, relation: TablestoreRelation, settings: ModelSettings, sql: str, **given: object
    ) -> PlannedModel:
        """Decide what the run does; reads the query's columns, writes nothing."""
        context = run_context.read_plan(given)
        query = self._analyze(settings.node, context.batch, sql)
        tell_reads(self.engine, relation.table_name, query.reads, logger.info)
        return self.writer.plan(ModelRun(relation, settings, sql, query, context))

    def _analyze(self, node: str, batch: run_context.BatchInterval | None, sql: str) -> AnalyzedQuery:
        """A node's query, as Spark sees it."""
        (reads := ReadLog()).add(self.writer.python.reads(node))

        def ask(text: str, log: ReadLog) -> Columns:
            return tuple((one.column, one.dtype) for one in self.get_column_schema_from_query(text, log))

        return self.writer.batches.analyze(node, batch, sql, reads, ask)

    @for_macros()
    def tablestore_write(self, planned: PlannedModel, **given: object) -> TablestoreResponse:
        """Write the snapshot, staged or at once; returns the response for run_results.json."""
        return self.writer.write(planned, run_context.read_write(given))

    @for_macros(lambda *_, **__: False)
    def tablestore_has_key(self, relation: TablestoreRelation, key: list[str]) -> bool:
        """Whether the table has this primary key; names have no case."""
        found = self.writer.looks.engine().find_seen_table(relation.table_name)
        return found is not None and [*map(str.lower, found.schema.primary_keys)] == [*map(str.lower, key)]

    @for_macros()
    def tablestore_snapshot(
        self, relation: TablestoreRelation, settings: ModelSettings, sql: str, **given: object
    ) -> TablestoreResponse:
        """One run of a dbt snapshot: a new table, or rows to upsert with their new columns; no rows are no commit."""
        context, query = run_context.read_snapshot(given)
        rows = read_versions(relation.table_name, sql, query, self.get_column_schema_from_query)
        reads = self._analyze(settings.node, None, sql).reads
        return self.writer.write_snapshot(relation, settings, rows, context, reads)

    @for_macros()
    def tablestore_check_in_place(
        self, relation: TablestoreRelation, settings: ModelSettings, sql: str, **given: object
    ) -> None:
        """Before statements change the table of a snapshot or of a custom strategy: nothing that it reads is staged."""
        context = run_context.read_in_place(given)
        self.writer.check_in_place(relation, settings, context, self._analyze(settings.node, None, sql).reads)
        is_snapshot = settings.table.materialized == "snapshot"
        if not is_snapshot and is_tested(settings.node, context.selected, context.nodes):
            logger.warning(f"{relation.table_name}: its strategy changes the table before its tests have run")

    @for_macros(lambda *args, **_: args[1])
    def tablestore_changes(self, relation: TablestoreRelation, **given: object) -> TablestoreRelation:
        """The rows of an input that changed since the model's last commit."""
        return self.writer.inputs.changes(relation, run_context.read_changes(given))

    @for_macros(lambda *args, **_: args[1])
    def tablestore_stream(self, relation: TablestoreRelation, **given: object) -> TablestoreRelation:
        """What stands for an input that a streaming model follows."""
        return self.writer.stream(relation, self.get_column_schema_from_query, run_context.read_stream(given))

    @for_macros(lambda *_, **__: False)
    def tablestore_keeps_query(self, table: TablestoreRelation, settings: ModelSettings, *sql: str) -> bool:
        """Whether a streaming model stays as it is: its SQL is another now. `sql`: with the header, and the query."""
        return self.writer.keeps_query(table, settings, *sql)

    @for_macros()
    def tablestore_full_refresh_difference(self, relation: TablestoreRelation, test: str) -> str:
        """SQL of the rows that a model's table and its query do not share."""
        return self.writer.tests.full_refresh_difference(self._macro_resolver, relation, test)

    @for_macros()
    def tablestore_tell_ignored(self, relation: TablestoreRelation, config: Mapping[str, Any]) -> None:
        """One warning an invocation for each key without effect."""
        self.writer.ignored.tell(relation.identifier or "", config)

    @for_macros()
    def tablestore_read_decimals_exactly(self) -> None:
        """Called before dbt loads a CSV."""
        read_decimals_exactly()

    @for_macros()
    def tablestore_seed(
        self, relation: TablestoreRelation, settings: ModelSettings, table: agate.Table, **given: object
    ) -> TablestoreResponse:
        return self.writer.write_seed(relation, settings, table, run_context.read_seed(given))

    @for_macros()
    def tablestore_comment(
        self, relation: TablestoreRelation, comment: str | None, columns: Mapping[str, str]
    ) -> None:
        """Bring comments of a table up to date; does nothing when they are, or when they wait with staged rows."""
        if not self.writer.coordinator.is_staged(relation.table_name):
            self.engine.set_comments(relation.table_name, comment, columns)

    @for_macros(lambda *args: args[-1])
    def tablestore_staged(self, relation: TablestoreRelation) -> TablestoreRelation:
        """The staged rows of a table that wait for their tests, newest first; the table itself when none wait."""
        table = self.engine.find_table(relation.table_name)
        staged = () if table is None else table.staged()
        return relation.at(branch=staged[-1].name) if staged else relation

    @for_macros(lambda *_, **__: [])
    def tablestore_publish(self, nodes: Iterable[str] = ()) -> list[str]:
        """Publish staged snapshots that wait for no test; lines for the log."""
        return list(self.writer.coordinator.publish_asked(frozenset(nodes), self._project_schemas()))

    @for_macros(lambda *_, **__: [])
    def tablestore_ingest(self, sources: Mapping[str, Any], select: Iterable[str] = ()) -> list[str]:
        """Change messages into the tables of sources that say where theirs come from; lines for the log."""
        specs = read_cdc_sources(sources, [select] if isinstance(select, str) else list(select))
        return list(ingest_sources(lambda: self.engine, specs, logger.info))

    # --- hooks that dbt calls around every node ---

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:  # noqa: ANN401, ARG002
        """After a data test (then `config` is the whole context): record its outcome, publish what is free.

        An error here is the test's: what is green and could not be published must not end as a success.
        """
        with as_dbt_errors():
            for line in self.writer.tests.conclude(config):
                logger.info(line)

    def cleanup_connections(self) -> None:
        """Called by dbt at the end of an invocation: say what stays unpublished, once."""
        for line in self.writer.coordinator.take_held_back():
            logger.warning(line)
        super().cleanup_connections()

    @as_dbt_errors()
    def debug_query(self) -> None:
        """`dbt debug`: Java, Spark, warehouse, brokers."""
        for line in self.engine.check():
            logger.info(line)

    def run_sql_for_tests(self, sql: str, fetch: str, conn: Connection) -> Any:  # noqa: ANN401 - dbt's signature
        """Used by dbt-tests-adapter."""
        with self.connections.exception_handler(sql):
            (cursor := conn.handle.cursor()).execute(sql)
        return cursor.fetchone() if fetch == "one" else cursor.fetchall() if fetch == "all" else None
