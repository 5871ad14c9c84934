"""Which manifests of the snapshot before stay, and which files go into new ones: the decision, without a byte.

Steps      a manifest whose files are all wanted stays · of the others, live files go into new manifests with what is
           added · too many small ones are merged into these
INVARIANT  every wanted file is in exactly one manifest, every other file in none: that is the whole of correctness.
Cost       a commit writes what it adds, and manifests that lose a file: at most FILES_MAX entries for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tablestore_engine.iceberg.manifest_files import IcebergFile, ManifestFacts

FILES_MAX = 1000  # of a manifest: a commit that removes one of its files writes the others again
MANIFESTS_MAX = 16  # small ones of a kind


@dataclass(frozen=True)
class Manifest:
    facts: ManifestFacts
    files: tuple[IcebergFile, ...]


@dataclass(frozen=True)
class ManifestPlan:
    """`kept`: as they are; `new`: files of each manifest to write, added ones first."""

    kept: tuple[Manifest, ...]
    new: tuple[tuple[IcebergFile, ...], ...]


def plan_manifests(
    before: Iterable[Manifest], is_wanted: Callable[[IcebergFile], bool], added: Sequence[IcebergFile]
) -> ManifestPlan:
    """Of one kind of content. REQUIRES that no added file is one that is wanted of before."""
    kept: list[Manifest] = []
    loose: list[IcebergFile] = []
    for one in before:
        live = [file for file in one.files if is_wanted(file)]
        if len(live) == len(one.files):
            kept.append(one)
        else:
            loose += live
    small = [one for one in kept if len(one.files) < FILES_MAX]
    if len(small) + bool(added or loose) > MANIFESTS_MAX:
        merged = {one.facts.path for one in small}
        kept = [one for one in kept if one.facts.path not in merged]
        loose = [*(file for one in small for file in one.files), *loose]
    files = (*added, *loose)
    new = tuple(files[first : first + FILES_MAX] for first in range(0, len(files), FILES_MAX))
    return ManifestPlan(tuple(one for one in kept if one.files), new)
