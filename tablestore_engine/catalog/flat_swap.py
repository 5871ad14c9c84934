"""Put a replacement in the place of a table or view on stores without folders: by copies, under a hold of the name.

    <db>.db/.tablestore/next/<name>/                          the replacement: a whole table
                                   .tablestore-replaced.json  the schema, or view, that it took the place of

Steps      1 copies of its data, manifest and index files in the place: no metadata names them yet  2 hold: nobody reads
           or commits  3 is the name still what the replacement was made for? if not the old schema comes back
           4 the hold says `swap`: decided  5 the old table's files go, the replacement's metadata comes
           6 the hold becomes its schema-0: the name means the new table  7 the view, and the table beside, go
INVARIANT  what a writer committed to the old table before step 2 is seen by step 3; one whose claim was on its way
           gets TS1365: it looks at the identity behind its claim.
CRASH      before 4: the old relation comes back. After it: the next look-up of the name resumes at 5, when the hold is
           stale. A reader meanwhile gets TS1368 (try again); it never sees a part of either.
COST       the store copies each data file once, so that both exist until step 7. No bytes pass through this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from tablestore_engine.catalog.flat_tables import RESTORE, SHARED, SWAP, FlatTables
from tablestore_engine.errors import StoreAnswerUnknown, TablestoreError, Unsupported
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema, decode_schema
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.identity import digest_of, find_identity
from tablestore_engine.store.metadata.name_hold import NameHold, find_held

REPLACED_FILE = ".tablestore-replaced.json"
_PUT = ("schema", "snapshot")


@dataclass(frozen=True)
class FlatSwap:
    """As TableSwap; `state_of` an identity in the place, or (None) of the view."""

    fileio: FileIO
    runtime: Runtime
    place: str
    view: str
    beside: str
    state_of: Callable[[str | None], str | None]

    def take_place(self, expected: str | None) -> bool:
        """Steps 1 to 7; False when the name means something else than `expected`. Raises RetryError TS1367, TS1368."""
        if self.settle():
            return True
        seen = self._flat.look(self.place)
        if seen is None and find_identity(self.fileio, self.place) is not None:
            raise Unsupported(
                "TS1487",
                f"the table at {self.place} cannot be replaced",
                why="its schema-0 is missing, which holds the name meanwhile",
                fix="DROP the old table and build the model again",
            )
        self._flat.check_deletable(self.place)
        for _ in self._copied():
            pass
        held = self._flat.hold(self.place, seen, RESTORE, next=self.beside)
        self.runtime.crash_point("replace.moved")
        if self.state_of(None if seen is None else digest_of(seen.data)) != expected or expected is None:
            held.end(held.original)
            return False
        replaced = self.fileio.read(self.view) if held.original is None else held.original
        self.fileio.replace(f"{self.beside}/{REPLACED_FILE}", replaced)
        held.renew(then=SWAP)
        self.complete(held)
        return True

    def settle(self) -> bool:
        """End a swap that has begun; whether the replacement has its place now. Raises RetryError TS1367, TS1368."""
        seen = self._flat.look(self.place)
        said = None if seen is None else find_held(seen.data)
        if said is not None and "next" in said:
            if self._flat.make_free(self.place, self.complete) == SWAP:
                return True
        elif said is not None:
            return False
        own = find_identity(self.fileio, self.place)
        if own is None or own != find_identity(self.fileio, self.beside):
            return False
        self._tidy()
        return True

    def complete(self, held: NameHold) -> None:
        """Steps 5 to 7. REQUIRES that the hold says `swap`."""
        kept = set()
        for path in self._copied():
            kept.add(path)
            held.keep()
        self._flat.clear(self.place, held, kept)
        for folder in _PUT:
            for status in self.fileio.list(f"{self.beside}/{folder}"):
                target = f"{self.place}/{folder}/{status.name}"
                if target != held.path:
                    held.keep()
                    self.fileio.replace(target, self.fileio.read(status.path))
        held.end(self.fileio.read(TableLayout(self.beside).schema_path(0)))
        self._tidy()

    def is_cleared(self) -> bool:
        """Whether nothing is left of what was replaced."""
        return not self.fileio.exists_file(f"{self.beside}/{REPLACED_FILE}")

    def replaced_schema(self) -> TableSchema | None:
        """Of the table that was replaced; None for a view, and when there is nothing."""
        path = f"{self.beside}/{REPLACED_FILE}"
        try:
            return decode_schema(self.fileio.read(path), path)
        except StoreAnswerUnknown:
            raise
        except TablestoreError:
            return None

    def clear(self) -> None:
        """Forget what was replaced."""
        self.fileio.delete(f"{self.beside}/{REPLACED_FILE}")

    # --------------------------------------------------------------------------------------------------------

    @property
    def _flat(self) -> FlatTables:
        return FlatTables(self.fileio, self.runtime)

    def _copied(self) -> Iterator[str]:
        """Paths in the place, each when its file is there: all but metadata."""
        for status in self.fileio.list(self.beside):
            if status.is_dir and status.name not in SHARED:
                yield from self._copied_from(status.path)

    def _copied_from(self, folder: str) -> Iterator[str]:
        for status in self.fileio.list(folder):
            if status.is_dir:
                yield from self._copied_from(status.path)
                continue
            target = f"{self.place}{status.path[len(self.beside) :]}"
            with suppress(FileExistsError):  # an earlier turn copied it: names are never used twice
                self.fileio.copy(status.path, target)
            yield target

    def _tidy(self) -> None:
        """Step 7."""
        self.fileio.delete(self.view)
        self._flat.drop(self.beside)
