"""What queries with state remember between two runs: one file for each state, which a commit names.

    .tablestore/states/<database>.<table>/<uuid>.tar   Spark's checkpoint behind a run: state stores, offsets, commits

Names      QueryStates   unpack: a state → a folder that a query goes on in; pack: such a folder → a new state
Steps      a run: unpack what the table's newest snapshot names → the query changes its own folder → pack → the commit
           of its rows names the new state
INVARIANT  a state never changes: two runs from one state, or a run that is killed, leave it as it was. Rows, positions
           and state move in one commit, since a state that no commit names is nobody's (decision 0045).
INVARIANT  the newest KEPT states of a table stay, so that a rollback over a few runs finds its own.
CRASH      a state that no commit names: it goes when KEPT newer ones are there, or with orphans.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.storage_errors import explained
from tablestore_engine.format.layout import query_states_location

KEPT = 5
_SUFFIX = ".tar"


@dataclass(frozen=True)
class QueryStates:
    """Of the query that writes one table."""

    catalog: FilesystemCatalog
    table: Identifier

    def unpack(self, name: str, folder: Path) -> None:
        """Into a folder that is empty. Raises FixRequest TS1455."""
        path = self._path(name)
        if not self.catalog.fileio.exists(path):
            raise self._lost(name, f"{path} is not there; only the newest {KEPT} states of a table are kept")
        try:
            with (
                explained(str(folder)),
                self.catalog.fileio.open_input(path) as source,
                tarfile.open(fileobj=source, mode="r|") as archive,
            ):
                archive.extractall(folder, filter="data")
        except tarfile.TarError as error:
            raise self._lost(name, f"{path} cannot be read: {error}") from error

    def pack(self, folder: Path) -> str:
        """The name of the new state, durable. Older ones go."""
        name = self.catalog.runtime.new_uuid()
        with (
            self.catalog.fileio.open_output(self._path(name)) as output,
            tarfile.open(fileobj=output, mode="w|") as archive,
        ):
            archive.add(folder, arcname=".")
        return name

    def clean(self, named: str | None) -> None:
        """Let old states go; `named`: by the table's newest snapshot."""
        fileio = self.catalog.fileio
        found = sorted(fileio.list(self._folder), key=lambda one: (one.modified_ms, one.name), reverse=True)
        for status in found[KEPT:]:
            if named is None or status.name != named + _SUFFIX:
                fileio.delete(status.path)

    def _lost(self, name: str, why: str) -> FixRequest:
        return FixRequest(
            "TS1455",
            f"what the query of {self.table} remembers is gone",
            why=f"the newest snapshot of the table goes on from state {name}, and {why}",
            fix="build the table anew (a full refresh)",
        )

    @property
    def _folder(self) -> str:
        return f"{query_states_location(self.catalog.warehouse)}/{self.table}"

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}{_SUFFIX}"
