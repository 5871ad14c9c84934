"""Comments of a table and its columns as one change of its schema."""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import describe_column, set_comment


def set_all_comments(schema: TableSchema, comment: str | None, columns: Mapping[str, str]) -> TableSchema:
    """The schema with the table's comment (None: as it is) and those of the named columns."""
    if comment is not None:
        schema = set_comment(schema, comment)
    known = {name.lower(): name for name in schema.field_names}
    for name, text in columns.items():
        if name.lower() in known:
            schema = describe_column(schema, known[name.lower()], text or None)
    return schema
