"""What a thread publishes next, plans again or waits for, decision by decision: no Spark, no thread, no file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_events import Wait
from dbt.adapters.tablestore.gate.gate_state import GateState, GateStep, Lease
from dbt.adapters.tablestore.gate.publish_decisions import (
    ATTEMPTS_MAX,
    Ask,
    LookAgain,
    Next,
    Publish,
    Replan,
    StartOver,
    concludes,
    published,
    rechecks,
)
from tablestore_engine.api import WriteReport
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import RetryError, StagedSnapshotOvertaken
from tablestore_engine.spi import (
    PENDING,
    PUBLISHED,
    REFUSED,
    Outcome,
    Publication,
    Staged,
    TableRead,
    Verdict,
    World,
)

ME, OTHER = 1, 2
TEST = Ask(ME, test="test.a")


def rebuild(_: int) -> None:
    """Stages once more."""


def recheck() -> Outcome:
    """Runs once more."""
    return Outcome("test.a", Verdict.GREEN)


def staged(name: str, *gates: str, parents: tuple[Staged, ...] = (), policy: str = "auto") -> Staged:
    """By this run."""
    made = Staged(f"d.{name}", "s", f"{name}:1", owner=f"model.{name}", policy=policy, gates=gates)
    return replace(made, parents=tuple(one.as_read for one in parents))


def said(
    item: Staged, test: str, *more: TableRead, verdict: str = Verdict.GREEN
) -> Callable[[GateState], GateStep]:
    """A test has read it, and other tables."""
    return do(events.said, item.key, Outcome(test, verdict, (item.as_read, *more)))


def do(change: Callable[..., GateStep], *about: object, **named: object) -> Callable[[GateState], GateStep]:
    """An event, for any state."""
    return lambda state: change(state, *about, **named)


def after(*happened: Callable[[GateState], GateStep], state: GateState | None = None) -> GateState:
    """The state behind these."""
    state = state or GateState()
    for event in happened:
        state = event(state).state
    return state


def decide(state: GateState, ask: Ask = TEST, world: World | None = None, *results: Publication) -> object:
    """The one action; None when nothing is left to do."""
    actions = Next(ask, state.book, world or World(), results).change(state).actions
    return actions[0] if actions else None


def out(item: Staged) -> Publication:
    """It is out."""
    return Publication(item, PUBLISHED, WriteReport(Identifier.parse(item.table), 1))


def pending(item: Staged) -> Publication:
    """Its log is not."""
    error = RetryError("TS1799", "", why="", fix="")
    return Publication(item, PENDING, WriteReport(Identifier.parse(item.table), 1), error)


def lost(item: Staged) -> Publication:
    """Somebody else's rows came first."""
    return Publication(item, REFUSED, error=StagedSnapshotOvertaken("TS1075", "", why="", fix=""))


A, B, FREE = staged("a", "test.a"), staged("b", "test.b"), staged("f")
CHILD = staged("c", parents=(A,))
READY = after(do(events.built, A), said(A, "test.a"))
(READY_A,) = READY.book.staged


# publishing ----------------------------------------------------------------------------------------


def test_what_is_green_goes_out_and_is_in_progress() -> None:
    """From this moment on nobody else gets it; what waits for a verdict stays."""
    assert decide(after(do(events.built, A))) is None
    step = Next(TEST, READY.book, World()).change(READY)
    assert step.actions == (Publish(Lease(ME, (READY_A,))),)
    assert step.state.leases == (Lease(ME, (READY_A,)),)
    assert decide(step.state, Ask(OTHER, test="test.x")) is None


def test_who_writes_a_batch_publishes_the_table() -> None:
    """Others leave it to him, and do not wait."""
    state = after(do(events.batch_began, OTHER, "d.a"), state=READY)
    assert decide(state) is None
    assert decide(state, Ask(OTHER, table="d.a")) == Publish(Lease(OTHER, (READY_A,)))


