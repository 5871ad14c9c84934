"""Logs of tables that are gone: which there are, and deleting them when a user asks for it.

CHANGE     `tablestore log drop`: whether the table is gone
Steps      delete: 1 the table's uuid is no table's of the warehouse, and no table has a log of that name  2 the log
           says what is still the former table's  3 step 1 once more  4 that is deleted  5 the record
INVARIANT  a table that cannot be read may be the one that is looked for: nothing is deleted then.
INVARIANT  step 1 lists tables that wait for a place before those that have one, and is done twice: a table that takes
           its place, or gets another name, is in one of the lists.
CRASH      before 5: the record is there, and nothing is left of its log; `forget` removes it.
WHY        a record stays where nothing is found: the log may be in another place than the one that was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.log.sink import ChangelogSink, LogRemains
from tablestore_engine.store.metadata.identity import UUID_OPTION
from tablestore_engine.warehouse.log.logs import Logs

if TYPE_CHECKING:
    from tablestore_engine.catalog.left_logs import LeftLog


@dataclass(frozen=True)
class FormerLog:
    """`name` of the log; `remains`: what is, or was, left of it."""

    left: LeftLog
    name: str
    remains: LogRemains


@dataclass(frozen=True)
class FormerLogs:
    catalog: FilesystemCatalog
    logs: Logs

    def list_left(self, wanted: str | None = None) -> tuple[LeftLog, ...]:
        """Of tables that are gone: of the name `wanted` (`db.table`), of a database (`db`), or all."""
        living = {uuid for _, uuid, _ in self._list_living()}
        return tuple(
            one
            for one in self.logs.left.list_all()
            if one.uuid not in living and wanted in (None, one.table.database, str(one.table))
        )

    def find(self, wanted: str | None = None) -> tuple[FormerLog, ...]:
        """With what is left of each; changes nothing. Raises TS1701, TS17xx."""
        found = []
        for left in self.list_left(wanted):
            name, sink = self._open(left)
            user = self._find_user(left, name)
            found.append(FormerLog(left, name, sink.find_remains() if user is None else LogRemains((), user)))
        return tuple(found)

    def delete(self, wanted: str) -> tuple[FormerLog, ...]:
        """Of former tables of this name; a record goes with its log. Raises NotFound TS1032, FixRequest TS1033, TS1701,
        TS17xx.
        """
        return tuple(self._delete(left) for left in self._get_left(wanted))

    def forget(self, wanted: str) -> tuple[LeftLog, ...]:
        """Remove the records alone; the logs stay, and are not asked. Raises NotFound TS1032."""
        found = self._get_left(wanted)
        for left in found:
            self.logs.left.drop(left.uuid)
        return found

    def _get_left(self, wanted: str) -> tuple[LeftLog, ...]:
        found = self.list_left(wanted)
        if not found:
            known = ", ".join(dict.fromkeys(str(one.table) for one in self.list_left()))
            raise NotFound(
                "TS1032",
                f"no log of a dropped table {wanted} is known",
                why=f"a DROP that leaves a log writes a record; there are records of {known or 'no table'}",
                fix="correct the name; a log without a record is deleted with the tools of its system",
            )
        return found

    def _delete(self, left: LeftLog) -> FormerLog:
        name, sink = self._open(left)
        self._check_unused(left, name)
        remains = sink.find_remains()
        if remains.names:
            self._check_unused(left, name)
            remains = sink.delete_remains()
            if not remains.kept:
                self.logs.left.drop(left.uuid)
        return FormerLog(left, name, remains)

    def _open(self, left: LeftLog) -> tuple[str, ChangelogSink]:
        name, sink = self.logs.system.find_name(left.schema), self.logs.find_former(left)
        assert name is not None, "only a table with a log leaves one"
        assert sink is not None, "only a table with a log leaves one"
        return name, sink

    def _check_unused(self, left: LeftLog, name: str) -> None:
        """Raises FixRequest TS1033."""
        user = self._find_user(left, name)
        if user is not None:
            raise FixRequest(
                "TS1033",
                f"log {name} of the dropped table {left.table} is not deleted",
                why=user,
                fix="drop that table first, or keep the log",
            )

    def _find_user(self, left: LeftLog, name: str) -> str | None:
        for identifier, uuid, log in self._list_living():
            if left.uuid == uuid or log == name:
                return f"it is the log of the table {identifier}"
        return None

    def _list_living(self) -> Iterator[tuple[Identifier, str | None, str | None]]:
        """Each table with its uuid and the name of its log. Raises what a damaged table raises."""
        for database in self.catalog.list_databases():
            waiting = [
                Identifier(database, one).replacement for one in self.catalog.list_replacements(database)
            ]
            named = [Identifier(database, one) for one in self.catalog.list_tables(database)]
            for identifier in (*waiting, *named):
                schema = self.catalog.find_schema(identifier)
                if schema is not None:
                    found = schema.options.get(UUID_OPTION)
                    yield identifier, found, self.logs.system.find_name(schema)
