"""Seconds of each test and suite of the last runs on this machine: kept, shown, and used to start long suites first.

INVARIANT  a damaged or missing file costs the order only, never a test.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

SHOWN = 10


def read_durations(suite: ET.Element) -> dict[str, float]:
    """Name and seconds of each test of a JUnit `testsuite`."""
    return {
        f"{case.get('classname')}::{case.get('name')}": float(case.get("time", "0"))
        for case in suite.iter("testcase")
    }


def read_kept(path: Path) -> dict[str, float]:
    """Seconds of each suite in its last run; empty without a file that can be read."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        return {str(name): float(one["seconds"]) for name, one in kept.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep(path: Path, suites: Mapping[str, tuple[float, float, Mapping[str, float]]]) -> None:
    """Write seconds of suites, on the clock and of processors, and of their tests; suites that did not run keep their
    former figures.
    """
    try:
        kept = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        kept = {}
    if not isinstance(kept, dict):
        kept = {}
    for name, (seconds, processor, tests) in suites.items():
        slow_first = dict(sorted(tests.items(), key=lambda one: -one[1]))
        kept[name] = {"seconds": round(seconds, 1), "processor": round(processor, 1), "tests": slow_first}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1), "utf-8")


def order_of(names: tuple[str, ...], kept: Mapping[str, float]) -> tuple[str, ...]:
    """Suites that took longest first; as they are while one has no figure, for example after a run of some."""
    if any(name not in kept for name in names):
        return names
    return tuple(sorted(names, key=lambda name: -kept[name]))


def slowest(tests: Mapping[str, float]) -> list[str]:
    """A line for each of the tests that took longest."""
    longest = sorted(tests.items(), key=lambda one: -one[1])[:SHOWN]
    return [f"{seconds:7.1f} s  {name}" for name, seconds in longest]
