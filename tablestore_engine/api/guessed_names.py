"""Names that users of pandas, polars and pyiceberg try, with the call that does the same here.

WHY        a name that can mean one call alone is that call. The others have several meanings or arguments elsewhere: an
           AttributeError that names the right call costs the user nothing, a wrong guess of ours would.
"""

from __future__ import annotations

from collections.abc import Mapping

OF_TABLE: Mapping[str, str] = {
    "columns": "schema.arrow_schema().names",
    "drop": "engine.drop_table(name)",
    "filter": "scan(filter=…)",
    "insert": "append(rows) or upsert(rows)",
    "merge": "upsert(rows)",
    "select": "scan(columns=…)",
    "time_travel": "scan(snapshot=…), scan(tag=…) or scan(timestamp_ms=…)",
    "update": 'upsert(rows), or engine.sql("update …")',
    "where": "scan(filter=…)",
}
OF_ENGINE: Mapping[str, str] = {
    "execute": "sql(text)",
    "list_databases": "databases()",
    "read_table": "table(name).scan()",
    "table_exists": "exists(name)",
}


def unknown_attribute(owner: str, name: str, guesses: Mapping[str, str]) -> AttributeError:
    """As Python says it, with the call that is meant."""
    hint = f"; use {guesses[name]}" if name in guesses else ""
    return AttributeError(f"'{owner}' object has no attribute {name!r}{hint}", name=name)
