"""The name of a system table or branch in Spark: ``demo.`orders$files` `` is demo__system.orders__files.

INVARIANT  the name says which state is meant: another state of the same table has another database.
"""

from __future__ import annotations

import hashlib

from tablestore_engine.catalog.resolved_names import ResolvedName
from tablestore_engine.spark.missing_names import no_such_table
from tablestore_engine.spark.session_names import Name
from tablestore_engine.spark.statement_names import StatementNames
from tablestore_engine.sql.system_names import find_system_name
from tablestore_engine.sql.table_version import TableVersion

_SUFFIX = "__system"


def find_relation(name: Name, version: TableVersion | None, statement: StatementNames) -> ResolvedName:
    """What the name with `$` means. Raises NotFound TS1490, TS1511 when there is no such table."""
    found = statement.lookup(*name, version)
    if found is None:
        raise no_such_table(name, "")
    return found


def spark_name(name: Name, version: TableVersion | None) -> Name:
    """In Spark's catalog. REQUIRES a name with `$`."""
    system = find_system_name(name[1])
    assert system is not None
    mark = "" if version is None else "_" + hashlib.sha256(str(version).encode()).hexdigest()[:8]
    return f"{name[0]}{_SUFFIX}{mark}".lower(), system.plain.lower()
