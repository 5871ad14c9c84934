"""SQL functions: named SQL text beside the tables, as JSON files that any process finds again.

    <warehouse>/<db>.db/.tablestore/functions/<name in lower case>.json   {"sql", "timeMillis"}

`sql` is what follows the name in CREATE FUNCTION: `(x INT) RETURNS INT RETURN x + 1`.
INVARIANT  a function is replaced in one atomic step; readers see the old text or the new one.
INVARIANT  functions have their own name space, as in Spark: a table or view may have the same name.
INVARIANT  names of functions have no case, as in Spark: they are stored in lower case.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData, FixRequest, Unsupported
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.checksum import checksummed_json, verify_checksum
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.layout import database_location

if TYPE_CHECKING:
    from tablestore_engine.sql.statement import CreateFunction

_SUFFIX = ".json"
_AGAIN = "create the function again (dbt build --select <function>)"


@dataclass(frozen=True)
class FunctionDefinition:
    """SQL text of a function after its name; `time_millis` is when it was put."""

    sql: str
    time_millis: int = 0

    def parsed(self, identifier: Identifier) -> CreateFunction:
        """Its clauses. Raises FixRequest TS1501, Unsupported TS1534."""
        from tablestore_engine.sql.function_parser import parse_definition
        from tablestore_engine.sql.statement import TableName

        return parse_definition(TableName(identifier.database, identifier.name), self.sql)


def encode_function(function: FunctionDefinition) -> bytes:
    return checksummed_json({"sql": function.sql, "timeMillis": function.time_millis})


def decode_function(data: bytes, path: str, identifier: Identifier) -> FunctionDefinition:
    """Back from JSON. Raises FixData TS1458, TS1160 (damaged)."""
    verify_checksum(data, "function", path, again=_AGAIN)
    try:
        content = parse_object(data)
        if not isinstance(content["sql"], str):
            raise TypeError("sql is a text")
        found = FunctionDefinition(content["sql"], int(content["timeMillis"]))
        found.parsed(identifier)
    except (*DAMAGE, FixRequest, Unsupported) as error:
        raise FixData(
            "TS1458",
            f"function file {path} cannot be read",
            why=f"expected JSON with sql (the clauses of a SQL function) and timeMillis; {error}",
            fix=_AGAIN,
        ) from error
    return found


@dataclass(frozen=True)
class FunctionStore:
    fileio: FileIO
    warehouse: str

    def _folder(self, database: str) -> str:
        return f"{database_location(self.warehouse, database)}/.tablestore/functions"

    def path(self, identifier: Identifier) -> str:
        """The file of a function, whether it exists or not."""
        return f"{self._folder(identifier.database)}/{identifier.name.lower()}{_SUFFIX}"

    def list_names(self, database: str) -> tuple[str, ...]:
        """Names of the functions of a database, sorted."""
        found = self.fileio.list(self._folder(database))
        return tuple(status.name.removesuffix(_SUFFIX) for status in found if status.name.endswith(_SUFFIX))

    def find(self, identifier: Identifier) -> FunctionDefinition | None:
        """The function, or None when there is none of that name."""
        path = self.path(identifier)
        if not self.fileio.exists(path):
            return None
        return decode_function(self.fileio.read(path), path, identifier)

    def put(self, identifier: Identifier, function: FunctionDefinition) -> None:
        self.fileio.replace(self.path(identifier), encode_function(function))

    def drop(self, identifier: Identifier) -> None:
        """Remove; a missing function is no error."""
        self.fileio.delete(self.path(identifier))
