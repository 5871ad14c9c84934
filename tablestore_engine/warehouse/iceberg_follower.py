"""Iceberg metadata of the tables of a warehouse: written after each commit that readers see.

INVARIANT  a commit that stands is reported as one: why Iceberg metadata could not be written is in the report, and the
           next commit writes it.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.warehouse.iceberg_catalog import CatalogEntry, IcebergCatalogs
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from tablestore_engine.store.iceberg_metadata.iceberg_sync import IcebergReport


@dataclass(frozen=True)
class IcebergMetadata:
    catalog: FilesystemCatalog
    stores: OpenTables
    catalogs: IcebergCatalogs = field(default_factory=IcebergCatalogs)

    def after_commit(self, identifier: Identifier, report: WriteReport) -> WriteReport:
        """The report with what went wrong. A table that was dropped meanwhile needs none."""
        from tablestore_engine.iceberg.schema_mapping import STORAGE_OPTION

        seen = report.seen
        if seen is not None and STORAGE_OPTION not in seen.schema.options:
            return report
        try:
            store = self.stores.find(identifier) if seen is None else self.stores.open(identifier)
            if store is not None:
                schema = store.schema if seen is None else seen.schema
                self._sync(identifier, store.context, schema)
        except (TablestoreError, OSError) as error:
            return replace(report, iceberg_trouble=str(error))
        return report

    def follow(self, identifier: Identifier) -> None:
        """After a change that is no commit: a name, a clone. What fails is left to the next commit."""
        self.after_commit(identifier, WriteReport(identifier, None))

    def drop(self, identifier: Identifier, schema: TableSchema | None = None) -> None:
        """What is outside the folder of a table that goes, or has another name now.

        `schema`: its own, for its entry in an Iceberg catalog. One that cannot be taken away stays.
        """
        from tablestore_engine.store.iceberg_metadata.iceberg_cleanup import delete_catalog_entry

        name = None if schema is None else TableTraits(schema).iceberg_catalog
        if name is not None:
            with suppress(TablestoreError):
                self.catalogs.drop(name, identifier)
        delete_catalog_entry(self.catalog.fileio, TableLayout(self.catalog.location(identifier)))

    def drop_former(self, identifier: Identifier) -> None:
        """The same of a table that another one has replaced, unless this one writes to the same place."""
        from tablestore_engine.store.iceberg_metadata.iceberg_place import HADOOP_CATALOG

        store = self.stores.find(identifier)
        if store is None or TableTraits(store.schema).iceberg_storage != HADOOP_CATALOG:
            self.drop(identifier)

    def sync(self, identifier: Identifier) -> IcebergReport | None:
        """Now; None for a table without a snapshot.

        Raises NotFound TS1414, FixRequest TS1028, as sync_iceberg and IcebergCatalogs.put.
        """
        from tablestore_engine.iceberg.schema_mapping import STORAGE_OPTION, has_iceberg

        store = self.stores.get(identifier)
        if not has_iceberg(store.schema):
            raise FixRequest(
                "TS1028",
                f"{identifier} has no Iceberg metadata",
                why=f"its option {STORAGE_OPTION} is not set",
                fix=f"alter table {identifier} set tblproperties ('{STORAGE_OPTION}' = 'table-location')",
            )
        return self._sync(identifier, store.context, store.schema)

    def _sync(
        self, identifier: Identifier, context: TableContext, schema: TableSchema
    ) -> IcebergReport | None:
        """Writes the metadata, then the entry in the catalog that `schema` names."""
        from tablestore_engine.store.iceberg_metadata.iceberg_place import all_places, find_place
        from tablestore_engine.store.iceberg_metadata.iceberg_sync import sync_iceberg

        done, traits, layout = sync_iceberg(context), TableTraits(schema), context.layout
        place = find_place(layout, traits.iceberg_storage)
        if done is not None and place is not None and traits.iceberg_catalog is not None:
            entry = CatalogEntry(
                identifier, place, all_places(layout), done.version, context.fileio.exists_file
            )
            self.catalogs.put(traits.iceberg_catalog, entry)
        return done
