"""Find and delete the orphan files of a table: files that nothing references, checked twice before a deletion.

Of whom    killed writers, failed writes, discarded or half-made stages, rollbacks, deleted tags, temporary files, empty
           bucket folders. What a stopped expiry left is named until the next one ends it.
CHANGE     which files are orphans, and when they are deleted
Steps      look    1 all files  2 what is named (referenced_roots)  3 older than the grace and unnamed: the report
           delete  4 Iceberg metadata without states that are gone, then their names into `expire/` (orphan_notice)
                   5 temporary files  6 claims that are on their way end  7 files and names once more: only what is
                   there as before and unnamed as before  8 stages, data, changelog, index, statistics, manifests,
                   Iceberg metadata, empty folders
INVARIANT  a file is deleted only when it was listed before names were read, twice, and was named neither time: a commit
           that ends between is seen, one that comes later is refused (orphan_notice).
INVARIANT  what cannot be read stops everything before step 4: nothing was deleted.
INVARIANT  only in the table of this identity: the guard is asked before each folder.
INVARIANT  a stage is moved out of its name before it goes: whoever begins it anew begins in another folder.
CRASH      anywhere: some orphan files are gone, the others are found again.
PAIMON     other engines' writers are protected by the grace period alone, as there (a day).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tablestore_engine.errors import RetryError
from tablestore_engine.format.capability import check_writable
from tablestore_engine.format.layout import DROPPED_PREFIX, SWEEP_PREFIX, TURN_PREFIX
from tablestore_engine.runtime.moments import DAY_MS
from tablestore_engine.store.iceberg_metadata.iceberg_sync import sync_iceberg
from tablestore_engine.store.metadata.store_clock import store_now_ms
from tablestore_engine.store.orphan_files.referenced_roots import Named, read_named
from tablestore_engine.store.orphan_files.table_files import (
    DROPPED,
    FOLDER,
    ICEBERG,
    KINDS,
    STAGE,
    TEMPORARY,
    IsStranger,
    Listing,
    TableFile,
    is_claim,
    list_table_files,
    newest_in,
)
from tablestore_engine.store.table_context import TableContext

IS_YOUNG = "younger than the grace period"
_LOOKS_MAX, _PAUSE_SECONDS = 30, 0.1


def _nobody(_: object) -> bool:
    return False


@dataclass(frozen=True)
class OrphanRequest:
    """`is_stranger`: whose files are not touched."""

    grace_ms: int = DAY_MS
    delete: bool = False
    is_stranger: IsStranger = _nobody


@dataclass(frozen=True)
class OrphanReport:
    """`found`: orphan files, when `is_deleted` those that are gone; `left`: reason → how many were not touched."""

    found: tuple[TableFile, ...]
    is_deleted: bool
    left: Mapping[str, int] = field(hash=False)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.found)

    @property
    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Kind → (how many, bytes), in a fixed order."""
        counts = Counter(one.kind for one in self.found)
        return {
            kind: (counts[kind], sum(one.size_bytes for one in self.found if one.kind == kind))
            for kind in KINDS
            if counts[kind]
        }


def clean_orphans(context: TableContext, request: OrphanRequest) -> OrphanReport:
    """REQUIRES a context of the main branch that remembers no metadata yet.

    Raises FixData TS1325, TS1326, Unsupported TS11xx, RetryError TS1327, TS1365, OSError.
    """
    check_writable(context.latest_schema())
    now = store_now_ms(context.fileio, context.runtime, context.layout.sweeps_dir)
    cleaning = _Cleaning(context, request, now)
    first = cleaning.look()
    if not request.delete:
        return OrphanReport(first.orphans, is_deleted=False, left=first.left)
    return cleaning.delete(first)


def _is_named(one: TableFile, named: Named, dead: Collection[str]) -> bool:
    """Iceberg metadata that this table did not write counts as named."""
    if one.kind == STAGE:
        return one.path not in dead
    if one.kind == ICEBERG:
        folder = one.path.rpartition("/")[0]
        return folder not in named.iceberg or one.path in named.iceberg[folder]
    return one.name in named.files


@dataclass(frozen=True)
class _Look:
    orphans: tuple[TableFile, ...]
    left: Mapping[str, int]


