"""Test-gated publishing: keeps the book of staged snapshots, and publishes when it says so.

Names      StagingDesk   one per dbt invocation: stage, record a test's outcome, publish, explain the rest
Steps      model built into a staged branch → its data tests read that branch → last green test publishes
           snapshot and changelog → children follow, parents first
INVARIANT  the book in memory and the properties and outcomes beside the staged branch say the same, so that
           `dbt run`, `dbt test` and `dbt retry` in separate processes decide alike.
INVARIANT  all changes of the book happen under one lock; publishing too, so that parents go before children.
CRASH      died before publishing: the staged branch and its outcomes are there; the next `dbt test` publishes.
           Died after main's claim: the engine finds the snapshot published and only removes the branch.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.tablestore.gate import GateBook, Staged, Verdict, explain, pick_publishable
from dbt.adapters.tablestore.model_graph import Nodes, list_ancestors, list_gates
from tablestore_engine.api import Engine, StagedInfo, WriteReport
from tablestore_engine.errors import NotFound, RetryError, TablestoreError

logger = AdapterLogger("Tablestore")
NODE, POLICY, GATES, PARENTS = "dbt.node", "dbt.publish", "dbt.gates", "dbt.parents"


def read_staged(info: StagedInfo) -> Staged | None:
    """What an earlier process staged; None for branches that dbt did not make."""
    properties = info.properties
    if NODE not in properties:
        return None
    return Staged(
        node=properties[NODE],
        table=str(info.table),
        name=info.name,
        policy=properties.get(POLICY, "auto"),
        gates=tuple(json.loads(properties.get(GATES, "[]"))),
        parents=tuple(json.loads(properties.get(PARENTS, "[]"))),
        verdicts=tuple(sorted(info.outcomes.items())),
    )


def staged_properties(item: Staged) -> dict[str, str]:
    """The other way: what is kept with the staged snapshot."""
    return {
        NODE: item.node,
        POLICY: item.policy,
        GATES: json.dumps(list(item.gates)),
        PARENTS: json.dumps(list(item.parents)),
    }


class StagingDesk:
    """Owns the book; `engine` opens lazily, so that commands without staged models start nothing."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._branch = "dbt"
        self._book = GateBook()
        self._mine: frozenset[str] = frozenset()
        self._told: frozenset[str] = frozenset()
        self._loaded: set[str] = set()
        self._lock = threading.RLock()

    def start(self, invocation: str) -> None:
        """The invocation's id names its staged branches, so that two runs never share one."""
        self._branch = f"dbt_{invocation.replace('-', '')[:12]}"

    def plan_staged(
        self, *, node: str, table: str, policy: str, nodes: Nodes, selected: Collection[str]
    ) -> Staged | None:
        """How this model must be staged now, or None to publish at once."""
        with self._lock:
            self._load(table.split(".", maxsplit=1)[0])
            parents = tuple(sorted(list_ancestors(nodes, node) & self._mine))
            gates: tuple[str, ...] = ()
            if policy == "auto":
                gates = list_gates(nodes, node, selected)
            elif policy in ("on_tests", "manual"):
                gates = list_gates(nodes, node)
            if policy != "manual" and not gates and not parents:
                return None
            return Staged(node, table, self._branch, policy, gates, parents)

    def add(self, item: Staged) -> None:
        """The staged snapshot exists: from now on this invocation's reads see it."""
        with self._lock:
            before = self._book
            self._book = before.with_staged(item)
            self._mine |= {item.node}
            for old in before.staged:
                if self._book.find(old.node) is None or (old.node == item.node and old.name != item.name):
                    self._drop(old)

    def forget(self, node: str, database: str) -> None:
        """A node was published at once: an older staged snapshot of it is void."""
        with self._lock:
            self._load(database)
            old = self._book.find(node)
            if old is not None:
                self._book = self._book.without(node)
                self._drop(old)

    def record(
        self,
        test: str,
        verdict: Verdict,
        databases: Collection[str],
        elsewhere: Collection[str] = (),
    ) -> tuple[str, ...]:
        """A test ran: persist its outcome, publish what is free now; log lines come back.

        `elsewhere`: tables that it read at another version: what it said is not about their staged rows.
        """
        with self._lock:
            for database in databases:
                self._load(database)
            waiting = [
                item for item in self._book.staged if test in item.gates and item.table not in elsewhere
            ]
            if not waiting:
                return ()
            for item in waiting:
                self._engine().table(item.table).record_outcome(item.name, test, str(verdict))
                self._book = self._book.with_changed(item.with_verdict(test, verdict))
            return self._publish(frozenset())

    def publish_asked(self, nodes: frozenset[str], databases: Collection[str]) -> tuple[str, ...]:
        """`run-operation tablestore_publish`: lets manual ones go; gates still hold."""
        with self._lock:
            for database in databases:
                self._load(database)
            asked = nodes or frozenset(item.node for item in self._book.staged)
            return self._publish(asked)

    def branches_for(self, node: str, databases: Collection[str]) -> Mapping[str, str]:
        """table -> branch that reads of `node` should see."""
        with self._lock:
            if node.startswith("snapshot."):  # it cannot be staged itself, so it records published rows only
                return {}
            is_test = node.startswith("test.")
            if is_test:
                for database in databases:
                    self._load(database)
            return {
                item.table: item.name
                for item in self._book.staged
                if item.node in self._mine or (is_test and self._is_read_staged(item, node))
            }

    def _is_read_staged(self, item: Staged, test: str) -> bool:
        """A test reads what it gates, what only waits for other tables, and what has no other rows yet."""
        if test in item.gates or not item.gates:
            return True
        table = self._engine().find_table(item.table)
        return table is not None and table.latest_snapshot_id() is None

    def take_held_back(self) -> tuple[str, ...]:
        """One line per staged snapshot of this invocation that stays unpublished; each is told once."""
        with self._lock:
            held = [item for item in self._book.staged if item.node in self._mine - self._told]
            self._told |= {item.node for item in held}
            return tuple(_held_line(item, self._book) for item in held)

    def _load(self, database: str) -> None:
        """Staged snapshots of earlier processes, once per database; newer ones of this process win."""
        if database in self._loaded:
            return
        self._loaded.add(database)
        for info in self._engine().staged(database):
            item = read_staged(info)
            if item is not None and self._book.find(item.node) is None:
                self._book = GateBook((*self._book.staged, item))

    def _publish(self, asked: frozenset[str]) -> tuple[str, ...]:
        lines: list[str] = []
        failed: set[str] = set()
        for item in pick_publishable(self._book, asked):
            if failed & set(item.parents):
                continue
            try:
                report = self._engine().table(item.table).publish_staged(item.name)
            except TablestoreError as error:
                failed.add(item.node)
                self._note_failure(item, error)
                lines.append(f"{item.table} NOT published: {error}")
                continue
            self._book = self._book.without(item.node)
            self._mine -= {item.node}
            lines.append(f"{item.table} published: {describe_publish(report)}")
        return tuple(lines)

    def _note_failure(self, item: Staged, error: TablestoreError) -> None:
        """A lost claim needs a new build and new tests; the rest may be tried again as it is."""
        if isinstance(error, RetryError | NotFound):
            self._book = self._book.with_changed(item.with_verdict(f"claim.{item.name}", Verdict.ERROR))

    def clear_unpublished(self, node: str) -> None:
        """Before a new build of a table that nobody ever saw: its rejected rows must not fix key and columns."""
        with self._lock:
            old = self._book.find(node)
            found = None if old is None else self._engine().find_table(old.table)
            if old is not None and found is not None and found.latest_snapshot_id() is None:
                self._book = self._book.without(node)
                self._drop(old)

    def _drop(self, item: Staged) -> None:
        try:
            self._engine().table(item.table).drop_staged(item.name)
        except NotFound:
            logger.debug(f"staged snapshot {item.name} of {item.table} is gone already")


def _held_line(item: Staged, book: GateBook) -> str:
    """What is held back, why, and where its rows can be looked at."""
    database, table = item.table.split(".", maxsplit=1)
    where = f"`{database}__at_branch_{item.name}`.`{table}`"
    return f"{item.table} NOT published: {explain(item, book)}; its rows: select * from {where}"


def describe_publish(report: WriteReport) -> str:
    """`snapshot 7 (+120 ~30 -3) · kafka orders[0] 4100..4253`."""
    return report.summary()
