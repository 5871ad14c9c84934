"""`information_schema`: read-only views of what the warehouse holds, computed for each statement that names one.

schemata   catalog_name, schema_name, schema_owner
tables     table_catalog, table_schema, table_name, table_type (BASE TABLE, VIEW), is_insertable_into, comment
columns    table_catalog, table_schema, table_name, column_name, ordinal_position (from 1), column_default,
           is_nullable (YES, NO), data_type (as DESCRIBE says it), comment
views      table_catalog, table_schema, table_name, view_definition, check_option, is_updatable
CHANGE     the views of `information_schema`
INVARIANT  only published tables are listed: a table that has staged snapshots only is left out.
INVARIANT  a damaged table does not hide the others: it has no columns here, and its damage is its comment.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.warehouse.relations.relation_list import DAMAGED, RelationInfo, list_relations

if TYPE_CHECKING:
    from tablestore_engine.catalog.resolved_names import ResolvedSystemView, ViewColumns

_CATALOG = "spark_catalog"
_PLACE = (("table_catalog", "string"), ("table_schema", "string"), ("table_name", "string"))
_Row = tuple[object, ...]


@dataclass(frozen=True)
class SystemViews:
    catalog: FilesystemCatalog
    stores: OpenTables

    def find(self, name: str) -> ResolvedSystemView | None:
        """By the name in lower case."""
        from tablestore_engine.catalog.resolved_names import ResolvedSystemView

        known: dict[str, tuple[tuple[tuple[str, str], ...], Callable[[ViewColumns], Iterable[_Row]]]] = {
            "schemata": (
                (("catalog_name", "string"), ("schema_name", "string"), ("schema_owner", "string")),
                self._schemata,
            ),
            "tables": (
                (*_PLACE, ("table_type", "string"), ("is_insertable_into", "string"), ("comment", "string")),
                self._tables,
            ),
            "columns": (
                (
                    *_PLACE,
                    ("column_name", "string"),
                    ("ordinal_position", "int"),
                    ("column_default", "string"),
                    ("is_nullable", "string"),
                    ("data_type", "string"),
                    ("comment", "string"),
                ),
                self._columns,
            ),
            "views": (
                (
                    *_PLACE,
                    ("view_definition", "string"),
                    ("check_option", "string"),
                    ("is_updatable", "string"),
                ),
                self._views,
            ),
        }
        if name not in known:
            return None
        columns, rows = known[name]
        return ResolvedSystemView(columns, lambda views: tuple(rows(views)))

    def _relations(self) -> Iterator[RelationInfo]:
        for database in self.catalog.list_databases():
            yield from list_relations(self.catalog, self.stores, database, with_unpublished=False)

    def _schemata(self, _: ViewColumns) -> Iterator[_Row]:
        for database in self.catalog.list_databases():
            yield (_CATALOG, database, None)

    def _tables(self, _: ViewColumns) -> Iterator[_Row]:
        for one in self._relations():
            is_table = one.kind == "table"
            kind = "BASE TABLE" if is_table else "VIEW"
            yield (*_place(one), kind, "YES" if is_table else "NO", one.problem or one.comment)

    def _columns(self, views: ViewColumns) -> Iterator[_Row]:
        for one in self._relations():
            if one.problem is not None:
                continue
            found = self._table_columns(one) if one.kind == "table" else self._view_columns(one, views)
            for position, (name, default, nullable, kind, comment) in enumerate(found, start=1):
                yield (*_place(one), name, position, default, "YES" if nullable else "NO", kind, comment)

    def _table_columns(self, one: RelationInfo) -> Sequence[tuple[str, str | None, bool, str, str | None]]:
        from tablestore_engine.spark.type_ddl import shown_type

        seen = self.stores.find_seen(one.identifier)
        if seen is None:  # dropped meanwhile
            return ()
        return [
            (f.name, f.default_value, f.type.nullable, shown_type(f.type), f.description)
            for f in seen.latest_schema().fields
        ]

    def _view_columns(
        self, one: RelationInfo, views: ViewColumns
    ) -> Sequence[tuple[str, str | None, bool, str, str | None]]:
        view = self._find_view(one)
        comments = {} if view is None else {key.lower(): text for key, text in view.column_comments.items()}
        return [
            (name, None, nullable, kind, comments.get(name.lower()))
            for name, kind, nullable in views(one.identifier.database, one.identifier.name)
        ]

    def _views(self, _: ViewColumns) -> Iterator[_Row]:
        for one in self._relations():
            view = None if one.kind != "view" else self._find_view(one)
            if view is not None:
                yield (*_place(one), view.sql, "NONE", "NO")

    def _find_view(self, one: RelationInfo) -> ViewDefinition | None:
        try:
            return self.catalog.views.find(one.identifier)
        except DAMAGED:  # `tables` says so
            return None


def _place(one: RelationInfo) -> tuple[str, str, str]:
    return (_CATALOG, one.identifier.database, one.identifier.name)
