"""Tables as wholes on stores without folders: dropped, made of copies, swapped, under a hold of their name.

Steps      drop: hold → metadata, data, and once more what came meanwhile → the hold itself
           make: copies of all data files, which no metadata names yet → hold → the old table's files go → metadata →
           the hold becomes schema-0: the table is there, whole
INVARIANT  a name is held by one process (store.metadata.name_hold); CREATE claims schema-0, and so no
           name that is held.
INVARIANT  data, manifest and index files have names that never come again: one that was listed under the
           hold is deleted whoever has the name by then.
INVARIANT  a store that refuses deletes is noticed before the hold, when nothing has changed (check_deletable). One that
           refuses later leaves the hold, as a process that dies does: TS1396 says so.
CRASH      before the hold: copies that nothing names, in no table or in the old one. Behind it: `make_free`.
PAIMON     other engines see a table that is being dropped until its schema goes; what they write meanwhile is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

from tablestore_engine.errors import FileTooLarge, NotFound, RetryError, StorageError
from tablestore_engine.fileio.base import FileIO, SeenFile, conditional_of
from tablestore_engine.fileio.size_limits import seen_unread
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema, decode_schema, encode_schema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.clone import copy_files, plan_clone, put_metadata
from tablestore_engine.store.metadata.identity import digest_of
from tablestore_engine.store.metadata.name_hold import (
    LEASE_MS,
    NameHold,
    begin_hold,
    find_held,
    hold_age_ms,
    is_held,
    name_is_held,
)
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.table_context import TableContext

DROP, RESTORE, SWAP = "drop", "restore", "swap"  # how a hold ends whose process died
SHARED = ("schema", "snapshot", "changelog", "tag", "consumer", "branch", "expire")
_DELETES = 1000
_PROBE = ".tablestore-delete-check"  # a name that no file has
_FOLDERS = 500  # that are listed between two looks at the hold: about a second

Complete = Callable[[NameHold], None]
Prepare = Callable[[Snapshot | None], None]


@dataclass(frozen=True)
class FlatTables:
    """REQUIRES a store without folders."""

    fileio: FileIO
    runtime: Runtime

    def look(self, place: str) -> SeenFile | None:
        """The first schema file, held or not; None while there is none. One that is too large is no hold: a damaged
        table, which can be dropped or replaced.
        """
        try:
            return conditional_of(self.fileio).read_seen(_first(place))
        except FileTooLarge as large:
            return seen_unread(large)
        except NotFound:
            return None

    def is_held(self, place: str) -> bool:
        """Whether the name means no table, since one is dropped or made, or was when a process died."""
        seen = self.look(place)
        return seen is not None and is_held(seen.data)

    def hold(self, place: str, seen: SeenFile | None, then: str, **said: str) -> NameHold:
        """Instead of what was seen, which is no hold. Raises RetryError TS1368 when it is not so any more."""
        found = begin_hold(self.fileio, self.runtime, _first(place), seen, then, **said)
        if found is None:
            raise name_is_held(_first(place))
        return found

    def check_deletable(self, place: str) -> None:
        """Raises StorageError TS1291 where this identity may not delete: one request, which deletes nothing."""
        try:
            self.fileio.delete(f"{TableLayout(place).schema_dir}/{_PROBE}")
        except StorageError as refused:
            raise StorageError(
                "TS1291",
                f"the table at {place} cannot be dropped or replaced; nothing was changed",
                why=f"the store refuses to delete below it: {refused.why}",
                fix=refused.fix,
            ) from refused

    def drop(self, place: str) -> None:
        """All files of a table, or of what is left of one. Raises StorageError TS1291, RetryError TS1367, TS1368,
        TS1396.
        """
        self.check_deletable(place)
        seen = self.look(place)
        if seen is not None and is_held(seen.data):
            self.check_stale(place)
        held = self.hold(place, seen, DROP)
        self.clear(place, held)
        held.end(None)

    def drop_remains(self, place: str) -> None:
        """Files where no table is; one that is created meanwhile stays. Raises RetryError TS1367, TS1368."""
        seen = self.look(place)
        if seen is not None and not is_held(seen.data):
            return
        if seen is not None:
            self.check_stale(place)
        self.check_deletable(place)
        held = self.hold(place, seen, DROP)
        self.clear(place, held)
        held.end(None)

    def drop_all(self, folder: str, waiting: str) -> None:
        """The tables of a database and what is left of others, one by one: one that is made meanwhile stays whole.

        `waiting`: the folder of its replacements.
        """
        for status in (*self.fileio.list(folder), *self.fileio.list(waiting)):
            if status.is_dir:
                self.drop(status.path)
        self.fileio.delete_tree(waiting.rpartition("/")[0])

    def drop_unused(self, place: str, identity: str) -> TableSchema | None:
        """The schema of the dropped table; None when it is used, or another one. It is looked at under the hold.

        A writer whose claim was on its way fails (TS1365), and finds the table, or none, when it runs again.
        """
        seen = self.look(place)
        if seen is None or digest_of(seen.data) != identity or self._has_content(place):
            return None
        self.check_deletable(place)
        schema, held = decode_schema(seen.data, place), self.hold(place, seen, RESTORE)
        if self._has_content(place):
            held.end(seen.data)
            return None
        held.renew(then=DROP)
        self.clear(place, held)
        held.end(None)
        return schema

    def _has_content(self, place: str) -> bool:
        layout = TableLayout(place)
        return bool(self.fileio.list(layout.branches_dir) or SnapshotStore(self.fileio, layout).list_ids())

    def clone(self, source: TableContext, place: str, prepare: Prepare) -> None:
        """The newest snapshot of a table here, instead of what is here; `prepare` is called before it can be seen.

        Raises StorageError TS1291, RetryError TS1367, TS1368, TS1396.
        """
        self.check_deletable(place)
        layout, seen = TableLayout(place), self.look(place)
        plan = plan_clone(source, layout)
        copy_files(self.fileio, plan)
        prepare(plan.snapshot)
        held = self.hold(place, seen, DROP)
        self.clear(place, held, {new for _, new in plan.files})
        copy_files(self.fileio, plan)  # those that a DROP of the old table took meanwhile
        put_metadata(self.fileio, layout, plan)
        held.end(encode_schema(plan.schemas[0]))

    def make_free(self, place: str, complete: Complete) -> str | None:
        """End what a process that died has begun; how it ended, None without a hold. Raises RetryError TS1367, TS1368.

        `complete` ends a swap.
        """
        seen = self.look(place)
        said = None if seen is None else find_held(seen.data)
        if said is None:
            return None
        self.check_stale(place)
        self.check_deletable(place)
        held = self.hold(place, seen, str(said.get("then", DROP)))
        then = held.says["then"]
        if then == SWAP:
            complete(held)
        elif then == RESTORE and held.original is not None:
            held.end(held.original)
        elif then == RESTORE:
            held.end(None)
        else:
            self.clear(place, held)
            held.end(None)
        return str(then)

    def check_stale(self, place: str) -> None:
        """Raises RetryError TS1368 while the process that holds the name may be alive."""
        if hold_age_ms(self.fileio, self.runtime, _first(place)) < LEASE_MS:
            raise name_is_held(_first(place))

    def clear(self, place: str, held: NameHold, keep: Collection[str] = ()) -> None:
        """All files but the held one and those of these paths; twice, for what late writers of the table left.

        Raises RetryError TS1396 when the store refuses meanwhile: the hold stays.
        """
        try:
            for _ in range(2):
                for files in self._files(place):
                    held.keep()
                    going = [path for path in files if path != held.path and path not in keep]
                    for start in range(0, len(going), _DELETES):
                        held.keep()
                        self.fileio.delete_many(going[start : start + _DELETES])
        except StorageError as refused:
            raise half_deleted(place, refused) from refused

    def _files(self, place: str) -> Iterator[list[str]]:
        """Those under shared names first, folder by folder, while the hold is young; then of many folders at once."""
        entries = sorted(self.fileio.list(place), key=lambda one: (one.name not in SHARED, one.name))
        yield [one.path for one in entries if not one.is_dir]
        folders = [one for one in entries if one.is_dir]
        for one in folders:
            if one.name in SHARED:
                yield from self._files_in_order(one.path)
        waiting = [one.path for one in folders if one.name not in SHARED]
        while waiting:
            now, waiting = waiting[:_FOLDERS], waiting[_FOLDERS:]
            found = self.fileio.run_together([partial(self.fileio.list, path) for path in now])
            inside = [one for listed in found for one in listed]
            waiting = [one.path for one in inside if one.is_dir] + waiting
            yield [one.path for one in inside if not one.is_dir]

    def _files_in_order(self, place: str) -> Iterator[list[str]]:
        entries = self.fileio.list(place)
        yield [one.path for one in entries if not one.is_dir]
        for one in entries:
            if one.is_dir:
                yield from self._files_in_order(one.path)


def half_deleted(place: str, refused: StorageError) -> RetryError:
    """TS1396: nobody reads the table any more, and not all of its files are gone."""
    return RetryError(
        "TS1396",
        f"the table at {place} is partly deleted, and its name means no table any more",
        why=f"the store refused in the middle: {refused.what}: {refused.why}",
        fix=f"{refused.fix}; {LEASE_MS // 1000} seconds later run the same command again: it deletes the rest",
    )


def _first(place: str) -> str:
    return TableLayout(place).schema_path(0)
