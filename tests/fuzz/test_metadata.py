"""A short run of the metadata fuzz (make fuzz runs 20,000 of each kind)."""

from __future__ import annotations

import pytest

from tests.fuzz.metadata import KINDS, World, fuzz

MUTATIONS = 60


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One table for all kinds: each change is taken back."""
    return World(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("kind", KINDS)
def test_changed_metadata_is_refused_or_means_the_same(kind: str, world: World) -> None:
    """Whatever the bytes of one metadata file become: the same rows, or an error with a code; nothing else."""
    found = fuzz(world, kind, range(MUTATIONS), seed=7)
    assert found.total() == MUTATIONS
    assert found["refused"] or kind == "hints"
