"""Processor time of a suite: of its pytest process and of all below it, noted in its JUnit file.

WHY        a machine's cores are busy for the whole of `make test`: what a suite uses says how long the run takes, its
           seconds on the clock do not (decision 0164). JVMs and brokers are not waited for, so the system does not add
           theirs to their parent's.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# places in /proc/PID/stat, after the name: own time and that of children waited for
_PARENT, _TIMES = 1, slice(11, 15)


def processor_seconds() -> float:
    """Of this process, its children, and theirs, alive or not yet waited for; 0 where the system does not say."""
    children: dict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(folder.name)
        children[int(fields[_PARENT])].append(pid)
        ticks[pid] = sum(map(int, fields[_TIMES]))
    found, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        found += ticks.get(pid, 0)
        waiting += children[pid]
    return found / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> tuple[float, float]:
    """Of all processes since the machine started, and in which a core had nothing to do; 0 where nothing says so."""
    try:
        line = Path("/proc/stat").read_text().splitlines()[0]
    except OSError:
        return 0.0, 0.0
    user, nice, system, idle, waits, *others = (
        int(one) / os.sysconf("SC_CLK_TCK") for one in line.split()[1:9]
    )
    return user + nice + system + sum(others), idle + waits


@pytest.fixture(scope="session", autouse=True)
def processor_time_is_noted(record_testsuite_property: Callable[[str, object], None]) -> Iterator[None]:
    """For integration_tests/run.py; set up first, so that it ends last. Both conftest files import it."""
    yield
    record_testsuite_property("processor", processor_seconds())
