"""dbt adapter `tablestore`: dbt on Spark with atomic Paimon snapshots and an exactly-once Kafka changelog."""

import dbt.adapters.tablestore.garbage_collection  # isort: skip  # noqa: F401 - before the many objects of the others

from dbt.adapters.base.plugin import AdapterPlugin

from dbt.adapters.tablestore.credentials import TablestoreCredentials
from dbt.adapters.tablestore.impl import TablestoreAdapter
from dbt.include import tablestore

Plugin = AdapterPlugin(
    adapter=TablestoreAdapter,  # type: ignore[arg-type]  # dbt's protocol and dbt's base class disagree
    credentials=TablestoreCredentials,
    include_path=tablestore.PACKAGE_PATH,
    dependencies=["spark"],
)
