"""Which manifests a commit writes anew: thresholds, what stays, and what a DELETE may never move over."""

from __future__ import annotations

import pytest

from tablestore_engine.format.data_file import EMPTY_STATS
from tablestore_engine.format.manifest_compaction import (
    REST_PER_PILE,
    MergeGroup,
    MergeLimits,
    is_full_merge_due,
    plan_joins,
)
from tablestore_engine.format.manifest_list import ManifestFileMeta

LIMITS = MergeLimits(target_bytes=8, full_bytes=16, merge_min_count=30)


def _metas(*sizes: int, deletes: tuple[int, ...] = ()) -> list[ManifestFileMeta]:
    """One manifest per size; those whose index is in `deletes` have a DELETE entry."""
    return [
        ManifestFileMeta(f"m{i}", size, 1, int(i in deletes), EMPTY_STATS, 0) for i, size in enumerate(sizes)
    ]


def _joins(metas: list[ManifestFileMeta]) -> list[tuple[list[int], list[int]]]:
    """Places of (kept, joined) in each stretch."""
    return [
        ([metas.index(meta) for meta in group.kept], [metas.index(meta) for meta in group.joined])
        for group in plan_joins(metas, LIMITS)
    ]


def test_few_small_manifests_stay() -> None:
    """Below both thresholds nothing is rewritten."""
    metas = _metas(*[1] * 15)
    assert plan_joins(metas, LIMITS) == [MergeGroup(tuple(metas), ())]
    assert plan_joins([], LIMITS) == []


def test_many_small_manifests_are_joined() -> None:
    """At merge-min-count the small ones are joined in order; those of full size stay."""
    metas = _metas(9, *[0] * 15, 8, *[0] * 15)
    assert _joins(metas) == [([0, 16], [*range(1, 16), *range(17, 32)])]


def test_small_manifests_of_the_threshold_size_are_joined() -> None:
    """Few but large small ones are joined at full-compaction-threshold-size; one byte less, and they stay."""
    assert _joins(_metas(9, 7, 7, 2)) == [([0], [1, 2, 3])]
    assert _joins(_metas(9, 7, 7, 1)) == [([0, 1, 2, 3], [])]


def test_a_low_threshold_joins_no_less_than_a_full_manifest() -> None:
    """Else a manifest that stays below its target would be written anew at every commit."""
    low = MergeLimits(target_bytes=8, full_bytes=1, merge_min_count=30)
    assert plan_joins(_metas(4, 1), low)[0].joined == ()
    assert len(plan_joins(_metas(4, 4), low)[0].joined) == 2


def test_nothing_moves_over_a_large_manifest_with_deletes() -> None:
    """The ADD of its DELETE may lie in a small one in front of it: small ones are joined on their side of it."""
    metas = _metas(*[0] * 30, 9, *[0] * 29, deletes=(30,))
    assert _joins(metas) == [([], list(range(30))), (list(range(30, 60)), [])]


def test_a_full_merge_needs_deletes_and_the_threshold() -> None:
    """Small manifests and those with DELETEs count; without any DELETE there is nothing to settle."""
    assert is_full_merge_due(_metas(9, 7, 9, deletes=(2,)), LIMITS)
    assert not is_full_merge_due(_metas(9, 6, 9, deletes=(2,)), LIMITS)
    assert not is_full_merge_due(_metas(9, 7, 9), LIMITS)


def test_a_full_merge_of_a_large_table_waits_for_a_share_of_it() -> None:
    """What it may rewrite is at most REST_PER_PILE times what piled up, however large the table is."""
    rest = [8] * (2 * REST_PER_PILE)
    assert is_full_merge_due(_metas(*rest, 9, 7, deletes=(len(rest),)), LIMITS)
    rest *= 2
    assert not is_full_merge_due(_metas(*rest, 9, 7, deletes=(len(rest),)), LIMITS)
    assert is_full_merge_due(_metas(*rest, 9, *[7] * 4, deletes=(len(rest),)), LIMITS)


@pytest.mark.parametrize("deletes", [(), (0,)])
def test_one_manifest_is_never_merged_with_itself(deletes: tuple[int, ...]) -> None:
    """A single manifest, small or with deletes, above every threshold, is left alone."""
    metas = _metas(100, deletes=deletes)
    limits = MergeLimits(target_bytes=200, full_bytes=1, merge_min_count=1)
    assert plan_joins(metas, limits) == [MergeGroup(tuple(metas), ())]
    assert not is_full_merge_due(metas, limits)
