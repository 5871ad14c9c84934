"""A table, and its warehouse, as a Python worker of Spark opens them: by an address, without a session.

INVARIANT  a worker never starts a JVM: bucket work stays in its threads.
INVARIANT  what a log needs comes from the environment of the worker, which is the driver's where the session started.
"""

from __future__ import annotations

import os

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.datasource.source_options import TableAddress
from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.stores import open_root
from tablestore_engine.log.kafka.client_settings import client_settings
from tablestore_engine.log.kafka.kafka_sink import KafkaSystem
from tablestore_engine.log.kafka.publish_progress import silent
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spark.spark_settings import SparkSettings
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.warehouse import Warehouse


def open_store(address: TableAddress) -> TableStore:
    """Raises NotFound TS1414, TS1346."""
    root, fileio = open_root(address.warehouse, SYSTEM.users)
    store = OpenTables(FilesystemCatalog(fileio, root, SYSTEM)).get(address.identifier)
    return store if address.branch is None else store.on_branch(address.branch)


def open_warehouse(address: TableAddress) -> Warehouse:
    """For one write into a table, or branch, that is there. Raises NotFound TS1451, TS1346, FixRequest TS109x."""
    log = KafkaSystem(client_settings(os.environ), SYSTEM, silent)
    warehouse = Warehouse(address.warehouse, SparkSettings(), log, SYSTEM, uses_spark=False)
    if warehouse.catalog.find_schema(address.identifier) is None:
        raise NotFound(
            "TS1451",
            f"Spark cannot write to {address.identifier}: there is no such table",
            why=f"format(tablestore) makes no tables, since options cannot say what one is; looked in {warehouse.path}",
            fix="create it first: by dbt, Engine.create_table, or CREATE TABLE through Engine.sql",
        )
    if address.branch is None:
        return warehouse
    warehouse.stores.get(address.identifier).on_branch(address.branch)  # it is there
    return warehouse.on_branch(address.branch)
