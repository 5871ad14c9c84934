"""Test-gated publishing in dbt: what this invocation stages, what its tests say, what goes out when.

Steps      model built into a staged branch → its data tests read that branch → the last green test publishes the
           snapshots that its tests have read together (tablestore_engine/warehouse/gate/gate_rule.py) → children follow
INVARIANT  the book in memory and what lies beside the staged branches say the same, so that `dbt run`, `dbt test`
           and `dbt retry` in separate processes decide alike.
INVARIANT  all changes of the book happen under one lock; publishing too, so that parents go before children. It is the
           outermost of all (Rank.PUBLISH_COORDINATOR): what it calls comes back here in the same thread only.
INVARIANT  a publication that failed is an error of the test that asked for it: no run ends well with pending work.
CRASH      branches and outcomes stay, also between two claims or before a log: the next test or build goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from dbt.adapters.tablestore.adapter_response import TablestoreResponse
from dbt.adapters.tablestore.gate.gate_messages import (
    abstention,
    failed,
    held_line,
    not_ours,
    red_again,
    summary,
)
from dbt.adapters.tablestore.gate.microbatches import joined, lost_note, pick_waiting
from dbt.adapters.tablestore.gate.replanning import Replanner
from dbt.adapters.tablestore.gate.staged_reads import branch_of, is_test_about
from dbt.adapters.tablestore.messages import TerminalMessages
from dbt.adapters.tablestore.model_graph import Nodes, gates_of, list_ancestors
from tablestore_engine.api import Engine, NotFound, TablestoreError
from tablestore_engine.spi import (
    PENDING,
    PUBLISHED,
    REFUSED,
    GateBook,
    OrderedLock,
    Outcome,
    Publication,
    Rank,
    Staged,
    TableRead,
    bound_group,
    explain,
    pick_group,
    short_name,
    stage_properties,
)

logger = TerminalMessages("Tablestore")
UNCHANGED = "is dropped: built again, the model changes nothing of what readers see"


@dataclass(frozen=True)
class StagePlan:
    """`name` is the branch; `staged` has everything but the version, which the commit gives it."""

    staged: Staged

    @property
    def name(self) -> str:
        """Of the staged snapshot."""
        return self.staged.name

    @property
    def properties(self) -> dict[str, str]:
        """Kept in the snapshot."""
        return stage_properties(self.staged)


class PublishCoordinator:
    """Owns the book; `engine` opens lazily, so that commands without staged models start nothing."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._branch, self._is_begun = "dbt", False
        self._book = GateBook()
        self._mine: frozenset[tuple[str, str]] = frozenset()
        self._told: frozenset[tuple[str, str]] = frozenset()
        self._adopted: frozenset[tuple[str, str]] = frozenset()
        self._joined: frozenset[tuple[str, str]] = frozenset()
        self._responses: dict[str, TablestoreResponse] = {}
        self._replanner = Replanner()
        self._loaded: set[str] = set()
        self._lock = OrderedLock("publish coordinator", Rank.PUBLISH_COORDINATOR)

    def start(self, invocation: str) -> None:
        """The invocation's id names its staged branches, so that two runs never share one."""
        self._branch = branch_of(invocation)

    def adopt(self, find_runs: Callable[[], Iterable[str]], databases: Callable[[], Collection[str]]) -> None:
        """`dbt retry`, before its first statement: what the runs that it continues have staged is this one's too."""
        with self._lock:
            names = set() if self._is_begun else {branch_of(one) for one in find_runs()}
            self._is_begun = True
            if names:
                self._load(databases())
                self._adopted = frozenset(one.key for one in self._book.staged if one.name in names)
                self._mine |= self._adopted

    # building ------------------------------------------------------------------------------------

    def plan_staged(
        self,
        *,
        node: str,
        table: str,
        policy: str,
        nodes: Nodes,
        selected: Collection[str],
        reads: Collection[TableRead] = (),
        batch: str | None = None,
        begins: bool = True,
    ) -> StagePlan | None:
        """How this model must be staged now, or None to publish at once. `reads`: what its query has read.

        `batch`: the interval of a microbatch; unless it `begins` the table anew, it joins the batches that wait.
        """
        with self._lock:
            self._load([table.split(".", maxsplit=1)[0]])
            above = list_ancestors(nodes, node)
            seen = {(read.table, read.version) for read in reads}  # also by names that are no ref
            parents = tuple(
                item.as_read
                for item in self._book.staged
                if item.key in self._mine and item.table != table
                if item.owner in above or (item.table, item.version) in seen
            )
            gates = gates_of(policy, nodes, node, selected)
            batches = () if batch is None else (batch,)
            made = Staged(table, self._branch, "", 0, node, policy, gates, parents, batches=batches)
            if batch is not None and not begins:
                made = self._join(made, nodes)
            if policy != "manual" and not made.gates and not made.parents:
                return None
            return StagePlan(made)

    def _join(self, made: Staged, nodes: Nodes) -> Staged:
        """With what waits already; publish='always' does not wait, so it drops that (forget says so)."""
        found, own = self._book.of_table(made.table), self._mine - self._adopted
        waiting = pick_waiting(found, made.owner, own, self._engine().gate.is_current)
        if waiting is None or made.policy == "always":
            return made
        if waiting.key not in own and waiting.key not in self._joined:
            self._joined |= {waiting.key}
            logger.info(
                f"{made.table}: batches of an earlier run wait in staged snapshot {waiting.name}; "
                "those of this run join them, and all are published together"
            )
        return joined(made, waiting, nodes)

    def begin_again(self, table: str) -> None:
        """Before all batches of this invocation are staged once more. Raises RetryError TS1887."""
        with self._lock:
            own = [item for item in self._book.of_table(table) if item.key in self._mine]
            for item in own:
                if item.key in self._joined:
                    raise not_ours(item)
                self._engine().gate.drop(item)
                self._book = self._book.without(item)

    def plan_again(self, plan: StagePlan) -> StagePlan:
        """The same on what its parents have staged now; those that went out meanwhile bind no more."""
        with self._lock:
            tables = {read.table for read in plan.staged.parents}
            parents = tuple(
                item.as_read
                for item in self._book.staged
                if item.table in tables and item.key in self._mine and not item.is_out
            )
            return StagePlan(replace(plan.staged, parents=parents))

    def add(
        self, plan: StagePlan, response: TablestoreResponse, rebuild: Callable[[int], None] | None = None
    ) -> None:
        """The staged snapshot exists: from now on this invocation's reads see it. `rebuild` stages it once more."""
        with self._lock:
            if rebuild is not None:
                self._replanner.rebuilds[plan.staged.table] = rebuild
            table = plan.staged.table
            if response.staged is None:  # nothing is left to change
                self._drop_waiting(table, UNCHANGED)
                self._responses[table].follow(response)
                return
            found = self._engine().gate.read_book(table).of_table(table)
            item = next(one for one in found if one.name == plan.name)
            self._drop_waiting(table, "is replaced by this build", keep=plan.name)
            item = replace(item, gates=plan.staged.gates)  # of a batch without changes nothing was written
            self._book = self._book.with_added(item)
            self._mine |= {item.key}
            if plan.staged.batches:  # each batch has an answer of its own
                self._responses[table] = response
            self._responses.setdefault(table, response).follow(response)
            world = self._engine().gate.see(self._book)
            self._responses[table].mark(published=False, reason=explain(item, self._book, world))

    def is_staged(self, table: str) -> bool:
        """By this invocation, and not published yet."""
        with self._lock:
            return any(item.key in self._mine for item in self._book.of_table(table))

    def forget(self, table: str, *, is_unchanged: bool = False) -> None:
        """A node was published at once, or `is_unchanged`: older staged snapshots of it are void."""
        with self._lock:
            self._load([table.split(".", maxsplit=1)[0]])
            self._drop_waiting(table, UNCHANGED if is_unchanged else "is dropped: this run publishes at once")

    def clear_unpublished(self, table: str, plan: StagePlan | None) -> None:
        """Before a new build of a table that nobody ever saw: its rejected rows must not fix key and columns."""
        with self._lock:
            if self._has_no_rows(table):
                self._drop_waiting(
                    table, "is replaced by this build", keep=self._branch if plan is None else plan.name
                )

    def finish_pending(self, table: str) -> bool:
        """What an earlier run began is finished first: a publication, and taking another table's place."""
        with self._lock:
            self._load([table.split(".", maxsplit=1)[0]])
            self._engine().gate.finish_replacement(table)
            waiting = tuple(item for item in self._book.of_table(table) if item.is_out)
            for item in waiting:
                self._report(self._engine().gate.publish((item,)))
            return bool(waiting)

    def _drop_waiting(self, table: str, why: str, keep: str | None = None) -> None:
        for old in self._book.of_table(table):
            if old.name == keep or old.is_out:
                continue
            for item in self._book.with_children(old):
                if item.key in self._mine - self._adopted and item.table != table:
                    continue
                was = f"staged snapshot {item.snapshot} of {item.table}, which was waiting,"
                reason = why if item.key == old.key else "goes with it: it was built from it"
                tell = logger.warning if item.batches else logger.info
                tell(f"{was} {reason}{lost_note(item.batches)}")
                self._engine().gate.drop(item)
                self._book = self._book.without(item)

    # testing and publishing ----------------------------------------------------------------------

    def record(
        self,
        outcome: Outcome,
        databases: Collection[str],
        elsewhere: Collection[str] = (),
        recheck: Callable[[], Outcome] | None = None,
    ) -> tuple[str, ...]:
        """A test ran: persist its outcome, publish what is free now; log lines come back.

        `elsewhere`: tables that it read at another version by the user's wish; `recheck` runs it once more. Raises
        RetryError TS1876 when something that is free could not be published.
        """
        with self._lock:
            self._load(databases)
            if recheck is not None and not elsewhere:
                self._replanner.rechecks[outcome.test] = recheck
            return self._publish(frozenset()) if self._keep(outcome, elsewhere) else ()

    def _keep(self, outcome: Outcome, elsewhere: Collection[str] = ()) -> bool:
        """Beside every staged snapshot that asks for it; whether there is one."""
        asked = [item for item in self._book.staged if outcome.test in item.gates]
        for item in asked:
            if item.table in elsewhere or item.is_out:
                continue
            try:
                self._engine().gate.record(item, outcome)
                self._book = self._book.with_added(item.with_outcome(outcome))
                if item.takes(outcome) and outcome.abstains_from(item):
                    logger.info(abstention(item, outcome))
            except NotFound:  # another process has published or dropped it meanwhile
                logger.debug(f"staged snapshot {item.name} of {item.table} is gone")
                self._book = self._book.without(item)
        return bool(asked)

    def publish_asked(self, nodes: frozenset[str], databases: Collection[str]) -> tuple[str, ...]:
        """`run-operation tablestore_publish`: lets manual ones go; gates still hold. Raises RetryError TS1876."""
        with self._lock:
            self._load(databases)
            wanted = {item.table for item in self._book.staged if not nodes or item.owner in nodes}
            return self._publish(frozenset(wanted))

    def publish_free(self, table: str) -> tuple[str, ...]:
        """Behind a node's write: what it waited for may be out by now. Lines for the log. Raises RetryError TS1876."""
        with self._lock:
            own = [item for item in self._book.of_table(table) if item.key in self._mine and not item.is_out]
            bound = {one.table for item in own for one in bound_group(item, self._book)}
            return self._publish(frozenset(), {one.table for one in self._book.staged} - bound) if own else ()

    def _publish(self, asked: frozenset[str], others: Collection[str] = ()) -> tuple[str, ...]:
        """By groups, none of `others`; what lost its claim is planned and tested again, as the replanner allows."""
        done: list[Publication] = []
        while True:
            results = self._publish_round(asked, others)
            again = self._replanner.pick(self._book, tuple(one.staged for one in results if one.is_overtaken))
            done += [one for one in results if not again or one.report is not None]
            if not again:
                return self._report(done)
            self._report([one for one in results if one.state == PUBLISHED])
            try:
                self._replan(again)
            except TablestoreError as error:
                return self._report([*done, *(Publication(item, REFUSED, error=error) for item in again)])

    def _publish_round(self, asked: frozenset[str], others: Collection[str]) -> tuple[Publication, ...]:
        gate, refused, done = self._engine().gate, set(others), list[Publication]()
        while group := pick_group(self._book, gate.see(self._book), asked=asked, refused=frozenset(refused)):
            results = gate.publish(group)
            done += results
            refused |= {one.staged.table for one in results if one.state != PUBLISHED}
            self._book = self._book.without(*(one.staged for one in results if one.report is not None))
            for one in results:
                if one.state == PENDING:  # read again: it is out now, and its branch is still there
                    self._book = self._book.with_added(replace(one.staged, is_out=True))
        return tuple(done)

    def _replan(self, again: tuple[Staged, ...]) -> None:
        """Raises RetryError TS1878 when a test that was green is red on the new rows."""
        for item in again:
            self._replanner.rebuild(item)
        new = {one.table: one for item in again for one in self._book.of_table(item.table)}
        red = []
        for outcome in self._replanner.recheck(new):
            self._keep(outcome)
            asked = [one for one in new.values() if outcome.test in one.gates]
            if outcome.holds_back(asked):
                red.append(short_name(outcome.test))
        if red:
            raise red_again(new, red)

    def _report(self, done: Iterable[Publication]) -> tuple[str, ...]:
        """Responses get the news; raises when something failed."""
        done = tuple(done)
        for one in done:
            response = self._responses.get(one.staged.table)
            if response is not None:
                response.mark_publication(one)
            if one.state == PUBLISHED:
                self._mine -= {one.staged.key}
                self._book = self._book.without(one.staged)
        lines = tuple(one.line() for one in done)
        if all(one.state == PUBLISHED for one in done):
            return lines
        for line in lines:
            logger.warning(line)
        raise failed(done)

    # reading -------------------------------------------------------------------------------------

    def branches_for(self, node: str, databases: Collection[str]) -> Mapping[str, str]:
        """table -> branch that reads of `node` should see."""
        with self._lock:
            is_test = node.startswith("test.")
            if is_test:
                self._load(databases)
            return {
                item.table: item.name
                for item in self._book.staged
                if not item.is_out
                and (self._is_mine(item, node) or (is_test and self._is_left_for(item, node)))
            }

    def _is_mine(self, item: Staged, node: str) -> bool:
        """A node that is retried does not read what it had staged."""
        return item.key in self._mine and not (item.key in self._adopted and item.owner == node)

    def _is_left_for(self, item: Staged, test: str) -> bool:
        """Of what earlier runs left: also what has no other rows yet."""
        return is_test_about(item, test, self._book, self._mine) or self._has_no_rows(item.table)

    def _has_no_rows(self, table: str) -> bool:
        found = self._engine().find_table(table)
        return found is not None and found.latest_snapshot_id() is None

    def take_held_back(self) -> tuple[str, ...]:
        """What of this invocation stays unpublished, a line each and one for all; each is told once."""
        with self._lock:
            held = [item for item in self._book.staged if item.key in self._mine - self._told]
            if not held:
                return ()
            self._told |= {item.key for item in held}
            world = self._engine().gate.see(self._book)
            lines = []
            for item in held:
                reason = explain(item, self._book, world)
                if item.table in self._responses and not item.is_out:
                    self._responses[item.table].mark(published=False, reason=reason)
                lines.append(held_line(item, reason))
            return *lines, summary(held)

    def _load(self, databases: Iterable[str]) -> None:
        """Staged snapshots of earlier processes, once per database; newer ones of this process win."""
        new = [database for database in databases if database not in self._loaded]
        self._loaded.update(new)
        known = {item.key for item in self._book.staged}
        for item in self._engine().gate.read_book(*new).staged if new else ():
            if item.owner and item.key not in known:
                self._book = self._book.with_added(item)