def test_red_and_manual_stay() -> None:
    """Until the user lets a manual one go."""
    assert decide(after(do(events.built, A), said(A, "test.a", verdict=Verdict.RED))) is None
    manual = staged("m", policy="manual")
    state = after(do(events.built, manual))
    assert decide(state) is None
    assert decide(state, Ask(ME, wanted=frozenset({"d.m"}))) == Publish(Lease(ME, (manual,)))


def test_a_group_goes_whole_and_in_order() -> None:
    """What a test has read together is one lease, parents first."""
    child = staged("c", "test.a", parents=(A,))
    state = after(
        do(events.built, child),
        do(events.built, A),
        said(A, "test.a", child.as_read),
        said(child, "test.a", A.as_read),
    )
    action = decide(state)
    assert isinstance(action, Publish)
    assert [one.table for one in action.lease.items] == ["d.a", "d.c"]


def test_a_decision_stands_on_the_book_that_was_looked_at() -> None:
    """What another thread has changed meanwhile is looked at first."""
    step = Next(TEST, after(do(events.built, A)).book, World()).change(READY)
    assert (step.state, step.actions) == (READY, (LookAgain(),))


def test_what_was_refused_is_not_tried_again_by_the_same_ask() -> None:
    """Other groups are."""
    state = after(do(events.built, FREE), state=READY)
    refused = Publication(READY_A, REFUSED, error=RetryError("TS1082", "", why="", fix=""))
    assert decide(state, TEST, World(), refused) == Publish(Lease(ME, (FREE,)))
    assert decide(READY, TEST, World(), refused) is None


def test_behind_a_build_only_its_own_group_goes_out() -> None:
    """What is free besides waits for a test that asks."""
    state = after(do(events.built, FREE), do(events.built, staged("g")))
    assert decide(state, Ask(ME, table="d.g")) == Publish(Lease(ME, (staged("g"),)))
    assert decide(after(do(events.built, FREE)), Ask(ME, table="d.g")) is None


def test_what_a_last_test_lets_go_is_in_progress_before_the_outcome_is_kept() -> None:
    """Not what waits for another test, is red, or is another thread's; Next lets go of what cannot be published."""
    more, busy = staged("m", "test.a", "test.m"), staged("z", "test.a")
    state = after(do(events.built, A), do(events.built, more), do(events.built, busy)).with_lease(
        Lease(OTHER, (busy,))
    )
    reads = tuple(one.as_read for one in (A, more, busy))
    step = concludes(state, ME, Outcome("test.a", Verdict.GREEN, reads))
    assert step.state.leases == (Lease(OTHER, (busy,)), Lease(ME, (A,)))
    assert concludes(state, ME, Outcome("test.a", Verdict.RED, reads)).state == state
    stopped = Next(TEST, state.book, World()).change(step.state)
    assert stopped.state.leases == (Lease(OTHER, (busy,)),)


# what became of it ---------------------------------------------------------------------------------


def test_published_is_forgotten_and_pending_is_out() -> None:
    """Neither is in progress any more; a pending one is still the run's own."""
    leased = READY.with_lease(Lease(ME, (READY_A,)))
    done = after(do(published, Lease(ME, (READY_A,)), (out(READY_A),)), state=leased)
    assert (done.book.staged, done.mine, done.leases) == ((), frozenset(), ())
    waits = after(do(published, Lease(ME, (READY_A,)), (pending(READY_A),)), state=leased)
    assert (waits.pending("d.a"), waits.mine, waits.leases) == (
        (replace(READY_A, is_out=True),),
        frozenset({A.key}),
        (),
    )


def test_what_was_overtaken_stays_in_progress_until_it_is_decided() -> None:
    """Nobody else tries it meanwhile."""
    lease = Lease(ME, (READY_A,))
    state = after(do(published, lease, (lost(READY_A),)), state=READY.with_lease(lease))
    assert state.leases == (Lease(ME, (READY_A,), is_lost=True),)
    assert state.book == READY.book
    assert decide(state, Ask(OTHER, test="test.x")) is None


