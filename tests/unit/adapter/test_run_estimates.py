"""What strategies take, from runs at different times: the load of the machine is no property of a strategy."""

from __future__ import annotations

import math
import random

import pytest

from dbt.adapters.tablestore.plan.run_estimates import Sample, estimates

GUESSES = {"a": 1.0, "b": 1.0}


def test_without_runs_the_guesses_are_the_estimates() -> None:
    """With a wide deviation."""
    found = estimates({"a": 0.5, "b": 2.0}, [])
    assert (found["a"].seconds, found["b"].seconds) == pytest.approx((0.5, 2.0))
    assert found["a"].deviation > 1


def test_a_run_says_something_of_the_other_strategy() -> None:
    """Guesses know the ratio better than the level: what takes ten times as long does so for all, in part."""
    found = estimates({"a": 1.0, "b": 2.0}, [Sample("a", 2, 10.0)])
    assert 4 < found["a"].seconds < 10.1
    assert found["a"].seconds < found["b"].seconds * 2
    assert found["a"].deviation < found["b"].deviation


def test_neighbours_in_time_share_the_load() -> None:
    """`a` ran while the machine was quiet, both while it was busy: `a` is slower, though its mean is less."""
    runs = [
        Sample("a", 2, 1.0),
        Sample("a", 3, 1.0),
        Sample("b", 30, 1.5),
        Sample("a", 31, 2.0),
        Sample("b", 32, 1.5),
    ]
    found = estimates(GUESSES, runs)
    assert found["b"].seconds < found["a"].seconds


def test_a_run_that_had_to_wait_does_not_count_as_it_is() -> None:
    """An outlier is cut to a multiple of the fastest run."""
    calm = [Sample("a", 2, 1.0), Sample("a", 3, 1.0)]
    late, later = (estimates(GUESSES, [*calm, Sample("a", 4, seconds)]) for seconds in (2.0, 200.0))
    assert late["a"].seconds == later["a"].seconds < 1.5


def test_the_order_is_found_under_random_load() -> None:
    """Two strategies in turns, one of them slower by a third: right in nine of ten histories."""
    rng, right, rounds = random.Random(4), 0, 200
    for _ in range(rounds):
        load, runs = 0.0, list[Sample]()
        for number in range(2, 10):
            load = 0.85 * load + rng.gauss(0, 0.25)
            way = "ab"[number % 2]
            took = (1.0 if way == "a" else 1.33) * math.exp(load + rng.gauss(0, 0.05))
            runs.append(Sample(way, number, took))
        found = estimates(GUESSES, runs)
        right += found["a"].seconds < found["b"].seconds
    assert right > 0.9 * rounds
