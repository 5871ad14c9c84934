"""What a run of a changed_keys model knows of the runs before it, and what it leaves to the next one.

INVARIANT  the history is a property of the model's own newest commit; a commit of others, a full refresh in a new table
           and another query begin a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dbt.adapters.tablestore.config.changed_keys_config import Way
from dbt.adapters.tablestore.plan.run_costs import ChosenWay, RowCounts, RunHistory, most_keys
from tablestore_engine.api import Table

NODE_PROPERTY = "dbt.node"  # of each commit of a model
RUNS_PROPERTY = "dbt.changed-keys-runs"  # of a commit of a changed_keys model
NO_RUNS = RunHistory()


@dataclass(frozen=True)
class RunChoice:
    """`changed`: rows of the inputs; `rows`: of each input, all of them; `groups`: of the model. `begun_ms`: when the
    run began, by the engine's clock.
    """

    history: RunHistory = NO_RUNS
    changed: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    groups: int = 0
    begun_ms: int = 0

    def choose(self, possible: Iterable[Way], joined: Iterable[str], parts: Iterable[str] = ()) -> ChosenWay:
        """`joined`: tables that deltas read beside the changes, as often as they do so; `parts`: those that affected
        keys are looked for in besides.
        """
        return self.history.choose(possible, self.sizes(joined, parts))

    def sizes(self, joined: Iterable[str] = (), parts: Iterable[str] = ()) -> RowCounts:
        """What a choice is made by, besides earlier runs."""
        read, evaluated = (sum(self.rows.get(one, 0) for one in tables) for tables in (joined, parts))
        return RowCounts(self.changed, self.total, read, self.groups, evaluated)

    @property
    def total(self) -> int:
        """Rows of all inputs."""
        return sum(self.rows.values())

    @property
    def most_keys(self) -> int | None:
        """More affected keys are not evaluated."""
        return most_keys(self.groups)

    def text(self, way: Way, keys: int) -> str:
        """For RUNS_PROPERTY of this run's commit. A run without changed rows says nothing of later ones."""
        if way == Way.WHOLE:
            return self.history.beginning(way, self.total, self.begun_ms).text()
        if self.changed:
            return self.history.beginning(way, self.changed, self.begun_ms, keys).text()
        return self.history.text()


NO_CHOICE = RunChoice()


def read_history(own: Table | None, node: str) -> RunHistory:
    """Of the model's runs up to its newest commit."""
    newest = None if own is None else own.newest_commit()
    if newest is None or newest.properties.get(NODE_PROPERTY) != node:
        return NO_RUNS
    return RunHistory.read(newest.properties.get(RUNS_PROPERTY)).ended(newest.committed_at_ms)
