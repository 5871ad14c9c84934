"""State of stateful queries between two runs: one file for each state, which a commit names.

    .tablestore/states/<database>.<table>/<uuid>.tar   Spark's checkpoint behind a run: state stores, offsets, commits
                      /<database>.<table>$branch_<name>/   of runs on a branch

CHANGE     the state of a stateful query, and how long it is kept
Steps      a run: unpack what the table's newest snapshot names → the query changes its own folder → pack → the commit
           of its rows names the new state
INVARIANT  a state never changes: two runs from one state, or a run that is killed, leave it as it was. Rows, positions
           and state move in one commit, since a state that no commit names is nobody's (decision 0045).
INVARIANT  the KEPT states that the newest snapshots name stay, so that a rollback over a few runs finds its own: runs
           that fail or are held back leave states too, however many, which push none of them out.
CRASH      a state that no commit names: it goes when KEPT newer ones are there, or with orphans. A rename copies before
           and drops behind: a table has its states at any moment.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.fileio.storage_errors import explained
from tablestore_engine.format.layout import STATES_OF_BRANCH, streaming_states_location
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.table_store import TableStore

KEPT = 5
POSITION = "state"  # among a snapshot's positions: the state that the next run goes on from
_SNAPSHOTS_MAX = 50  # so far back states are looked for
GROUPS = "groups-"  # before the names of states of changed_keys models (group_state_files)
PARTS = "+"  # between the files of one state
_SUFFIX, _GROUPS_SUFFIX = ".tar", ".parquet"
_PACKS_MAX = 5


@dataclass(frozen=True)
class StreamingStateFiles:
    catalog: FilesystemCatalog
    table: Identifier

    def unpack(self, name: str, folder: Path) -> None:
        """Into a folder that is empty. Raises FixRequest TS1455."""
        path = self.find_path(name)
        if not self.catalog.fileio.exists(path):
            raise self._lost(name, f"{path} is not there; only the {KEPT} states of its newest runs are kept")
        try:
            with (
                explained(str(folder)),
                self.catalog.fileio.open_input(path) as source,
                tarfile.open(fileobj=source, mode="r|") as archive,
            ):
                _extract(archive, folder)
        except tarfile.TarError as error:
            raise self._lost(name, f"{path} cannot be read: {error}") from error

    def pack(self, folder: Path) -> str:
        """The name of the new state, durable.

        An executor that merges its store meanwhile deletes files that it has replaced: then it is begun again.
        """
        for _ in range(_PACKS_MAX - 1):
            with suppress(FileNotFoundError):
                return self._pack(folder)
        return self._pack(folder)

    def _pack(self, folder: Path) -> str:
        name = self.catalog.runtime.new_uuid()
        with (
            self.catalog.fileio.open_output(self.path(name)) as output,
            tarfile.open(fileobj=output, mode="w|") as archive,
        ):
            archive.add(folder, arcname=".")
        return name

    def named_by(self, store: TableStore | None) -> frozenset[str]:
        """Files of the newest KEPT states that snapshots of the table name; None: there is none yet."""
        found: set[frozenset[str]] = set()
        if store is None:
            return frozenset()
        snapshots = store.context.snapshots
        newest = snapshots.find_latest_id() or 0
        for number in range(newest, max(newest - _SNAPSHOTS_MAX, 0), -1):
            snapshot = snapshots.find(number)
            if snapshot is None or len(found) == KEPT:
                break
            found |= {one for one in (_state_of(store, snapshot),) if one}
        return frozenset[str]().union(*found)

    def size_of(self, name: str) -> int | None:
        """Bytes of a state, of what is there; None when nothing is."""
        found = {_name_of(status): status.size_bytes for status in self._files()}
        sizes = [found[one] for one in name.split(PARTS) if one in found]
        return sum(sizes) if sizes else None

    def clean(self, named: Collection[str]) -> None:
        """Let old states go that are not `named`."""
        fileio = self.catalog.fileio
        found = sorted(self._files(), key=lambda one: (one.modified_ms, one.name), reverse=True)
        for status in found[KEPT:]:
            if _name_of(status) not in named:
                fileio.delete(status.path)

    def copy_to(self, target: Identifier, names: Collection[str] | None = None) -> None:
        """Under another table's name too: bytes are shared. None: all."""
        self._copy(StreamingStateFiles(self.catalog, target), names)

    def _copy(self, there: StreamingStateFiles, names: Collection[str] | None) -> None:
        for status in self._files():
            name = _name_of(status)
            if names is None or name in names:
                with suppress(FileExistsError):  # a rename, or a fast-forward, that begins again
                    self.catalog.fileio.copy(status.path, there.path(name))

    def copy_named(self, target: Identifier, store: TableStore, snapshot: Snapshot | None) -> None:
        """What a snapshot goes on from, for a table that begins with it."""
        if snapshot is not None:
            self.copy_to(target, _state_of(store, snapshot))

    def drop(self) -> None:
        if self._files():
            self.catalog.fileio.delete_tree(self._folder)

    def _files(self) -> Sequence[FileStatus]:
        return self.catalog.fileio.list(self._folder)

    def _lost(self, name: str, why: str) -> FixRequest:
        return FixRequest(
            "TS1455",
            f"what the query of {self.table} remembers is gone",
            why=f"the newest snapshot of the table continues state {name}, and {why}",
            fix="build the table again (a full refresh)",
        )

    @property
    def _folder(self) -> str:
        branch = self.catalog.branch
        of = "" if branch is None else f"{STATES_OF_BRANCH}{branch}"
        return f"{streaming_states_location(self.catalog.warehouse)}/{self.table}{of}"

    @property
    def _of_main(self) -> StreamingStateFiles:
        return replace(self, catalog=replace(self.catalog, branch=None))

    def find_path(self, name: str) -> str:
        """Of the file of a state to read: a branch begins with the one that its first snapshot names, main's."""
        path = self.path(name)
        if self.catalog.branch is None or self.catalog.fileio.exists(path):
            return path
        return self._of_main.path(name)

    def copy_to_main(self, store: TableStore) -> None:
        """What the newest snapshot of the branch names, before main gets that snapshot."""
        newest = store.latest()
        names = frozenset[str]() if newest is None else _state_of(store, newest)
        self._copy(self._of_main, names)

    def path(self, name: str) -> str:
        return f"{self._folder}/{name}{_GROUPS_SUFFIX if name.startswith(GROUPS) else _SUFFIX}"


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Folders and files inside of `folder`; anything else raises TarError.

    WHY  `extractall` has filters from Python 3.11.4 on; distributions ship 3.11.2.
    """
    for member in archive:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isdir() or member.isreg()):
            raise tarfile.ExtractError(f"{member.name!r} is not a file inside of it")
        target = folder / path
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        content = archive.extractfile(member)
        assert content is not None  # of a regular file it never is
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)
        os.utime(target, (member.mtime, member.mtime))


def _name_of(status: FileStatus) -> str:
    return status.name.removesuffix(_SUFFIX).removesuffix(_GROUPS_SUFFIX)


def _state_of(store: TableStore, snapshot: Snapshot) -> frozenset[str]:
    try:
        name = store.positions(snapshot).get(POSITION)
    except FixRequest:  # another engine's, and nobody can tell
        return frozenset()
    return frozenset() if name is None else frozenset(name.split(PARTS))
