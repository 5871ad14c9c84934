"""Two to four processes on one name, switched and killed at any file operation: what is left is what a dict says.

`TABLESTORE_SEEDS=2000:2500` runs more seeds; a failing one is in the test's name and replays exactly.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.concurrency.interleaving import Actor, World
from tests.doses import cases, examples

MIXES = {
    "writers": ("write", "write", "compact", "read"),
    "schemas": ("write", "widen", "alter", "read"),
    "stages": ("stage", "compact", "stage", "write", "alter"),
    "rollbacks": ("write", "rollback", "compact", "read"),
    "recreated": ("write", "recreate", "alter", "read"),
    "everything": ("write", "widen", "alter", "stage", "compact", "rollback", "recreate", "read"),
}
FLAT_MIXES = {
    "recreated": ("write", "recreate", "alter", "read"),
    "recreated often": ("write", "write", "recreate", "recreate"),
    "expired": ("write", "recreate", "expire", "tag", "write"),
    "cloned": ("write", "recreate", "clone", "read", "clone"),
    "everything": ("write", "widen", "alter", "stage", "compact", "rollback", "recreate", "tag", "clone"),
}
FIRST, _, LAST = os.environ.get("TABLESTORE_SEEDS", f"1:{examples(2, 3)}").partition(":")


@pytest.mark.parametrize("kill_rate", [0.0, 0.01], ids=["alive", "killed"])
@pytest.mark.parametrize("mix", sorted(MIXES))
@pytest.mark.parametrize("seed", range(int(FIRST), int(LAST)))
def test_what_is_left_is_what_a_dict_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, mix: str, kill_rate: float
) -> None:
    """Rows of every snapshot, no gap, nothing acknowledged lost, nothing refused there, columns as named."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the machine does not lose power here
    world = World(tmp_path, seed * 100 + sorted(MIXES).index(mix), kill_rate)
    actors = [Actor(world, f"p{number}", MIXES[mix], count=3) for number in range(2 + seed % 3)]
    world.turns.run({actor.name: actor.run for actor in actors})
    world.judge()


@pytest.mark.parametrize("kill_rate", cases([0.0, 0.01], 1), ids=["alive", "killed"])
@pytest.mark.parametrize("mix", sorted(FLAT_MIXES))
@pytest.mark.parametrize("seed", range(int(FIRST), int(LAST)))
def test_a_store_without_folders_is_what_a_dict_says(
    tmp_path: Path, seed: int, mix: str, kill_rate: float
) -> None:
    """The same where a claim may land in the table that was created meanwhile: names are dropped under a hold."""
    world = World(tmp_path, seed * 100 + sorted(FLAT_MIXES).index(mix), kill_rate, is_flat=True)
    actors = [Actor(world, f"p{number}", FLAT_MIXES[mix], count=3) for number in range(2 + seed % 3)]
    world.turns.run({actor.name: actor.run for actor in actors})
    world.judge()
