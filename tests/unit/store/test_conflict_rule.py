"""The decision whether a plan may move to a newer base."""

from __future__ import annotations

import pytest

from tablestore_engine.format.index_manifest import DELETION_VECTORS, IndexEntry
from tablestore_engine.store.commit.conflict_rule import ConflictScope, Step, can_rebase, touched_buckets

X0, X1, Y0 = (b"x", 0), (b"x", 1), (b"y", 0)


@pytest.mark.parametrize(
    ("scope", "touched", "may"),
    [
        (ConflictScope(buckets=frozenset([X0])), [X1, Y0], True),
        (ConflictScope(buckets=frozenset([X0])), [X0], False),
        (ConflictScope(partitions=frozenset([b"x"])), [Y0], True),
        (ConflictScope(partitions=frozenset([b"x"])), [X1], False),
        (ConflictScope(everything=True), [Y0], False),
        (ConflictScope(everything=True), [], True),
        (ConflictScope(), [X0, X1, Y0], True),
    ],
)
def test_only_what_the_plan_looked_at_conflicts(
    scope: ConflictScope, touched: list[tuple[bytes, int]], may: bool
) -> None:
    """Other buckets, other partitions and plain appends do not conflict."""
    assert can_rebase(scope, 3, [Step(3, frozenset()), Step(3, frozenset(touched))]) is may


def test_a_newer_schema_conflicts_with_everything() -> None:
    """A snapshot never goes back to an older schema."""
    assert not can_rebase(ConflictScope(), 3, [Step(4, frozenset())])
    assert can_rebase(ConflictScope(), 3, [Step(2, frozenset())])


def test_a_commit_that_only_changed_vectors_touched_its_bucket() -> None:
    """Deletes add no file; the changed index entry gives them away."""
    old = IndexEntry(b"x", 0, DELETION_VECTORS, "index-1", 1, 1)
    new = IndexEntry(b"x", 0, DELETION_VECTORS, "index-2", 1, 1)
    kept = IndexEntry(b"y", 0, DELETION_VECTORS, "index-3", 1, 1)
    assert touched_buckets([], (old, kept), (kept, new)) == {X0}
    assert touched_buckets([], (kept,), ()) == {Y0}
