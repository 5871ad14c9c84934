"""Test-gated publishing in dbt: what this invocation stages, what its tests say, what goes out when.

CHANGE     at which events of a dbt run staged snapshots are published
CHANGE     when a dbt run drops old staged snapshots
Steps      model built into a staged branch → its data tests read that branch → the last green test publishes the
           snapshots that its tests have read together (tablestore_engine/warehouse/gate/gate_rule.py) → children follow
INVARIANT  the book in memory and what lies beside the staged branches say the same, so that `dbt run`, `dbt test`
           and `dbt retry` in separate processes decide alike.
INVARIANT  decisions are pure (gate/gate_state.py); here they are performed, under no lock. A thread waits for another
           one only where its own result depends on it: it reads, replaces or publishes what that one has in progress.
INVARIANT  a publication that failed is an error of the test that asked for it: no run ends well with pending work.
INVARIANT  old staged snapshots go at the first look at their database, but never those that `dbt retry` continues.
CRASH      branches and outcomes stay, also between two claims or before a log: the next test or build resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from dbt.adapters.tablestore.adapter_response import TablestoreResponse
from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_events import DropStaged, SayHeld
from dbt.adapters.tablestore.gate.gate_messages import (
    dropped,
    held_line,
    joined_line,
    not_ours,
    summary,
    vanished,
)
from dbt.adapters.tablestore.gate.gate_state import Rebuild, Recheck, branch_of
from dbt.adapters.tablestore.gate.group_publisher import GroupPublisher
from dbt.adapters.tablestore.gate.microbatches import joined, lost_note, pick_waiting
from dbt.adapters.tablestore.gate.publish_decisions import Ask, concludes
from dbt.adapters.tablestore.gate.shared_state import SharedGateState, me
from dbt.adapters.tablestore.gate.whole_run import (
    ALL_OR_NOTHING,
    bound,
    bound_gates,
    members,
    node_built,
    run_outcome,
    with_missing,
)
from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.model_graph import Nodes, gates_of, list_ancestors, list_sources
from tablestore_engine.api import Engine, TablestoreError
from tablestore_engine.spi import (
    ExpiredStage,
    GateBook,
    Outcome,
    Staged,
    TableRead,
    World,
    drop_expired,
    explain,
    is_held,
    kept_until_ms,
)

UNCHANGED = "is dropped: built again, the model changes nothing of what readers see"


class PublishCoordinator:
    """What the threads of one invocation ask; `engine` opens lazily: commands without staged models start nothing."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._shared = SharedGateState()
        self._publisher = GroupPublisher(engine, self._shared)
        self._nodes: Nodes = {}  # the graph, as any node shows it
        self._continued: frozenset[str] = frozenset()  # names of what `dbt retry` continues

    def start(self, invocation: str) -> None:
        """The invocation's id names its staged branches, so that two runs never share one."""
        self._shared.apply(events.started, branch_of(invocation))

    def adopt(self, find_runs: Callable[[], Iterable[str]], databases: Callable[[], Collection[str]]) -> None:
        """`dbt retry`, before its first statement: what the runs that it continues have staged is this one's too."""
        if self._shared.state.is_begun:
            return
        self._continued = names = frozenset(branch_of(one) for one in find_runs())
        if names:
            self._load(databases())
        self._shared.apply(events.continued, names)

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
    ) -> Staged | None:
        """How this model must be staged now, without the version, which the commit gives it; None: published at once.

        `reads`: what its query has read. `batch`: the interval of a microbatch; unless it `begins` the table, it
        joins the batches that wait.
        """
        self._nodes = nodes
        self._load([database_of(table)])
        above = list_ancestors(nodes, node)
        state = self._shared.settled(lambda: above, table)
        seen = {(read.table, read.version) for read in reads}  # also by names that are no ref
        parents = tuple(item.as_read for item in state.parents_of(table, above, seen))
        gates = gates_of(policy, nodes, node, selected)
        if policy == ALL_OR_NOTHING:
            self._shared.apply(bound, members(nodes, selected))
            gates = bound_gates(self._shared.state, node, is_batch=batch is not None, gates=gates)
        batches = () if batch is None else (batch,)
        made = Staged(table, state.branch, "", 0, node, policy, gates, parents, batches=batches)
        if batch is not None and not begins:
            made = self._join(made, nodes)
        return made if policy == "manual" or made.gates or made.parents else None

    def _join(self, made: Staged, nodes: Nodes) -> Staged:
        """With what waits already; publish='always' does not wait, so it drops that (forget says so)."""
        state = self._shared.state
        found, own = state.book.of_table(made.table), state.mine - state.adopted
        waiting = pick_waiting(found, made.owner, own, self._engine().gate.is_current)
        if waiting is None or made.policy == "always":
            return made
        if self._shared.apply(events.joined, waiting):
            logger.info(joined_line(waiting))
        return joined(made, waiting, nodes)

    @contextmanager
    def batch(self, table: str) -> Iterator[None]:
        """While a microbatch is planned, written and added nobody publishes the table; publish_free() comes next."""
        self._shared.demand(events.batch_began, me(), table)
        try:
            yield
        finally:
            self._shared.apply(events.batch_ended, me(), table)

    def begin_again(self, table: str) -> None:
        """Before all batches of this invocation are staged once more. Raises RetryError TS1887."""
        state = self._shared.state
        for item in state.own(table):
            if item.key in state.joined:
                raise not_ours(item)
            self._engine().gate.drop(item)
            self._shared.apply(events.gone, item)

    def plan_again(self, plan: Staged) -> Staged:
        """The same on what its parents have staged now; those that went out meanwhile bind no more."""
        state, tables = self._shared.state, {read.table for read in plan.parents}
        parents = tuple(
            item.as_read
            for item in state.book.staged
            if item.table in tables and item.key in state.mine and not item.is_out
        )
        return replace(plan, parents=parents)

    def add(self, plan: Staged, response: TablestoreResponse, rebuild: Rebuild | None = None) -> None:
        """The staged snapshot exists: from now on this invocation's reads see it. `rebuild` stages it once more.

        Raises RetryError TS1890 when another process has dropped it meanwhile.
        """
        table = plan.table
        if rebuild is not None:
            self._shared.apply(events.rebuildable, table, rebuild)
        if response.staged is None:  # nothing is left to change
            self._drop_waiting(table, UNCHANGED)
            self._shared.unchanged(table, response)
            return
        self._drop_waiting(table, "is replaced by this build", keep=plan.name)
        with (
            self._shared.work() as holder
        ):  # nobody publishes it between the look at it and its entry in the book
            self._shared.demand(events.take, holder, table)
            self._enter(plan, response)
        if plan.policy == ALL_OR_NOTHING:  # built again: who does that publishes next
            self._conclude_run()

    def _enter(self, plan: Staged, response: TablestoreResponse) -> None:
        gate, table = self._engine().gate, plan.table
        found = gate.find(table, plan.name)
        if found is None:  # another process published it, or dropped it, since this run wrote it
            if not gate.was_published(table, plan.name, since=response.snapshot_id or 1):
                raise vanished(plan)
            response.mark(published=True)
            return
        item = replace(found, gates=plan.gates)  # of a batch without changes nothing was written
        book = self._shared.state.book.with_added(item)
        reason = explain(item, book, World() if is_held(item) else gate.see(book))
        is_batch = bool(plan.batches)
        self._shared.built(item, response, is_batch=is_batch, reason=reason)

    def is_staged(self, table: str) -> bool:
        """By this invocation, and not published yet."""
        return bool(self._shared.state.own(table))

    def forget(self, table: str, *, is_unchanged: bool = False, is_batch: bool = False) -> None:
        """A node was published at once, or `is_unchanged`: older staged snapshots of it are void.

        `is_batch`: one batch was; others of this invocation may be staged, since their parent waited then.
        """
        self._load([database_of(table)])
        why = UNCHANGED if is_unchanged else "is dropped: this run publishes at once"
        self._drop_waiting(table, why, for_batch=is_batch)

    def clear_unpublished(self, table: str, plan: Staged | None) -> None:
        """Before a new build of a table that nobody ever saw: its rejected rows must not fix key and columns."""
        if self._shared.state.book.of_table(table) and self._has_no_rows(table):
            keep = self._shared.state.branch if plan is None else plan.name
            self._drop_waiting(table, "is replaced by this build", keep=keep)

    def finish_pending(self, table: str) -> bool:
        """What an earlier run began is finished first: a publication, and taking another table's place."""
        self._load([database_of(table)])
        with self._shared.work() as holder:
            self._shared.demand(events.take, holder, table)
            self._engine().gate.finish_replacement(table)
            return self._publisher.publish_pending(table)

    def _drop_waiting(
        self, table: str, why: str, keep: str | None = None, *, for_batch: bool = False
    ) -> None:
        with self._shared.work() as holder:
            for action in self._shared.demand(events.drop_waiting, holder, table, keep, for_batch=for_batch):
                if isinstance(action, DropStaged):
                    tell = logger.warning if action.item.batches else logger.info
                    tell(dropped(action.item, action.root, why))
                    self._engine().gate.drop(action.item)
                    self._shared.apply(events.gone, action.item)

    # testing and publishing ----------------------------------------------------------------------

    def record(
        self,
        outcome: Outcome,
        databases: Collection[str],
        elsewhere: Collection[str] = (),
        recheck: Recheck | None = None,
        nodes: Nodes | None = None,
    ) -> tuple[str, ...]:
        """A test ran: persist its outcome, publish what is free now; log lines come back.

        `elsewhere`: tables that it read at another version by the user's wish; `recheck` runs it once more; `nodes`:
        dbt's graph. Raises RetryError TS1876 when something that is free could not be published.
        """
        self._nodes = self._nodes if nodes is None else nodes
        self._load(databases)
        if recheck is not None and not elsewhere:
            self._shared.apply(events.ran, outcome.test, recheck)
        self._shared.settled(lambda: [one.owner for one in self._shared.state.gated_by(outcome.test)])
        with self._shared.work() as holder:
            self._shared.apply(concludes, holder, outcome)
            gate = self._engine().gate.looking_once()
            is_asked = self._publisher.keep(outcome, elsewhere, gate)
            return self._publisher.publish(Ask(holder, test=outcome.test), gate) if is_asked else ()

    def publish_asked(self, nodes: frozenset[str], databases: Collection[str]) -> tuple[str, ...]:
        """`run-operation tablestore_publish`: lets manual ones go; gates still hold. Raises RetryError TS1876."""
        self._load(databases, drops_old=False)  # the user asks for what is there
        staged = self._shared.state.book.staged
        wanted = frozenset(item.table for item in staged if not nodes or item.owner in nodes)
        return self._publisher.publish(Ask(me(), wanted=wanted))

    def publish_free(self, table: str, node: str | None = None) -> tuple[str, ...]:
        """Behind a node's write: what it waited for may be out by now. Lines for the log. Raises RetryError TS1876.

        `node`: it is built; None after an error.
        """
        if node is not None:
            self._shared.apply(node_built, node)
        with self._shared.work() as holder:
            gate = self._conclude_run(holder)
            lines = self._publisher.publish(Ask(holder, test=gate)) if gate else ()
            ask = Ask(holder, table=table)
            return (*lines, *(self._publisher.publish(ask) if ask.own(self._shared.state) else ()))

    def _conclude_run(self, holder: int | None = None) -> str:
        """The gate of the run, when all that it waits for is built; empty when nothing waits for that.

        `holder`: publishes next, so that nobody begins to read what is about to go.
        """
        outcome = run_outcome(self._shared.state)
        if outcome is None:
            return ""
        if holder is not None:
            self._shared.apply(concludes, holder, outcome)
        self._publisher.keep(outcome)
        return outcome.test

    # reading -------------------------------------------------------------------------------------

    def branches_for(self, node: str, databases: Collection[str]) -> Mapping[str, str]:
        """table -> branch that reads of `node` should see."""
        is_test = node.startswith("test.")
        if is_test:
            self._load(databases)
        above = list_sources if is_test else list_ancestors
        state = self._shared.settled(lambda: {node, *above(self._nodes, node)})
        rowless = [table for table in sorted(state.left()) if self._has_no_rows(table)] if is_test else ()
        return state.seen_by(node, rowless)

    def _has_no_rows(self, table: str) -> bool:
        found = self._engine().find_seen_table(table)
        return found is not None and found.latest_snapshot_id() is None

    def take_held_back(self) -> tuple[str, ...]:
        """What of this invocation stays unpublished, a line each and one for all; each is told once."""
        lines: list[str] = []
        for action in self._shared.demand(events.ended, me()):
            if isinstance(action, SayHeld):
                world = self._engine().gate.see(action.book)
                for item in action.items:
                    reason = with_missing(self._shared.state, item, explain(item, action.book, world))
                    if not item.is_out:
                        self._shared.hold(item.table, reason)
                    lines.append(held_line(item, reason))
                ends = [kept_until_ms(item, action.book) for item in action.items]
                lines.append(summary(action.items, ends))
        return tuple(lines)

    def _load(self, databases: Iterable[str], *, drops_old: bool = True) -> None:
        """Staged snapshots of earlier processes, once per database; those past their retention are dropped."""
        new = sorted(set(databases) - self._shared.state.loaded)
        if new:
            book = self._engine().gate.read_book(*new)
            dropped = self._drop_old(book) if drops_old else ()
            left = book.without(*(one.item for one in dropped)).staged
            self._shared.apply(events.loaded, frozenset(new), left)
            for one in dropped:  # of another database, or entered by another thread meanwhile
                self._shared.apply(events.gone, one.item)

    def _drop_old(self, book: GateBook) -> tuple[ExpiredStage, ...]:
        """What is past `tablestore.staged-retention`, with a warning for each."""
        try:
            dropped = drop_expired(self._engine().gate, book, spared=self._continued)
        except (TablestoreError, OSError) as error:
            logger.warning(f"staged snapshots that are past their retention were not dropped: {error}")
            return ()
        for one in dropped:
            logger.warning(f"{one.line()}{lost_note(one.item.batches)}")
        return dropped


def database_of(table: str) -> str:
    """`db` of `db.table`."""
    return table.split(".", maxsplit=1)[0]
