"""What holds for all of tests/: no service, and no JVM, which would change what later tests of the process see.

Tests of slow_tests.txt get the mark `slow`, which `make check` leaves out. What Hypothesis draws is judged by truth,
not by time: the machine is shared, so an example has no deadline. A law that names no number of examples has 24 by day
and Hypothesis' own 100 at night.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tablestore_engine.spark import jvm_launch
from tests.doses import examples
from tests.garbage import collect_less, collect_no_more, collect_nothing, collect_young
from tests.slow_tests import name_of, read_slow

settings.register_profile("dose", deadline=None, max_examples=examples(24, 100))
settings.load_profile("dose")


@pytest.fixture(scope="session", autouse=True)
def no_jvm() -> Iterator[None]:
    """Starting Spark in this process fails the test that does it."""

    def refused(*_: object) -> None:
        pytest.fail("a test of tests/ starts a JVM: what needs Spark stands in integration_tests/")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jvm_launch, "launch_gateway", refused)
        yield


def pytest_configure() -> None:
    """Until they are collected."""
    collect_nothing()


def pytest_collection_finish() -> None:
    """Nothing of the collected tests is garbage."""
    collect_less()


def pytest_sessionfinish() -> None:
    """Nothing is given back that the end of the process gives back."""
    collect_no_more()


def pytest_runtest_logfinish() -> None:
    """Clients and sessions of the test go with it."""
    collect_young()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what the list names."""
    slow = read_slow()
    for item in items:
        if name_of(item.nodeid) in slow:
            item.add_marker(pytest.mark.slow)
