"""What stands between a claim and a deletion of orphan files: a file is never deleted that a later snapshot names.

    expire/sweep-<uuid>   names that are going, one a line

Rule       who deletes: 1 the names into `expire/`  2 no claim is on its way any more (its temporary file is gone)
           3 what snapshots name, read again  4 delete
           who claims: a temporary file in place  b look for names of his, then for his files  c link
           When b finds no name, and his files, then a was before 1: 2 waits for c, and 3 sees it. Else he is refused.
WHY        age alone protects a writer up to the grace period; one that is slower, or slept, must not lose its rows.
INVARIANT  a temporary file of a claim that is older than the grace goes in step 2: its link cannot be made any more.
CRASH      names of somebody who died stay until the next cleaning; they keep nobody from names that are new.
PAIMON     other engines know nothing of it: for their writers the grace period is what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.fileio.base import FileIO, FileStatus
from tablestore_engine.format.layout import SWEEP_PREFIX, TableLayout
from tablestore_engine.format.manifest import FileKind
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.metadata.manifests import ManifestStore
from tablestore_engine.store.metadata.schemas import SchemaStore


def _unseen(_: Sequence[FileStatus]) -> None:
    """Nobody else wants the listing."""


@dataclass(frozen=True)
class Sweeps:
    """Of one branch of a table; what is going is told to all of them."""

    fileio: FileIO
    layout: TableLayout
    manifests: ManifestStore
    schemas: SchemaStore

    def check(self, snapshot: Snapshot, base: Snapshot | None) -> None:
        """Step b. REQUIRES that the temporary file of the claim is there, and `base`. Raises RetryError TS1328."""
        lost = self.find_lost(snapshot, base)
        if lost is not None:
            raise self.too_late(lost)

    def find_lost(
        self, snapshot: Snapshot, base: Snapshot | None, see: Callable[[Sequence[FileStatus]], None] = _unseen
    ) -> str | None:
        """The name of a file of the claim that is going or gone, None when all are safe. REQUIRES as `check`.

        Names are looked for before files: who deleted between the two had announced it before. `see` gets the listing
        first.
        """
        return self._find_lost(self._new_paths(snapshot, base), see)

    def check_paths(self, paths: Iterable[str]) -> None:
        """Of a claim that is no snapshot: none of its files is going or gone. Raises RetryError TS1328."""
        lost = self._find_lost(paths)
        if lost is not None:
            raise self.too_late(lost)

    def _find_lost(
        self, files: Iterable[str], see: Callable[[Sequence[FileStatus]], None] = _unseen
    ) -> str | None:
        found = self.fileio.list(self.layout.sweeps_dir)
        see(found)
        paths = {path.rpartition("/")[2]: path for path in files}
        for one in found:
            if one.name.startswith(SWEEP_PREFIX):
                for name in self._read(one.path) & paths.keys():
                    return name
        there = self.fileio.run_together([partial(self.fileio.exists_file, path) for path in paths.values()])
        return next((name for name, is_there in zip(paths, there, strict=True) if not is_there), None)

    def too_late(self, lost: str) -> RetryError:
        """TS1328: the commit's files were taken for orphan files."""
        return RetryError(
            "TS1328",
            f"a commit to {self.layout.location} came too late",
            why=f"its file {lost} was taken for an orphan file: in no snapshot, and older than the grace period "
            "of `tablestore orphans --delete`",
            fix="run it again; give such a cleaning more grace than your slowest write takes",
        )

    @contextmanager
    def begun(self, uuid: str, names: Collection[str]) -> Iterator[None]:
        """Step 1; the names are gone when the block ends, in whatever way."""
        path = self.layout.sweep_path(uuid)
        self.fileio.mkdirs(self.layout.sweeps_dir)
        try:
            self.fileio.create_exclusive(path, "\n".join(sorted(names)).encode())
            yield
        finally:
            self.fileio.delete(path)

    def _read(self, path: str) -> set[str]:
        try:
            return set(self.fileio.read(path).decode().split("\n"))
        except NotFound:
            return set()  # done meanwhile

    def _new_paths(self, snapshot: Snapshot, base: Snapshot | None) -> Iterator[str]:
        """What the claim brings. What its base names is safe by that: else a claim would cost as much as its table."""
        lists = () if base is None else (base.base_manifest_list, base.delta_manifest_list)
        known = set() if base is None else set(self._metadata_of(base, lists))
        of_changelog = snapshot.changelog_manifest_list
        new = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
        new += [] if of_changelog is None else [of_changelog]
        yield from (path for path in self._metadata_of(snapshot, new) if path not in known)
        manifests, layout = self.manifests, self.layout
        spec = PartitionSpec.of(self.schemas.get(snapshot.schema_id))
        changes = (
            *manifests.read_entries(snapshot.delta_manifest_list),
            *manifests.read_changelog_entries(snapshot),
        )
        for entry in changes:
            if entry.kind is FileKind.ADD and entry.file.external_path is None:
                place = spec.path_of_bytes(entry.partition)
                yield from (layout.data_file(place, entry.bucket, name) for name in entry.file.file_names)

    def _metadata_of(self, snapshot: Snapshot, lists: Sequence[str]) -> Iterator[str]:
        """Lists, their manifests, and index files."""
        manifests, layout = self.manifests, self.layout
        for name in lists:
            yield layout.manifest_path(name)
            yield from (layout.manifest_path(meta.file_name) for meta in manifests.read_list(name))
        if snapshot.index_manifest is not None:
            yield layout.manifest_path(snapshot.index_manifest)
        for one in manifests.read_index(snapshot.index_manifest):
            if one.external_path is None:
                yield layout.index_path(one.file_name)