def test_what_follows_is_in_progress_until_it_is_out_or_cannot_go() -> None:
    """No batch may join a child whose parent is out, which goes next; one that waits for its test is not meant."""
    late, lease = staged("l", "test.l", parents=(A,)), Lease(ME, (READY_A,))
    busy = staged("z", parents=(A,))
    state = after(
        do(events.built, CHILD), do(events.built, late), do(events.built, busy), state=READY
    ).with_lease(lease)
    state = after(do(published, lease, (out(READY_A),)), state=state.with_lease(Lease(OTHER, (busy,))))
    assert state.leases == (Lease(OTHER, (busy,)), Lease(ME, (CHILD,)))
    world = World({}, frozenset({("d.a", "a:1")}))
    assert decide(state, TEST, world) == Publish(Lease(ME, (CHILD,)))
    stopped = Next(TEST, state.book, world, (Publication(CHILD, REFUSED),)).change(state).state
    assert stopped.leases == (Lease(OTHER, (busy,)),)


# planning again ------------------------------------------------------------------------------------


def overtaken(*happened: Callable[[GateState], GateStep], lease: Lease | None = None) -> GateState:
    """A was refused; this run can build it again."""
    state = after(*happened, do(events.rebuildable, "d.a", rebuild), state=READY)
    return state.with_lease(lease or Lease(ME, (READY_A,), is_lost=True))


def test_what_was_lost_is_built_again_with_its_children() -> None:
    """Parents first, with the number of the attempt; what it is built from stays as it is meanwhile."""
    base = staged("p")
    child = staged("c", parents=(A, base))
    state = overtaken(do(events.built, child), do(events.rebuildable, "d.c", rebuild))
    step = Next(TEST, state.book, World(), (lost(READY_A),)).change(state)
    lease = Lease(ME, (READY_A, child), also=frozenset({"d.a", "d.p"}))
    assert step.actions == (Replan(lease, ((READY_A, rebuild, 1), (child, rebuild, 1))),)
    assert (step.state.leases, step.state.attempts) == ((lease,), {"d.a": 1, "d.c": 1})


def test_other_groups_go_first() -> None:
    """A rebuild takes long."""
    state = overtaken(do(events.built, FREE))
    assert decide(state, TEST, World(), lost(READY_A)) == Publish(Lease(ME, (FREE,)))


def test_what_cannot_be_built_again_is_given_up() -> None:
    """No way for a child, or tried often enough: it is nobody's any more, and the ask ends."""
    for state in (overtaken(do(events.built, CHILD)), replace(overtaken(), attempts={"d.a": ATTEMPTS_MAX})):
        step = Next(TEST, state.book, World(), (lost(READY_A),)).change(state)
        assert (step.state.leases, step.actions) == ((), ())


def test_what_others_are_at_is_not_built_again() -> None:
    """The loser lets go of all before he waits, and starts over."""
    state = overtaken(do(events.built, CHILD), do(events.rebuildable, "d.c", rebuild)).with_lease(
        Lease(OTHER, (CHILD,))
    )
    step = Next(TEST, state.book, World(), (lost(READY_A),)).change(state)
    assert step.actions == (StartOver(frozenset({"d.c"})),)
    assert step.state.leases == (Lease(OTHER, (CHILD,)),)
    assert not step.state.attempts


def test_every_test_that_has_run_runs_again() -> None:
    """Also one that has ended while others ran; not one that comes later anyhow."""
    lease = Lease(ME, (A,))
    item = staged("a", "test.a", "test.later", "test.b")
    state = after(
        do(events.built, item), do(events.ran, "test.a", recheck), do(events.ran, "test.x", recheck)
    ).with_lease(lease)
    assert rechecks(state, lease) == (("test.a", recheck),)
    more = after(do(events.ran, "test.b", recheck), state=state)
    assert rechecks(more, lease, frozenset({"test.a"})) == (("test.b", recheck),)
    assert rechecks(more, lease, frozenset({"test.a", "test.b"})) == ()


