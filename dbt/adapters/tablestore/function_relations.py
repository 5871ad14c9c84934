"""SQL functions among the relations that dbt knows: listed, kept out of its cache, refused where Spark lacks the kind.

INVARIANT  a function and a table or view may have the same name: a look-up of a relation never finds a function.
"""

from __future__ import annotations

from multiprocessing.context import SpawnContext
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.cache import RelationsCache
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.impl import SparkAdapter

from dbt.adapters.tablestore.dbt_errors import as_dbt_errors, for_macros
from tablestore_engine.api import Engine, NotFound, Unsupported


class TablesAndViews(RelationsCache):
    """dbt's cache, which has one relation of each name."""

    def add(self, relation: Any) -> None:  # noqa: ANN401 - dbt's signature
        """Functions are not looked up as relations."""
        if not relation.is_function:
            super().add(relation)  # type: ignore[no-untyped-call]


class FunctionRelations(SparkAdapter):
    """A part of the adapter, which knows no other part."""

    engine: Engine

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:  # noqa: ANN401 - dbt's own untyped config
        super().__init__(config, mp_context)
        self.cache = TablesAndViews(log_cache_events=config.log_cache_events)

    @as_dbt_errors()
    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Tables and views of a schema, then functions whose names are not theirs."""
        schema = str(schema_relation.schema)
        try:
            infos = self.engine.relations(schema)
        except NotFound:
            return []
        named = [(one.identifier.database, one.identifier.name, RelationType(one.kind)) for one in infos]
        taken = {name.lower() for _, name, _ in named}
        functions = [name for name in self.engine.functions(schema) if name not in taken]
        named += [(schema, name, RelationType.Function) for name in functions]
        make = self.Relation.create
        return [make(schema=database, identifier=name, type=kind) for database, name, kind in named]

    def get_relation(self, database: str, schema: str, identifier: str) -> BaseRelation | None:
        """A table or view."""
        found = super().get_relation(database, schema, identifier)
        return None if found is not None and found.is_function else found

    @for_macros()
    def tablestore_refuse_function(self, name: str, what: str) -> None:
        """TS1884 for a kind of functions that dbt knows and Spark cannot store; `what` is dbt's word for it."""
        raise Unsupported(
            "TS1884",
            f"function {name}: {what} is not supported",
            why="Spark stores SQL functions only: one expression or query per call, no aggregates, no other language",
            fix="write the function in SQL (functions/<name>.sql), or write the expression as a macro",
        )
