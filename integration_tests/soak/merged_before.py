"""A table without deletion vectors, as another engine leaves it: versions in level 0, which readers merge."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from integration_tests.interop.oracle import Kinded
from integration_tests.interop.ours import KINDS, Ours
from integration_tests.soak.killed_tables import KilledTable
from tests.unit.store.test_changelog import foreign_level_zero

USER, COMMITS, _KEYS = "java", 5, 12


@cache
def versions_before(table: KilledTable) -> tuple[tuple[Kinded, ...], ...]:
    """The changes of snapshot 1, 2 …: a key comes once in each, and never again once it is gone: what follows a removal
    within one merge is a matter of tests/laws.
    """
    chance = random.Random(f"versions of {table.seed}")
    commits, gone = [], set[int]()
    for number in range(COMMITS):
        made: list[Kinded] = []
        for key in sorted({*chance.sample(range(_KEYS), 7)} - gone):
            g = None if chance.random() < 0.2 else number
            row = {"id": key, "day": None, "g": g, "s": None if g is None else key}
            row |= {"a": None if g is None else f"{number}", "b": chance.choice((None, "b"))}
            is_gone = table.takes_retractions and number > 1 and chance.random() < 0.2
            gone |= {key} if is_gone else set()
            made.append(("-D" if is_gone else "+I", row))
        commits.append(tuple(made))
    return tuple(commits)


def leave_versions(table: KilledTable, location: Path) -> None:
    """Create the table with them."""
    ours = Ours()
    ours.create(location, table.schema)
    for changes in versions_before(table):
        kinds = [int(KINDS[kind]) for kind, _ in changes]
        foreign_level_zero(ours.store(location), [dict(row) for _, row in changes], kinds)
