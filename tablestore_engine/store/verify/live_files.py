"""The live files of one snapshot after the other, each computed from the one before.

Steps      manifests that both snapshots have at the start stay merged → what is behind them is taken back, the last
           one first → the new ones are merged
Cost       the entries of manifests that are new, and of those behind a manifest that is gone
INVARIANT  the same files, and the same errors, as merging all manifests of the snapshot in order (merge_entries).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tablestore_engine.format.manifest import FileKind, ManifestEntry, merge_entry

Identity = tuple[object, ...]


@dataclass(frozen=True)
class FileChanges:
    """Entries of files that are no longer live, and of those that are now."""

    gone: tuple[ManifestEntry, ...]
    came: tuple[ManifestEntry, ...]


@dataclass(frozen=True)
class _Merged:
    """One manifest that is merged: each entry's identity, with what was known of it before."""

    manifest: str
    before: list[tuple[Identity, ManifestEntry | None]] = field(default_factory=list)


class LiveFiles:
    """`rows`: physical rows of all live files. `pending`: DELETE entries without their ADD, first ones first."""

    def __init__(self) -> None:
        self.rows = 0
        self.pending: dict[Identity, ManifestEntry] = {}
        self._known: dict[Identity, ManifestEntry] = {}
        self._merged: list[_Merged] = []
        self._touched: dict[Identity, ManifestEntry | None] = {}

    @property
    def entries(self) -> Mapping[Identity, ManifestEntry]:
        """What is known of each file. REQUIRES that nothing is pending, for them to be the live ones."""
        return self._known

    def move_to(self, manifests: Sequence[str], read: Callable[[str], Sequence[ManifestEntry]]) -> None:
        """Become the files of a snapshot with these manifests, base before delta. Raises FixData TS1132, and what
        `read` raises; the files are then those of the manifests before.
        """
        same = 0
        while (
            same < min(len(self._merged), len(manifests)) and self._merged[same].manifest == manifests[same]
        ):
            same += 1
        while len(self._merged) > same:
            self._take_back(self._merged.pop())
        for name in manifests[same:]:
            self._merge(name, read(name))

    def take_changes(self) -> FileChanges:
        """What changed since the last call."""
        gone, came = [], []
        for key, before in self._touched.items():
            now = self._known.get(key)
            if now != before:
                gone += [before] if before is not None and before.kind is FileKind.ADD else []
                came += [now] if now is not None and now.kind is FileKind.ADD else []
        self._touched.clear()
        return FileChanges(tuple(gone), tuple(came))

    # --------------------------------------------------------------------------------------------------------

    def _merge(self, name: str, entries: Sequence[ManifestEntry]) -> None:
        merged = _Merged(name)
        try:
            for entry in entries:
                key = entry.identity
                known = self._known.get(key)
                after = merge_entry(known, entry)
                merged.before.append((key, known))
                self._put(key, known, after)
        except Exception:
            self._take_back(merged)
            raise
        self._merged.append(merged)

    def _take_back(self, merged: _Merged) -> None:
        for key, before in reversed(merged.before):
            self._put(key, self._known.get(key), before)

    def _put(self, key: Identity, known: ManifestEntry | None, after: ManifestEntry | None) -> None:
        self._touched.setdefault(key, known)
        self.rows += _live_rows(after) - _live_rows(known)
        if after is None:
            self._known.pop(key, None)
        else:
            self._known[key] = after
        if after is not None and after.kind is FileKind.DELETE:
            self.pending[key] = after
        else:
            self.pending.pop(key, None)


def _live_rows(entry: ManifestEntry | None) -> int:
    return entry.file.row_count if entry is not None and entry.kind is FileKind.ADD else 0
