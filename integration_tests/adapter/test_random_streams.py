"""A small dose of random keyed streaming models; `make soak ARGS='models'` gives the whole one."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.soak.random_streams import play_project


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [21, 22])
def test_random_streaming_models_equal_their_meaning(seed: int, tmp_path: Path) -> None:
    """Six random models over random puts, moves, deletes and overwrites of the stream and of a lookup table."""
    counts = play_project(seed, tmp_path)
    assert counts["runs of a model"] == 30
