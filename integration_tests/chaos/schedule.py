"""What happens when: every choice of a run, from its seed alone. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from integration_tests.chaos.attacker import Trap
from integration_tests.chaos.brokers import NodeFault, NodeStrike, Whom
from integration_tests.chaos.proxy import OF_REQUESTS, Fault
from integration_tests.chaos.tables import KINDS, Kind

_WRITES = (
    "write.data_files",
    "commit.manifests",
    "commit.claimed",
    "commit.done",
    "stage.claimed",
    "stage.published",
)
_SENDS = ("log.begin", "log.rows", "log.marker", "log.committed")
_EARLY = ("log.early", "log.repairs", "log.repairs", "log.marker", "log.committed", "log.begin", "log.rows")
_RARE = frozenset(
    {"log.repairs", "log.early", "stage.claimed", "stage.published"}
)  # one process seldom comes by twice
AIMS: Mapping[bool, Sequence[str]] = {False: (*_WRITES, *_SENDS), True: (*_WRITES, *_EARLY)}


@dataclass(frozen=True)
class Size:
    """`seconds`: the longest a wave lasts; other numbers are shares of waves, or of lives; `worker_kills`: of Spark."""

    rounds: int
    waves: int
    seconds: float
    broker_kills: float
    full_disks: float = 0.15
    bad_weather: float = 0.6
    traps: float = 0.6
    publishers: float = 0.6
    worker_kills: int = 0
    begins_calm: bool = False
    brokers: int = 1
    strikes: float = 0.7


_SOON = 4.0
# a wave ends with its acks: its longest is for machines that are busy with something else
SMALL = Size(rounds=2, waves=2, seconds=10.0, broker_kills=0.25, begins_calm=True)
FULL = Size(rounds=4, waves=3, seconds=4.0, broker_kills=0.25, worker_kills=20)
# a node that is away is missed after 3 s, and a follower that cannot be reached after 5
_STRIKE_SECONDS = 12.0


@dataclass(frozen=True)
class Life:
    """Of one process: until its trap shuts, or it is killed `seconds` after its start; the wave's end ends all.

    `gives_up`: what the process before has begun is not done again.
    """

    trap: Trap | None
    seconds: float
    gives_up: bool = False


@dataclass(frozen=True)
class Wave:
    """`acks`: how many are enough; `rate` and `faults` of the network; `wakes`: who was stopped before goes on.
    `strikes`: against nodes.

    `lives`: of each process of a kind, one after the other; the number behind the writers is a publisher.
    `broker_after`: when the broker is killed; `fill_after`: when the disk is full for a while, None for never.
    """

    kinds: tuple[Kind, ...]
    acks: int
    seconds: float
    lives: Mapping[tuple[str, int], tuple[Life, ...]]
    rate: float = 0.0
    faults: tuple[Fault, ...] = ()
    broker_after: float | None = None
    fill_after: float | None = None
    cut_after: float | None = None
    wakes: bool = True
    stagger: float = 0.05
    strikes: tuple[NodeStrike, ...] = ()


def plan_wave(seed: int, epoch: int, number: int, size: Size) -> Wave:
    """Some tables; each is met often, and none always."""
    chance = random.Random(f"{seed}/{epoch}/{number}")
    kinds = tuple(chance.sample(KINDS, chance.randint(3, len(KINDS)) if number else len(KINDS)))
    is_calm = number == 0 and size.begins_calm
    is_bad = chance.random() < size.bad_weather and (number > 0 or not size.begins_calm)
    kills_broker = chance.random() < size.broker_kills
    plan = _LivesPlan(chance, size, kills_broker=kills_broker)
    return Wave(
        kinds=kinds,
        acks=chance.randint(5, 10 * len(kinds)),
        seconds=size.seconds
        if size.brokers == 1
        else 2 * size.seconds,  # clients of three take longer to begin
        lives={place: lives for kind in kinds for place, lives in plan.of_kind(kind)},
        rate=chance.choice((0.03, 0.1, 0.25)) if is_bad else 0.0,
        faults=tuple(chance.sample(OF_REQUESTS, chance.randint(1, len(OF_REQUESTS)))) if is_bad else (),
        broker_after=_broker_after(chance, size, kills_broker=kills_broker),
        fill_after=chance.uniform(0.1, 1.0) if chance.random() < size.full_disks else None,
        cut_after=chance.uniform(0.2, _SOON) if chance.random() < 0.2 else None,
        wakes=chance.random() < 0.7,
        stagger=chance.choice((0.0, 0.01, 0.1)),
        strikes=() if is_calm else tuple(_strikes(chance, size)),
    )


def _broker_after(chance: random.Random, size: Size, *, kills_broker: bool) -> float | None:
    """Of three brokers a strike says more."""
    return chance.uniform(0.1, _SOON) if kills_broker and size.brokers == 1 else None


def _strikes(chance: random.Random, size: Size) -> Iterator[NodeStrike]:
    """One at a time: with two at once on three nodes a wave is mostly waiting."""
    if size.brokers > 1 and chance.random() < size.strikes:
        fault = chance.choice(tuple(NodeFault))
        yield NodeStrike(
            chance.uniform(0.1, _SOON),
            fault,
            chance.choice(tuple(Whom)),
            chance.uniform(0.5, _STRIKE_SECONDS),
        )


@dataclass
class _LivesPlan:
    """Which processes there are, and how each of them ends."""

    chance: random.Random
    size: Size
    kills_broker: bool

    def of_kind(self, kind: Kind) -> Iterator[tuple[tuple[str, int], tuple[Life, ...]]]:
        """Its writers, and maybe a publisher."""
        publishes = self.chance.random() < self.size.publishers
        for number in range(kind.writers + publishes):
            points = [
                one for one in AIMS[kind.is_eventual] if number < kind.writers or one.startswith("log.")
            ]
            yield (kind.name, number), tuple(self._life(points) for _ in range(self.chance.randint(1, 4)))

    def _life(self, points: Sequence[str]) -> Life:
        seconds = self.chance.uniform(0.3, _SOON)
        gives_up = self.chance.random() < 0.5
        if self.chance.random() > self.size.traps:
            return Life(None, seconds, gives_up)
        action = self.chance.choice(["die"] * 9 + ["stop"])
        if self.kills_broker and self.chance.random() < 0.15:
            action = self.chance.choice(("broker", "broker-and-die"))
        point = self.chance.choice(points)
        nth = 1 if point in _RARE else self.chance.randint(1, 3)
        return Life(Trap(point, nth, action), self.size.seconds, gives_up)
