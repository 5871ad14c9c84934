"""What each project of the query attack gave, in docs/queries.json: a line for each, so that a run continues.

INVARIANT  a project is written when its last round was judged. One with a wrong row is played again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from integration_tests.nightly_record import ROOT, ran_on

RECORD = ROOT / "docs" / "queries.json"
FOUND = "wrong or in error"


@dataclass
class QueryRecord:
    """By project, as `seed/number`."""

    path: Path = RECORD
    _projects: dict[str, Mapping[str, int | str]] = field(init=False)

    def __post_init__(self) -> None:
        known = json.loads(self.path.read_text("utf-8")) if self.path.exists() else {}
        self._projects = known.get("projects", {})

    @property
    def seed(self) -> int | None:
        """Of the projects so far."""
        return next((int(name.partition("/")[0]) for name in self._projects), None)

    def find(self, project: str, queries: int, changes: int) -> Counter[str] | None:
        """The counts of one with so many queries and rounds of changes, if nothing was wrong in it."""
        found = self._projects.get(project)
        if found is None or found[FOUND] or (found["queries"], found["changes"]) != (queries, changes):
            return None
        return _counts(found)

    def keep(self, project: str, changes: int, counts: Mapping[str, int]) -> None:
        """In the file at once."""
        self._projects[project] = {"commit": ran_on(), "changes": changes, **counts}
        names = sorted(self._projects, key=lambda one: tuple(map(int, one.split("/"))))
        lines = [f"  {json.dumps(one)}: {json.dumps(self._projects[one], sort_keys=True)}" for one in names]
        total = json.dumps(self.total(), sort_keys=True)
        text = f'{{\n "total": {total},\n "projects": {{\n' + ",\n".join(lines) + "\n }\n}\n"
        self.path.write_text(text, "utf-8")

    def total(self) -> dict[str, int]:
        """Of all projects."""
        total: Counter[str] = Counter()
        for one in self._projects.values():
            total.update(_counts(one))
        return dict(total)


def _counts(project: Mapping[str, int | str]) -> Counter[str]:
    return Counter(
        {name: value for name, value in project.items() if isinstance(value, int) and name != "changes"}
    )
