"""What a run of this suite did with each class of dbt-tests-adapter, kept beside what earlier runs did.

Steps      collect outcomes per class → after each test merge them into FILE, under the dbt-core version that ran
SHAPE      {dbt-core minor version: {"versions": {package: version}, "classes": {test id of our class:
           {"originals": [name], "tests": {name: outcome}, "says": text, "fixtures": [name], "expected": [name],
           "replaced": [name], "differs": text or null}}}}
INVARIANT  a class that replaces a test function of its original, or a function that such a test checks by, says so in
           `differs`, or collection fails.
INVARIANT  a test with parameters has the worst outcome of them.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from integration_tests.conformance.inventory import is_original, original_name

# functions of the originals that only give the values which an adapter is expected to have
_EXPECTATIONS = frozenset({"seed_enabled_types", "seed_tricky_types"})
_RANK = {"passed": 0, "skipped": 1, "failed": 2}
_PACKAGES = ("dbt-core", "dbt-adapters", "dbt-spark", "dbt-tests-adapter", "pyspark")


def describe(cls: type) -> dict[str, Any]:
    """Originals, docstring, and the names that our classes define over theirs, by kind."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("integration_tests.")]
    originals = [base for base in cls.__mro__ if is_original(base)]
    names = dict.fromkeys(name for base in ours for name in vars(base) if not name.startswith("__"))
    kinds: dict[str, list[str]] = {"fixtures": [], "expected": [], "replaced": []}
    for name in names:
        value = inspect.getattr_static(cls, name)
        if type(value).__name__ == "FixtureFunctionDefinition":
            kinds["fixtures"].append(name)
        elif any(hasattr(original, name) for original in originals):
            is_check = callable(getattr(cls, name)) and name not in _EXPECTATIONS
            kinds["replaced" if is_check else "expected"].append(name)
    return {
        "originals": [original_name(original) for original in originals],
        "says": inspect.cleandoc(cls.__doc__ or "").split("\n")[0],
        "differs": getattr(cls, "differs", None),
        **kinds,
    }


def add_run(
    record: Mapping[str, Any], core: str, versions: Mapping[str, str], classes: Mapping[str, Any]
) -> dict[str, Any]:
    """The record with `classes` replaced by what this run saw of them; other classes and versions stay."""
    before = record.get(core, {}).get("classes", {})
    merged = {"versions": dict(versions), "classes": dict(sorted({**before, **classes}.items()))}
    return dict(sorted({**record, core: merged}.items()))


def redescribe(record: Mapping[str, Any]) -> dict[str, Any]:
    """The same outcomes of our classes as they are now. Raises AttributeError for one that is gone."""
    return {
        core: {
            **run,
            "classes": {
                name: {**describe(_find_class(name)), "tests": found["tests"]}
                for name, found in run["classes"].items()
            },
        }
        for core, run in record.items()
    }


def _find_class(name: str) -> type:
    """`test_hooks::TestHookRefs`."""
    module, _, cls = name.partition("::")
    found: type = getattr(importlib.import_module(f"{__package__}.{module}"), cls)
    return found


class Recorder:
    """Collects outcomes and keeps the file up to date."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._classes: dict[str, dict[str, Any]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Describe each class that will run; a replaced test without a reason is a mistake of the suite."""
        for item in items:
            cls = getattr(item, "cls", None)
            if cls is None or not any(is_original(base) for base in cls.__mro__):
                continue
            self._classes.setdefault(_class_id(item.nodeid), {**describe(cls), "tests": {}})
        silent = {
            name: found["replaced"]
            for name, found in self._classes.items()
            if found["replaced"] and not found["differs"]
        }
        if silent:
            raise pytest.UsageError(f"replaced tests without a reason in `differs`: {silent}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of setup, call and teardown, and of the parameters, is the test's outcome."""
        found = self._classes.get(_class_id(report.nodeid))
        if found is not None:
            name = report.nodeid.split("::")[-1].split("[")[0]
            before = found["tests"].get(name, "passed")
            found["tests"][name] = max(before, report.outcome, key=_RANK.__getitem__)
            if report.when == "teardown":  # a run that is cut short has recorded what it did
                self._write()

    def _write(self) -> None:
        versions = {name: version(name) for name in _PACKAGES}
        core = ".".join(versions["dbt-core"].split(".")[:2])
        record = json.loads(self._path.read_text()) if self._path.exists() else {}
        ran = {name: found for name, found in self._classes.items() if found["tests"]}
        self._path.write_text(json.dumps(add_run(record, core, versions, ran), indent=1) + "\n")


def _class_id(nodeid: str) -> str:
    """`test_basic::TestEmpty` of `…/test_basic.py::TestEmpty::test_empty`."""
    path, *names = nodeid.split("::")
    return f"{Path(path).stem}::{names[0]}"
