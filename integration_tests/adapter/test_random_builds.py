"""A few projects of random_builds.py; run more of them with `python -m integration_tests.adapter.random_builds`."""

from __future__ import annotations

import pytest

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.random_builds import play
from tests.doses import examples


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 3))])
def test_random_project_shows_what_its_green_tests_have_read(shop: Shop, seed: int) -> None:
    """After each command readers see of every node the rows that the oracle computes, and nothing of a red build."""
    assert play(seed, shop, commands=examples(3, 4)) == []
