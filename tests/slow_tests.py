"""Which tests `make check` leaves to `make test`: slow_tests.txt, one function a line, marked `slow` by conftest.py.

Steps      `make test` keeps seconds in build/test-durations.json → `python -m tests.slow_tests` writes the list anew
INVARIANT  each line names a test that is there (tests/house/test_slow_tests.py).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

LIST = Path(__file__).with_name("slow_tests.txt")
_KEPT = LIST.parent.parent / "build" / "test-durations.json"
_CASE_SECONDS, _ALL_CASES_SECONDS = 0.1, 0.5
_HOUSE, _HOUSE_SECONDS = "tests.house.", 3.0  # what they find, a reviewer would have to say


def read_slow() -> frozenset[str]:
    """`module.path::function`, as JUnit writes them without the parameters."""
    return frozenset(LIST.read_text("utf-8").split())


def name_of(node_id: str) -> str:
    """The same of pytest's id: a path, perhaps a class, and a function with parameters."""
    path, *inner = node_id.partition("[")[0].split("::")
    module = path.removesuffix(".py").replace("/", ".")
    return "::".join((".".join((module, *inner[:-1])), inner[-1]))


def pick_slow(seconds: Mapping[str, float]) -> list[str]:
    """Functions with a case, or with cases in sum, that take long; a house test only when it is long alone."""
    cases: dict[str, list[float]] = defaultdict(list)
    for name, each in seconds.items():
        cases[name.partition("[")[0]].append(each)
    return sorted(name for name, all_of_it in cases.items() if _is_slow(name, all_of_it))


def _is_slow(name: str, cases: list[float]) -> bool:
    if name.startswith(_HOUSE):
        return sum(cases) >= _HOUSE_SECONDS
    return max(cases) >= _CASE_SECONDS or sum(cases) >= _ALL_CASES_SECONDS


if __name__ == "__main__":
    found = pick_slow(json.loads(_KEPT.read_text("utf-8"))["unit"]["tests"])
    LIST.write_text("\n".join((*found, "")), "utf-8")
    print(f"{LIST}: {len(found)} functions")
