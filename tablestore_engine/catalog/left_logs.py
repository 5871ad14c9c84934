"""Records of logs that outlived their tables: DROP writes one where it does not delete the log.

    .tablestore/left-logs/<uuid of the table>.json   {"table", "schema", "timeMillis"}

CHANGE     the records of logs that DROP TABLE leaves
INVARIANT  a record proves nothing: the log says whose it is, the tables of the warehouse say whether its table is gone.
CRASH      between the record and the end of the DROP: the table is there, and its record counts for nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.checksum import checksummed_json, verify_checksum
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.layout import left_logs_location
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema
from tablestore_engine.store.metadata.identity import UUID_OPTION

_SUFFIX = ".json"
_UUID = re.compile(r"[0-9a-f-]{1,64}")


@dataclass(frozen=True)
class LeftLog:
    """`table`: the name that it had, `schema`: its last one, whose options name the log; `time_millis`: of the DROP."""

    table: Identifier
    schema: TableSchema
    time_millis: int

    @property
    def uuid(self) -> str:
        return self.schema.options.get(UUID_OPTION, "")


@dataclass(frozen=True)
class LeftLogStore:
    fileio: FileIO
    warehouse: str

    def put(self, left: LeftLog) -> None:
        """Create or replace; a table without an identity leaves nothing that could be told from another's."""
        if _UUID.fullmatch(left.uuid) is None:
            return
        content = {
            "table": f"{left.table.database}.{left.table.name}",
            "schema": encode_schema(left.schema).decode(),
            "timeMillis": left.time_millis,
        }
        self.fileio.replace(self._path(left.uuid), checksummed_json(content))

    def list_all(self) -> tuple[LeftLog, ...]:
        """In the order of their tables' names, then of time. Raises FixData TS1160, TS1488, TS1111."""
        folder = left_logs_location(self.warehouse)
        paths = [one.path for one in self.fileio.list(folder) if one.name.endswith(_SUFFIX)]
        found = [_decode(self.fileio.read(path), path) for path in paths]
        return tuple(sorted(found, key=lambda one: (one.table, one.time_millis)))

    def drop(self, uuid: str) -> None:
        """A missing one is fine."""
        if _UUID.fullmatch(uuid) is not None:
            self.fileio.delete(self._path(uuid))

    def _path(self, uuid: str) -> str:
        return f"{left_logs_location(self.warehouse)}/{uuid}{_SUFFIX}"


def _decode(data: bytes, path: str) -> LeftLog:
    again = "delete the file; then delete the log with the tools of its system"
    verify_checksum(data, "record of a left log", path, again=again)
    try:
        content = parse_object(data)
        schema = decode_schema(str(content["schema"]).encode(), path)
        return LeftLog(Identifier.parse(str(content["table"])), schema, int(content["timeMillis"]))
    except DAMAGE as error:
        raise FixData(
            "TS1488",
            f"record {path} of a left log cannot be read",
            why=f"expected JSON with table, schema, timeMillis; {error}",
            fix=again,
        ) from error