@dataclass(frozen=True)
class _Cleaning:
    context: TableContext
    request: OrphanRequest
    now_ms: int

    def look(self) -> _Look:
        """Steps 1 to 3: files first."""
        listing = self._list()
        return self._choose(listing, read_named(self.context, self._is_forgotten(listing)))

    def delete(self, first: _Look) -> OrphanReport:
        """Steps 4 to 8."""
        context = self.context
        self._forget_sweeps()
        if not first.orphans:
            return OrphanReport((), is_deleted=True, left=first.left)
        context.guard.check()
        sync_iceberg(context)
        names = {one.name for one in first.orphans}
        with context.sweeps.begun(context.runtime.new_uuid(), names):
            context.runtime.crash_point("orphans.begun")
            gone = self._delete_files(one for one in first.orphans if one.kind == TEMPORARY)
            self._wait_for_claims()
            second = self.look()
            still = set(second.orphans) & set(first.orphans)
            context.runtime.crash_point("orphans.looked")
            stages = (one for one in still if one.kind in (STAGE, DROPPED))
            gone += [one for one in stages if self._delete_stage(one)]
            gone += self._delete_files(one for one in still if one.kind not in (STAGE, DROPPED, FOLDER))
            gone += self._delete_folders(one for one in still if one.kind == FOLDER)
        return OrphanReport(tuple(gone), is_deleted=True, left=second.left)

    # ---- look --------------------------------------------------------------------------------------------------

    def _list(self) -> Listing:
        context = self.context
        return list_table_files(
            context.fileio, context.layout, context.latest_schema(), self.request.is_stranger
        )

    def _is_old(self, file: TableFile) -> bool:
        return self.now_ms - file.modified_ms >= self.request.grace_ms

    def _is_forgotten(self, listing: Listing) -> Mapping[str, bool]:
        """Branch path → whether nobody touched anything in it within the grace period."""
        return {path: self._is_old(one) for path, one in listing.files.items() if one.kind == STAGE}

    def _choose(self, listing: Listing, named: Named) -> _Look:
        left, found = Counter(listing.passed_by), []
        dead = {self.context.layout.branch_dir(branch) for branch in named.dead_stages}
        for one in listing.files.values():
            if _is_named(one, named, dead) or one.kind == FOLDER:
                continue
            if self._is_old(one):
                found.append(one)
            else:
                left[IS_YOUNG] += 1
        going = {one.path for one in found}
        for path, inside in listing.inside.items():
            if self._is_old(listing.files[path]) and going.issuperset(inside):
                found.append(listing.files[path])
                going.add(path)
        found.sort(key=lambda one: (KINDS.index(one.kind), one.path))
        return _Look(tuple(found), left)

    # ---- delete ------------------------------------------------------------------------------------------------

    def _wait_for_claims(self) -> None:
        """Step 6. Raises RetryError TS1327."""
        for _ in range(_LOOKS_MAX):
            waiting = [one for one in self._list().files.values() if is_claim(one) and not self._is_old(one)]
            if not waiting:
                return
            self.context.runtime.sleep(_PAUSE_SECONDS)
        raise RetryError(
            "TS1327",
            f"orphan files of {self.context.layout.location} are not deleted",
            why=f"a commit is on its way: {waiting[0].path} is there",
            fix="run it again; after a kill it goes with the others once it is older than the grace",
        )

    def _delete_files(self, files: Iterable[TableFile]) -> list[TableFile]:
        ordered = sorted(files, key=lambda one: (KINDS.index(one.kind), one.path))
        if not ordered:
            return []
        with self.context.runtime.progress.begin(
            f"{self.context.layout.name}: deleting files", "files"
        ) as meter:
            meter.expect(len(ordered))
            for _, group in itertools.groupby(ordered, key=lambda one: one.path.rpartition("/")[0]):
                paths = [one.path for one in group]
                self.context.guard.check()
                self.context.fileio.delete_many(paths)
                meter.advance(len(paths))
        return ordered

    def _delete_folders(self, folders: Iterable[TableFile]) -> list[TableFile]:
        """Empty ones, the deepest first; one that is not empty any more stays."""
        gone = []
        for one in sorted(folders, key=lambda folder: folder.path, reverse=True):
            self.context.guard.check()
            with suppress(OSError):
                self.context.fileio.delete(one.path)
                gone.append(one)
        return gone

    def _delete_stage(self, stage: TableFile) -> bool:
        """Whether it is gone; one that somebody has begun anew since we looked gets its name back."""
        context, fileio = self.context, self.context.fileio
        context.guard.check()
        aside = stage.path
        folders = fileio.folders
        if stage.kind == STAGE and folders is None:
            return False  # nobody can look at it where no writer reaches it
        if stage.kind == STAGE and folders is not None:
            aside = f"{context.layout.branches_dir}/{DROPPED_PREFIX}{context.runtime.new_uuid()}"
            folders.rename(stage.path, aside)
            for status in folders.list_hidden(context.layout.branches_dir):
                if status.path == aside and newest_in(fileio, status)[0] != stage.modified_ms:
                    folders.rename(aside, stage.path)
                    return False
        fileio.delete_tree(aside)
        return True

    def _forget_sweeps(self) -> None:
        """Of cleanings that died; turns of writers that died."""
        for status in self.context.fileio.list(self.context.layout.sweeps_dir):
            is_old = self.now_ms - status.modified_ms >= self.request.grace_ms
            if status.name.startswith((SWEEP_PREFIX, TURN_PREFIX)) and is_old:
                self.context.fileio.delete(status.path)
