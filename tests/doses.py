"""How many random examples a test takes, and which cases of a matrix: few in `make test`, all at night, when each day
has another seed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import product

import pytest

NIGHTLY_VARIABLE = "TABLESTORE_NIGHTLY"  # set by integration_tests/run.py --nightly


def is_nightly() -> bool:
    """Whether this process is one of the nightly run."""
    return bool(os.environ.get(NIGHTLY_VARIABLE))


def examples(by_day: int, by_night: int) -> int:
    """The count that holds in this process."""
    return by_night if is_nightly() else by_day


def cases(every: Sequence[object] | Mapping[str, object], by_day: int) -> list[object]:
    """Parameters of one name: `by_day` of them, spread over the list, run by day too; the others at night alone."""
    daily = _spread(len(every), by_day)
    return [
        one if at in daily else pytest.param(one, marks=pytest.mark.nightly) for at, one in enumerate(every)
    ]


def case_rows(every: Sequence[tuple[object, ...]], by_day: int) -> list[object]:
    """Parameters of several names: `by_day` of them by day, as `cases`."""
    daily = _spread(len(every), by_day)
    return [
        one if at in daily else pytest.param(*one, marks=pytest.mark.nightly) for at, one in enumerate(every)
    ]


def _spread(count: int, by_day: int) -> set[int]:
    assert 0 < by_day <= count
    return {at * count // by_day for at in range(by_day)}


def pairs(first: Sequence[object], second: Sequence[object]) -> list[object]:
    """Parameters of two names, every combination: by day each value of both at least once, the others at night."""
    most = max(len(first), len(second))
    daily = {(at % len(first), at % len(second)) for at in range(most)}
    numbered = product(enumerate(first), enumerate(second))
    return [
        pytest.param(a, b, marks=[] if (i, j) in daily else pytest.mark.nightly)
        for (i, a), (j, b) in numbered
    ]
