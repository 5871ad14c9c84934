"""All system tables by name, and what a name with `$` means.

CHANGE     which system tables there are
"""

from __future__ import annotations

from tablestore_engine.catalog.system_tables.file_tables import FILE_TABLES, PARTITION_TABLES
from tablestore_engine.catalog.system_tables.history_tables import HISTORY_TABLES
from tablestore_engine.catalog.system_tables.schema_tables import SCHEMA_TABLES
from tablestore_engine.catalog.system_tables.system_table import SystemTable
from tablestore_engine.errors import NotFound

METADATA_TABLES = {
    one.name: one for one in (*HISTORY_TABLES, *SCHEMA_TABLES, *FILE_TABLES, *PARTITION_TABLES)
}
AUDIT_LOG, BINLOG, READ_OPTIMIZED = "audit_log", "binlog", "ro"
ROW_TABLES = (AUDIT_LOG, BINLOG, READ_OPTIMIZED)  # the table's own rows, in another form
SYSTEM_TABLES = tuple(sorted((*METADATA_TABLES, *ROW_TABLES)))


def find_metadata_table(table: str, name: str) -> SystemTable | None:
    """None for one of ROW_TABLES. Raises NotFound TS1490."""
    if name not in SYSTEM_TABLES:
        raise NotFound(
            "TS1490",
            f"table {table} has no system table ${name}",
            why=f"the system tables are {', '.join(SYSTEM_TABLES)}",
            fix="correct the name after the $ (docs/sql.md#system-tables)",
        )
    return METADATA_TABLES.get(name)
