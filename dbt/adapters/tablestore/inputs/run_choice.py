"""What a run of a changed_keys model knows of the runs before it, and what it leaves to the next one.

INVARIANT  the history is a property of the model's own newest commit; a commit of others, a full refresh in a new table
           and another query begin a new one.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.tablestore.plan.run_costs import Estimates, RunHistory
from tablestore_engine.api import Table

NODE_PROPERTY = "dbt.node"  # of each commit of a model
RUNS_PROPERTY = "dbt.changed-keys-runs"  # of a commit of a changed_keys model
NO_RUNS = RunHistory()


@dataclass(frozen=True)
class RunChoice:
    """`changed`, `total`: rows of the inputs. `begun_ms`: when the run began, by the engine's clock."""

    history: RunHistory = NO_RUNS
    changed: int = 0
    total: int = 0
    begun_ms: int = 0

    @property
    def estimates(self) -> Estimates:
        """Of this run."""
        return self.history.estimate(self.changed, self.total)

    @property
    def reason(self) -> str:
        """Why all rows are computed, if that is cheaper by enough; else empty."""
        found = self.estimates
        if self.changed == 0 or found.whole is None or found.changes is None or not found.is_whole_cheaper:
            return ""
        rows = "1 changed row" if self.changed == 1 else f"{self.changed:,} changed rows"
        return f"about {found.whole:.1f} s, following {rows} about {found.changes:.1f} s"

    def text(self, *, is_whole: bool) -> str:
        """For RUNS_PROPERTY of this run's commit. A run without changed rows says nothing of later ones."""
        if is_whole:
            return self.history.beginning(self.total, self.begun_ms, is_whole=True).text()
        if self.changed:
            return self.history.beginning(self.changed, self.begun_ms, is_whole=False).text()
        return self.history.text()


def read_history(own: Table | None, node: str) -> RunHistory:
    """Of the model's runs up to its newest commit."""
    newest = None if own is None else own.newest_commit()
    if newest is None or newest.properties.get(NODE_PROPERTY) != node:
        return NO_RUNS
    return RunHistory.read(newest.properties.get(RUNS_PROPERTY)).ended(newest.committed_at_ms)