def test_what_was_built_again_is_in_progress_until_it_is_out() -> None:
    """Nobody begins to read a branch that is about to go; when nothing more can go, it is let go."""
    child = staged("c", "test.c", parents=(A,))
    built = Lease(ME, (READY_A, child))
    state = after(do(events.built, child), state=READY).with_lease(built)
    step = Next(TEST, state.book, World()).change(state)
    assert step.state.leases == (built, Lease(ME, (READY_A,)))
    state = after(do(published, Lease(ME, (READY_A,)), (out(READY_A),)), state=step.state)
    assert state.leases == (built,)
    step = Next(TEST, state.book, World({}, frozenset({("d.a", "a:1")}))).change(state)
    assert (step.actions, step.state.leases) == ((), ())


# beside other threads ------------------------------------------------------------------------------


def test_what_another_thread_publishes_is_waited_for_by_who_asks_for_it() -> None:
    """Its test; another test goes on."""
    state = READY.with_lease(Lease(OTHER, (READY_A,)))
    assert decide(state) == Wait(frozenset({"d.a"}))
    assert decide(state, Ask(ME, test="test.x")) is None


def test_a_child_waits_for_the_parent_that_another_thread_publishes() -> None:
    """If it would be free then; readers never see it first."""
    child = staged("c", "test.c", parents=(A,))
    state = after(do(events.built, child), state=READY).with_lease(Lease(OTHER, (READY_A,)))
    assert decide(state, Ask(ME, test="test.c")) is None  # it has a gate that has not spoken
    state = after(said(child, "test.c"), state=state)
    assert decide(state, Ask(ME, test="test.c")) == Wait(frozenset({"d.a"}))
    seen = World({"d.a": "a:1"}, frozenset({("d.a", "a:1")}))
    assert decide(state, Ask(ME, test="test.c"), seen) == Wait(frozenset({"d.a"}))
    assert isinstance(decide(replace(state, leases=()), Ask(ME, test="test.c"), seen), Publish)


def test_rows_that_tests_have_read_must_not_move_meanwhile() -> None:
    """A group whose test read a table that another thread publishes is not published beside it."""
    read = TableRead("d.b", "b:0")
    state = after(do(events.built, A), said(A, "test.a", read), do(events.built, B)).with_lease(
        Lease(OTHER, (B,))
    )
    world = World({"d.b": "b:0"})
    assert decide(state, TEST, world) == Wait(frozenset({"d.b"}))  # b may be refused: then it can go
    assert isinstance(decide(replace(state, leases=()), TEST, world), Publish)


def test_who_was_refused_does_not_wait_for_others() -> None:
    """His group is lost to this ask."""
    child = staged("c", "test.c", parents=(A,))
    state = after(do(events.built, child), said(child, "test.c"), state=READY).with_lease(
        Lease(OTHER, (READY_A,))
    )
    refused = Publication(child, REFUSED, error=RetryError("TS1082", "", why="", fix=""))
    assert decide(state, Ask(ME, test="test.c"), World(), refused) is None


def test_other_groups_go_out_while_one_is_in_progress() -> None:
    """They have nothing to do with it."""
    state = after(do(events.built, FREE), state=READY).with_lease(Lease(OTHER, (READY_A,)))
    assert decide(state, Ask(ME, test="test.x")) == Publish(Lease(ME, (FREE,)))


def test_what_is_out_binds_nobody() -> None:
    """Its log is sent by whoever asks next; no test waits for it."""
    item = replace(READY_A, is_out=True)
    state = after(do(events.built, item))
    assert Ask(ME, test="test.a").own(state) == ()
    assert decide(state) == Publish(Lease(ME, (item,)))
