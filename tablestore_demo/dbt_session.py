"""dbt in this very process, so that one JVM serves every round of the demo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner


@dataclass(frozen=True)
class NodeResult:
    """One node of a build: `facts` is the adapter's response (rows inserted, snapshot id …)."""

    name: str
    resource_type: str
    status: str
    message: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class BuildResult:
    """All nodes of one `dbt build`."""

    success: bool
    nodes: tuple[NodeResult, ...]
    error: str

    def node(self, name: str) -> NodeResult | None:
        """The node called `name`, if it was part of the build."""
        return next((node for node in self.nodes if node.name == name), None)

    def failed_tests(self) -> tuple[str, ...]:
        """Names of tests that failed or errored."""
        return tuple(
            n.name for n in self.nodes if n.resource_type == "test" and n.status in {"fail", "error"}
        )


@dataclass(frozen=True)
class DbtSession:
    """`dbt` for one project folder."""

    folder: Path

    def invoke(self, *words: str) -> BuildResult:
        """Run one dbt command quietly."""
        place = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        done = dbtRunner().invoke(["--quiet", "--no-use-colors", *words, *place])
        results = getattr(done.result, "results", None) or ()
        nodes = tuple(
            NodeResult(
                row.node.name,
                str(row.node.resource_type),
                str(row.status),
                row.message or "",
                dict(row.adapter_response or {}),
            )
            for row in results
        )
        return BuildResult(bool(done.success), nodes, str(done.exception or ""))
