"""`dbt run` of models that follow a table, killed at any moment: a small dose of `make soak ARGS='followers'`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration_tests.soak.killed_followers import killed_followers

SEED = int(os.environ.get("TABLESTORE_SEED", "20261124"))


@pytest.mark.nightly
def test_killed_anywhere_each_change_comes_once(tmp_path: Path) -> None:
    """Streams, with and without state, changes() and changed_keys: at the end every table is what its input says."""
    counts = killed_followers(SEED, 1, tmp_path)
    assert counts["killed"] > 0
