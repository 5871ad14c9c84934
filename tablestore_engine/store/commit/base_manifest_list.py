"""The base list of a new snapshot: manifests of the one before, tidied up when it is time (format.md#manifest-lists).

Steps      full merge due → untidy manifests and tidy ones with a file that is gone, written anew behind the rest
           else → small manifests joined, stretch by stretch (format.manifest_compaction decides both)
INVARIANT  the live files of the result are those of the input; an ADD and its DELETE go only together.
CRASH      new names that nothing refers to yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tablestore_engine.format.manifest import FileKind, ManifestEntry, merge_entries
from tablestore_engine.format.manifest_compaction import MergeLimits, is_full_merge_due, is_untidy, plan_joins
from tablestore_engine.format.manifest_list import ManifestFileMeta

Metas = Sequence[ManifestFileMeta]
ReadManifest = Callable[[str], Sequence[ManifestEntry]]
WriteManifests = Callable[[Iterable[ManifestEntry]], list[ManifestFileMeta]]


def merge_manifests(
    metas: Metas, limits: MergeLimits, read: ReadManifest, write: WriteManifests
) -> list[ManifestFileMeta]:
    """The manifests of the new list; those that are not in `metas` were written by this call."""
    if is_full_merge_due(metas, limits):
        return _merge_fully(metas, limits, read, write)
    found: list[ManifestFileMeta] = []
    for group in plan_joins(metas, limits):
        found += group.kept
        if group.joined:
            found += write(_merged(group.joined, read))
    return found


def _merge_fully(
    metas: Metas, limits: MergeLimits, read: ReadManifest, write: WriteManifests
) -> list[ManifestFileMeta]:
    untidy = [meta for meta in metas if is_untidy(meta, limits)]
    gone = {entry.identity for entry in _merged(untidy, read) if entry.kind is FileKind.DELETE}
    kept: list[ManifestFileMeta] = []
    rewritten: list[ManifestFileMeta] = []
    for meta in metas:
        if is_untidy(meta, limits) or any(entry.identity in gone for entry in read(meta.file_name)):
            rewritten.append(meta)
        else:
            kept.append(meta)
    return [*kept, *write(_merged(rewritten, read))]


def _merged(metas: Metas, read: ReadManifest) -> Iterable[ManifestEntry]:
    """Their entries with every ADD and its DELETE cancelled; a DELETE of a file that lies elsewhere stays."""
    return merge_entries(entry for meta in metas for entry in read(meta.file_name)).values()
