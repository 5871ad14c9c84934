"""Which manifests of its base list a commit rewrites (format.md#manifest-lists): pure choices on their facts.

CHANGE     when manifests are rewritten (options manifest.merge-min-count, manifest.full-compaction-threshold-size,
           manifest.target-file-size)
Steps      1 DELETEs and small manifests have piled up → full merge: all untidy ones, and of the tidy ones those
             that have a file which is gone
           2 else small manifests are joined, DELETEs kept where their ADD lies elsewhere
INVARIANT  a tidy manifest (full size, no DELETE) is written anew only by a full merge that takes a file out of it.
INVARIANT  a DELETE stays behind its ADD: nothing moves over a manifest that has DELETEs.
WHY        a full merge may have to write the whole table's manifests anew. It waits until what piled up is a share of
           the rest, so that the bytes written per commit do not grow with the table: every byte of a commit's own
           manifests costs at most about 2 x (1 + REST_PER_PILE) further ones, whatever the size of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore_engine.format.manifest_list import ManifestFileMeta

REST_PER_PILE = 4  # Paimon has no such limit; with its defaults ours tells from 64 MB of manifests on
_JOINED_MIN = 2


@dataclass(frozen=True)
class MergeLimits:
    """`manifest.target-file-size`, `manifest.full-compaction-threshold-size` and `manifest.merge-min-count`."""

    target_bytes: int
    full_bytes: int
    merge_min_count: int


@dataclass(frozen=True)
class MergeGroup:
    """`kept` as they are and `joined` into new ones behind them, each in list order."""

    kept: tuple[ManifestFileMeta, ...]
    joined: tuple[ManifestFileMeta, ...]


def is_untidy(meta: ManifestFileMeta, limits: MergeLimits) -> bool:
    """Below the target size, or with DELETEs."""
    return _is_small(meta, limits) or meta.num_deleted_files > 0


def is_full_merge_due(metas: Sequence[ManifestFileMeta], limits: MergeLimits) -> bool:
    """Whether there are DELETEs, and the untidy manifests sum to the threshold and to a share of the tidy ones."""
    if len(metas) < _JOINED_MIN or not any(meta.num_deleted_files for meta in metas):
        return False
    piled = sum(meta.file_size for meta in metas if is_untidy(meta, limits))
    rest = sum(meta.file_size for meta in metas) - piled
    return piled >= max(limits.full_bytes, rest // REST_PER_PILE)


def plan_joins(metas: Sequence[ManifestFileMeta], limits: MergeLimits) -> list[MergeGroup]:
    """The list in stretches; the small manifests of a stretch are joined once they are many, or large together.

    A stretch ends before each large manifest with DELETEs, which is kept and first in the next one. Small manifests
    may move behind the other large ones: these only add files.
    """
    stretches: list[list[ManifestFileMeta]] = [[]]
    for meta in metas:
        if meta.num_deleted_files and not _is_small(meta, limits):
            stretches.append([])
        stretches[-1].append(meta)
    return [_group(stretch, limits) for stretch in stretches if stretch]


def _group(stretch: Sequence[ManifestFileMeta], limits: MergeLimits) -> MergeGroup:
    small = [meta for meta in stretch if _is_small(meta, limits)]
    are_many = len(small) >= limits.merge_min_count
    are_large = sum(meta.file_size for meta in small) >= max(limits.full_bytes, limits.target_bytes)
    if len(small) < _JOINED_MIN or not (are_many or are_large):
        return MergeGroup(tuple(stretch), ())
    return MergeGroup(tuple(meta for meta in stretch if not _is_small(meta, limits)), tuple(small))


def _is_small(meta: ManifestFileMeta, limits: MergeLimits) -> bool:
    return meta.file_size < limits.target_bytes
