"""Which staged snapshots of a failed iteration are quarantined, and which tests are answered by it. Pure, no I/O.

CHANGE     which rows of a failed iteration may be quarantined
Rule       1 a test that ran and failed said no to it; one that could not run says nothing
           2 everything that it was built from is out: who reads a parent that never goes out cannot go on there
           3 all that its red tests gate goes as well: else the test still holds back the rest; nothing is quarantined
           4 no batch of a microbatch goes with it: nobody would build that again
           5 its model has rows that it can go on from: never a first build (decision 0047)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dbt.adapters.tablestore.inputs.position_steps import QUERY
from tablestore_engine.spi import STATE_POSITION, TABLE_SOURCE, GateBook, PositionStep, Staged, Verdict, World

Steps = Mapping[str, PositionStep]


@dataclass(frozen=True)
class QuarantineRange:
    """`steps`: of everything that the model remembers; what does not move stands still in them."""

    base: int
    steps: Steps

    @property
    def moves(self) -> Steps:
        """Without what stands still."""
        return {source: step for source, step in self.steps.items() if step.before != step.after}

    def begins_with(self, earlier: Steps) -> bool:
        """Whether the model stands where `earlier` began, as far as that says. What a query remembers is not asked:
        done again, the same run has another name for it.
        """
        found = {source: step.before for source, step in self.steps.items()}
        named = [source for source in earlier if source != STATE_POSITION]
        return bool(named) and all(found.get(source) == earlier[source].before for source in named)


def read_range(base: int | None, known: Mapping[str, str], steps: Steps) -> QuarantineRange | None:
    """`known`: the model's positions now; `steps`: the staged snapshot's. What the query remembers stays. Rule 5."""
    still = {source: PositionStep(text, text) for source, text in known.items()}
    every = {**still, **{source: step for source, step in steps.items() if source != STATE_POSITION}}
    inputs = [step for source, step in every.items() if source.startswith(TABLE_SOURCE)]
    is_first = (
        base is None
        or any(step.is_reset for step in steps.values())
        or any(name in steps and steps[name].before is None for name in (STATE_POSITION, QUERY))
        or all(step.before is None for step in inputs)
    )
    is_elsewhere = any(known.get(source) != step.before for source, step in every.items())
    return None if base is None or is_first or is_elsewhere else QuarantineRange(base, every)


def reds(item: Staged) -> frozenset[str]:
    """Rule 1."""
    return frozenset(test for test, one in item.counted.items() if one.verdict == Verdict.RED)


def pick_quarantined(book: GateBook, world: World, wanted: Collection[Staged]) -> tuple[Staged, ...]:
    """`wanted`: staged snapshots of streaming models of this round with a range."""
    picked = tuple(one for one in wanted if reds(one) and not one.is_out and not one.is_beside)
    while True:
        going = list_going(book, picked)
        left = tuple(one for one in picked if _may_go(one, book, world, going))
        if left == picked:
            return picked
        picked = left


def list_going(book: GateBook, picked: Collection[Staged]) -> tuple[Staged, ...]:
    """With what was built from them, parents first."""
    found = {item.key: item for one in picked for item in book.with_children(one)}
    return tuple(found.values())


def pick_answered(book: GateBook, picked: Collection[Staged]) -> frozenset[str]:
    """Red tests of what goes; one that says no to anything that stays is not answered."""
    going = list_going(book, picked)
    return frozenset(test for one in going for test in reds(one) if _gates_only(test, book, going))


def _may_go(item: Staged, book: GateBook, world: World, going: Collection[Staged]) -> bool:
    """Rules 2 to 4."""
    return (
        all((parent.table, parent.version) in world.past for parent in item.parents)
        and all(_gates_only(test, book, going) for test in reds(item))
        and not any(one.batches for one in book.with_children(item))
    )


def _gates_only(test: str, book: GateBook, going: Collection[Staged]) -> bool:
    keys = {one.key for one in going}
    gated = [one for one in book.staged if test in one.gates and test not in one.abstained and not one.is_out]
    return all(one.key in keys for one in gated)
