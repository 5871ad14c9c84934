"""What each strategy of a `changed_keys` model takes, from runs that were made at different times on a busy machine.

CHANGE     how seconds of earlier runs become an estimate
Model      logarithms: seconds of a run = what its strategy takes + the load of the machine + noise. Neighbours in time
           share the load. Before any run the strategies are guessed by sizes: their ratio roughly, their level hardly.
           The estimate is the mean of what strategies take, given the runs (Gaussian, so one linear system).
INVARIANT  pure; a strategy without runs is estimated by its guess and by what the others' runs say of the level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

LEVEL, RATIO = 1.5, 1.1  # deviations of the guesses: of all strategies together, and of each one
LOAD, NOISE = 0.35, 0.12  # deviations of the load, and of one run besides
STAYS = 0.85  # of the load, from one run to the next
COLD = 0.5  # the first run of a model loads classes, and waits for Spark
OUTLIER = 2.0  # times the fastest run of a strategy: what took longer had to wait for something
_SHORTEST = 0.001  # seconds


@dataclass(frozen=True)
class Sample:
    """A run of strategy `way`: `number` in the order of runs, `seconds`."""

    way: str
    number: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """`seconds`: likely; `deviation`: of its logarithm."""

    seconds: float
    deviation: float


def estimates(guesses: Mapping[str, float], samples: Sequence[Sample]) -> dict[str, Estimate]:
    """Of each strategy with a guess (seconds); `samples` are runs of these."""
    ways = list(guesses)
    means = {way: log(max(guesses[way], _SHORTEST)) for way in ways}
    rows = [[_shared(one.way, other.way) + _noise(one, other) for other in samples] for one in samples]
    most = {way: OUTLIER * min(one.seconds for one in samples if one.way == way) for way in _ways(samples)}
    errors = [log(max(min(one.seconds, most[one.way]), _SHORTEST)) - means[one.way] for one in samples]
    found = {}
    sides = [errors, *([_shared(way, one.way) for one in samples] for way in ways)]
    weights = np.linalg.solve(np.reshape(rows, (len(samples),) * 2), np.transpose(sides)).T.tolist()
    for at, way in enumerate(ways):
        with_way = [_shared(way, one.way) for one in samples]
        mean = means[way] + sum(one * weight for one, weight in zip(with_way, weights[0], strict=True))
        known = sum(one * weight for one, weight in zip(with_way, weights[at + 1], strict=True))
        found[way] = Estimate(exp(mean), max(_shared(way, way) - known, 0.0) ** 0.5)
    return found


def _ways(samples: Sequence[Sample]) -> set[str]:
    return {one.way for one in samples}


def _shared(one: str, other: str) -> float:
    return LEVEL**2 + (RATIO**2 if one == other else 0.0)


def _noise(one: Sample, other: Sample) -> float:
    load: float = LOAD**2 * STAYS ** abs(one.number - other.number)
    if one != other:
        return load
    return load + NOISE**2 + (COLD**2 if one.number == 1 else 0.0)
