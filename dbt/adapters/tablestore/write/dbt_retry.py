"""`dbt retry` after a commit whose log could not be sent: the same write again, not another one.

CHANGE     `dbt retry` after a log that could not be sent
Steps      1 a model commits, its log fails (PublishPending): invocation, node and commit user are kept in the target
           folder  2 dbt marks the node as failed  3 `dbt retry` knows the run that it retries by its run_results.json:
           the node writes under the kept identity, the engine finds that commit and only publishes
WHY        a retry has an invocation id of its own; under it an append model would write its rows twice.
           Its macros see no selection either, so a model would go out before its tests: run_results.json tells it too.
           A retry continues its run: what that run has staged is read, and published, as in the run itself.
INVARIANT  only `dbt retry` uses a kept identity: a new `dbt run` is a new write.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from tablestore_engine.spi import OrderedLock, Rank

PENDING_FILE = "tablestore_pending.json"
_KEPT = 50
_RETRIES = "retries"  # among the nodes of a run, which have dots in their ids
_AGAIN = frozenset({"error", "fail", "skipped", "runtime error", "partial success"})  # what dbt retries


@dataclass(frozen=True)
class Retried:
    """`invocation`: the run that this command retries; `nodes`: what of it runs again."""

    invocation: str
    nodes: frozenset[str] = frozenset()


def find_retried(target: Path) -> Retried | None:
    """None when this command is not `dbt retry`."""
    context = click.get_current_context(silent=True)
    if context is None or context.info_name != "retry":
        return None
    state = context.params.get("state")
    results = (target if state is None else target.parent / str(state)) / "run_results.json"
    try:
        found = json.loads(results.read_text("utf-8"))
        again = (one["unique_id"] for one in found.get("results", ()) if one["status"] in _AGAIN)
        return Retried(str(found["metadata"]["invocation_id"]), frozenset(again))
    except (OSError, ValueError, KeyError):
        return None  # dbt itself says that there is nothing to retry


class PendingWrites:
    """`target`: dbt's target folder; `retried`: what is retried now, None in any other command."""

    def __init__(self, target: Path, retried: Retried | None) -> None:
        self._file = target / PENDING_FILE
        self._retried = retried
        self._lock = OrderedLock("pending writes", Rank.PROCESS)

    def user_of(self, invocation: str, node: str) -> str | None:
        """The commit user of a node's write; None without an invocation."""
        if not invocation:
            return None
        kept = self._read().get(self._retried.invocation, {}).get(node) if self._retried else None
        return kept or f"dbt-{invocation}"

    def retried_runs(self, invocation: str) -> tuple[str, ...]:
        """The runs that this one continues: that which it retries, and what that one has retried; kept for the next."""
        if self._retried is None:
            return ()
        before = self._read().get(self._retried.invocation, {}).get(_RETRIES, "")
        runs = (self._retried.invocation, *filter(None, before.split(",")))
        self.keep(invocation, _RETRIES, ",".join(runs))
        return runs

    def selected(self, told: Collection[str]) -> frozenset[str]:
        """What runs: dbt tells its macros nothing of a retry's selection."""
        return self._retried.nodes if self._retried else frozenset(told)

    def keep(self, invocation: str, node: str, user: str | None) -> None:
        """The write of this node is committed under `user`, its log is pending."""
        if user is None:
            return
        with self._lock:
            known = {key: dict(nodes) for key, nodes in self._read().items()}
            known.setdefault(invocation, {})[node] = user
            newest = dict(list(known.items())[-_KEPT:])
            self._file.parent.mkdir(parents=True, exist_ok=True)
            aside = self._file.with_suffix(".new")
            aside.write_text(json.dumps(newest, indent=1), "utf-8")
            aside.replace(self._file)

    def _read(self) -> Mapping[str, Mapping[str, str]]:
        try:
            found: Mapping[str, Mapping[str, str]] = json.loads(self._file.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return found
