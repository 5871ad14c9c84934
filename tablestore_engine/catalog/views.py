"""Views: named SQL text beside the tables, as JSON files that any process finds again.

    <warehouse>/<db>.db/.tablestore/views/<name>.json   {"sql", "comment", "columns": {name: comment}, "timeMillis"}

INVARIANT  the folder has a leading dot and no `schema/`: other engines' catalogs do not take it for a table.
INVARIANT  a view is replaced in one atomic step; readers see the old text or the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.checksum import checksummed_json, verify_checksum
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.layout import database_location

_SUFFIX = ".json"
_AGAIN = "create the view again (dbt run --select <model>)"


@dataclass(frozen=True)
class ViewDefinition:
    """SQL text of a view with its comments; `time_millis` is when it was put."""

    sql: str
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    time_millis: int = 0


def encode_view(view: ViewDefinition) -> bytes:
    content = {
        "sql": view.sql,
        "comment": view.comment,
        "columns": dict(view.column_comments),
        "timeMillis": view.time_millis,
    }
    return checksummed_json(content)


def decode_view(data: bytes, path: str) -> ViewDefinition:
    """Back from JSON. Raises FixData TS1403, TS1160 (damaged)."""
    verify_checksum(data, "view", path, again=_AGAIN)
    try:
        content = parse_object(data)
        sql, comment, columns = content["sql"], content["comment"], content["columns"]
        texts = (sql, comment or "", *columns.keys(), *columns.values())
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("sql, comment and columns are texts")
        return ViewDefinition(sql, comment, columns, int(content["timeMillis"]))
    except DAMAGE as error:
        raise FixData(
            "TS1403",
            f"view file {path} cannot be read",
            why=f"expected JSON with sql, comment, columns, timeMillis; {error}",
            fix=_AGAIN,
        ) from error


@dataclass(frozen=True)
class ViewStore:
    fileio: FileIO
    warehouse: str

    def _folder(self, database: str) -> str:
        return f"{database_location(self.warehouse, database)}/.tablestore/views"

    def path(self, identifier: Identifier) -> str:
        """The file of a view, whether it exists or not."""
        return f"{self._folder(identifier.database)}/{identifier.name}{_SUFFIX}"

    def list_names(self, database: str) -> tuple[str, ...]:
        """Names of the views of a database, sorted."""
        found = self.fileio.list(self._folder(database))
        return tuple(status.name.removesuffix(_SUFFIX) for status in found if status.name.endswith(_SUFFIX))

    def find(self, identifier: Identifier) -> ViewDefinition | None:
        """The view, or None when there is none of that name."""
        path = self.path(identifier)
        return decode_view(self.fileio.read(path), path) if self.fileio.exists(path) else None

    def put(self, identifier: Identifier, view: ViewDefinition) -> None:
        self.fileio.replace(self.path(identifier), encode_view(view))

    def drop(self, identifier: Identifier) -> None:
        """Remove; a missing view is no error."""
        self.fileio.delete(self.path(identifier))
