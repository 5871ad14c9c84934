"""docs/packages.md from docs/packages.json: what of foreign projects passes, with which setting, and what cannot.

INVARIANT  a failure without a reason says so: the page hides none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from integration_tests.packages.projects import PROJECTS, ForeignProject

ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "docs" / "packages.json"
PAGE = ROOT / "docs" / "packages.md"
GOOD = frozenset({"success", "pass", "warn", "no-op"})
UNEXPLAINED = "not explained"
_HEAD = """# Packages and projects of others

`make test-packages` runs projects of others: the test projects of dbt packages, and example shops. Each is
a fresh copy of a checkout. Only `packages.yml` is changed, to name folders instead of a package index.

This page is written by that run. A *node* is a model, seed, snapshot, test or unit test; its last result counts.

| project | version | passed | nodes | commands |
|---|---|---|---|---|
"""
_USE = """
## Run it

```bash
make test-packages
```

`TABLESTORE_DBT_PACKAGES` names a folder with one checkout per folder, named as its repository. A project whose checkout
is missing is skipped by name. `ARGS="dbt-utils"` runs one project.
"""


def failures(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(node, status, why) of a project's record."""
    for node, (status, message) in sorted(found["nodes"].items()):
        if status not in GOOD:
            yield node, status, (message or "").strip()


def summarise(project: ForeignProject, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a run: counts, and each failure with its reason."""
    bad = [(node, project.reason(node) or UNEXPLAINED) for node, _, _ in failures(found)]
    broken = [one["command"] for one in found["commands"] if one["status"] == 2]
    return {
        "version": found["version"],
        "commands": [one["command"] for one in found["commands"]],
        "broken": broken,
        "nodes": len(found["nodes"]),
        "failed": dict(bad),
    }


def render(record: Mapping[str, Any]) -> str:
    """The whole page."""
    projects = {one.name: one for one in PROJECTS}
    lines = [_HEAD.rstrip("\n")]
    for name, found in record.items():
        passed = found["nodes"] - len(found["failed"])
        commands = ", ".join(f"`dbt {one}`" for one in found["commands"] if one != "deps")
        lines.append(f"| {name} | {found['version']} | {passed} | {found['nodes']} | {commands} |")
    adapted = [projects[name] for name in record if name in projects and projects[name].settings]
    if adapted:
        lines += ["", "## Settings", "", "Add these lines to the project's `dbt_project.yml`."]
        for one in adapted:
            text = yaml.safe_dump(dict(one.settings), sort_keys=False, default_flow_style=False).rstrip()
            indented = [f"    {line}" for line in text.splitlines()]
            lines += ["", f"### {one.name}", "", f"Why: {one.adapted}.", "", *indented]
    lines += ["", "## What does not pass", ""]
    failed = [(name, node, why) for name, found in record.items() for node, why in found["failed"].items()]
    if failed:
        lines += ["| project | node | reason |", "|---|---|---|"]
        lines += [f"| {name} | `{_short(node)}` | {why} |" for name, node, why in failed]
    else:
        lines.append("Nothing.")
    return "\n".join(lines) + "\n" + _USE


def _short(node: str) -> str:
    """`test.project.name.hash` without project and hash."""
    parts = node.split(".")
    return ".".join([parts[0], *parts[2:3]])


def write_page() -> None:
    """From the record."""
    PAGE.write_text(render(json.loads(RECORD.read_text("utf-8"))), "utf-8")
