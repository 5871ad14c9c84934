"""Python's garbage collector in a process that runs thousands of tests: what the imports and the collection of tests
have made is never looked at again, and the rest once behind each test.

WHY      a test suite holds a million objects before its first test. Each collection of the oldest generation walks
         over them, for every test of a suite: a sixth of Python's time in the adapter's suite (decision 0112).
         So do pytest and Python at the end of the process, whose memory goes anyway. While the tests of tests/ were
         imported, it was a quarter of the time (decision 0174).
INVARIANT  what a test leaves is given back behind it. A Kafka client that waits for the collector has threads and
         connections: without a collection 16 tests left 400 threads, and a broker that did not answer in time.
"""

from __future__ import annotations

import gc

OBJECTS = 50_000  # new containers between two collections of the youngest generation; Python's own: 700


def collect_nothing() -> None:
    """Before tests are imported: nearly all that they make stays, and each look at it is in vain."""
    gc.disable()


def collect_less() -> None:
    """Once the tests are collected, before the first one runs."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])


def collect_no_more() -> None:
    """Once the last test is done."""
    gc.freeze()


def collect_young() -> None:
    """Behind a test and its fixtures: nearly all that it made is still young."""
    gc.collect(1)
