"""P3 as a law: whoever writes, loses or dies, every marker keeps its promise, and the topic becomes the table."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doses import case_rows, examples
from tests.unit.log.early_world import Dead, Process, World, install

KEYS = 6


class Chaos:
    """At each pause, now and then: another process acts, or the one that paused dies. All by one seed."""

    def __init__(self, seed: int, *, wild: float, deadly: float) -> None:
        self.random = random.Random(seed)
        self.wild, self.deadly = wild, deadly
        self.world = World(
            buckets=self.random.choice([1, 2]),
            pause=self.pause,
            chunk_rows=self.random.choice([1, 2, 1_000]),
            keys_max=self.random.choice([1, 3, 1_000]),
            is_late=lambda: not self.is_calm and self.random.random() < self.wild / 2,
        )
        self.is_calm = False
        self.depth = self.made = 0
        self.processes = [self._process() for _ in range(3)]

    def _process(self) -> Process:
        self.made += 1
        return Process(self.world, f"p{self.made}")

    def pause(self, _: str) -> None:
        """Where something else may happen."""
        if self.is_calm:
            return
        if self.random.random() < 0.1:
            self.world.send_late()
        if self.random.random() < self.deadly:
            raise Dead
        if self.depth < 3 and self.random.random() < self.wild:
            self.act()

    def act(self) -> None:
        """One process does one thing, wherever it is in the middle of another."""
        self.depth += 1
        try:
            at = self.random.randrange(len(self.processes))
            process = self.processes[at]
            try:
                if self.random.random() < 0.6:
                    edits = {
                        self.random.randrange(KEYS): self.random.choice(
                            [None, f"v{self.random.randrange(99)}"]
                        )
                        for _ in range(self.random.randint(1, 4))
                    }
                    process.write(edits, is_acknowledged=self.random.random() < 0.9)
                if self.random.random() < 0.7:
                    process.publish()
            except Dead:
                self.processes[at] = self._process()
        finally:
            self.depth -= 1


@pytest.mark.parametrize(
    ("wild", "deadly"), case_rows([(0.0, 0.0), (0.05, 0.0), (0.0, 0.03), (0.05, 0.02)], 2)
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(20, 60), deadline=None)
def test_every_marker_keeps_its_promise(wild: float, deadly: float, seed: int) -> None:
    """Up to three processes, interleaved, killed anywhere, chunks of one row, portions of one record."""
    with pytest.MonkeyPatch.context() as patch:
        chaos = Chaos(seed, wild=wild, deadly=deadly)
        install(patch, chaos.world)
        for _ in range(8):
            chaos.act()
        chaos.is_calm = True
        while chaos.world.late:
            chaos.world.send_late()
        Process(chaos.world, "last").publish()
        chaos.world.check_end()
