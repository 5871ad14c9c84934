"""Two to four processes on one name, switched and killed at any file operation: what is left is what a dict says.

`TABLESTORE_SEEDS=2000:2500` runs more seeds; a failing one is in the test's name and replays exactly.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.concurrency.interleaving import Actor, World

MIXES = {
    "writers": ("write", "write", "compact", "read"),
    "schemas": ("write", "widen", "alter", "read"),
    "stages": ("stage", "compact", "stage", "write", "alter"),
    "rollbacks": ("write", "rollback", "compact", "read"),
    "recreated": ("write", "recreate", "alter", "read"),
    "everything": ("write", "widen", "alter", "stage", "compact", "rollback", "recreate", "read"),
}
FIRST, _, LAST = os.environ.get("TABLESTORE_SEEDS", "1:3").partition(":")


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
