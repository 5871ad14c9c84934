"""How many random examples a test takes: few in `make test`, many at night, when each day has another seed."""

from __future__ import annotations

import os

NIGHTLY_VARIABLE = "TABLESTORE_NIGHTLY"  # set by integration_tests/run.py --nightly


def examples(by_day: int, by_night: int) -> int:
    """The count that holds in this process."""
    return by_night if os.environ.get(NIGHTLY_VARIABLE) else by_day
