"""Names that users of pandas, polars and pyiceberg try, with the call that does the same here.

WHY        one thing has one name in this API; an AttributeError that names it costs the user nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

_ALTER = 'engine.sql("alter table …")'
OF_TABLE: Mapping[str, str] = {
    "add_column": _ALTER,
    "changelog": "changes(since)",
    "columns": "schema.arrow_schema().names",
    "create_tag": "tag(name, snapshot_id)",
    "drop": "engine.drop_table(name)",
    "drop_column": _ALTER,
    "expire_snapshots": "expire()",
    "filter": "scan(filter=…)",
    "history": "snapshots()",
    "insert": "append(rows) or upsert(rows)",
    "merge": "upsert(rows)",
    "rename_column": _ALTER,
    "rollback_to": "rollback(snapshot_id), or restore(snapshot=…), which keeps history",
    "select": "scan(columns=…)",
    "tags": "list_tags()",
    "time_travel": "scan(snapshot=…), scan(tag=…) or scan(timestamp_ms=…)",
    "update": 'upsert(rows), or engine.sql("update …")',
    "where": "scan(filter=…)",
}
OF_ENGINE: Mapping[str, str] = {
    "execute": "sql(text)",
    "list_databases": "databases()",
    "read_table": "table(name).scan()",
    "table_exists": "exists(name)",
    "tables": "list_tables(database)",
}


def unknown_attribute(owner: str, name: str, guesses: Mapping[str, str]) -> AttributeError:
    """As Python says it, with the call that is meant."""
    hint = f"; use {guesses[name]}" if name in guesses else ""
    return AttributeError(f"'{owner}' object has no attribute {name!r}{hint}", name=name)
