"""Tables whose changes a text reads."""

from __future__ import annotations

from tablestore_engine.sql.as_of_clause import qualified_names
from tablestore_engine.sql.table_version import split_database


def changed_tables(text: str) -> tuple[str, ...]:
    """Distinct, in their order; in lower case, as Spark compares them. Raises FixRequest TS1014."""
    found: dict[str, None] = {}
    for written, name in qualified_names(text):
        database, version = split_database(written.lower())
        if version is not None and version.changes is not None:
            found[f"{database}.{name.lower()}"] = None
    return tuple(found)
