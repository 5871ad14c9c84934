"""The gate state, event by event: no Spark, no thread, no file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_events import DropStaged, SayHeld, Wait
from dbt.adapters.tablestore.gate.gate_state import GateState, GateStep, Lease
from tablestore_engine.spi import GateBook, Outcome, Staged, TableRead, Verdict

ME, OTHER = 1, 2
A = Staged("d.a", "mine", "a:1", owner="model.a", gates=("test.a",))
B = Staged("d.b", "mine", "b:1", owner="model.b", parents=(A.as_read,))
OLD = Staged("d.a", "old", "a:0", owner="model.a", gates=("test.a",))
OLD_CHILD = Staged("d.c", "old", "c:0", owner="model.c", parents=(OLD.as_read,))
OUT = Staged("d.o", "old", "o:0", owner="model.o", is_out=True)


def do(change: Callable[..., GateStep], *about: object, **named: object) -> Callable[[GateState], GateStep]:
    """An event, for any state."""
    return lambda state: change(state, *about, **named)


def after(*happened: Callable[[GateState], GateStep], state: GateState | None = None) -> GateState:
    """The state behind these."""
    state = state or GateState()
    for event in happened:
        state = event(state).state
    return state


def taken(*items: Staged, holder: int = OTHER, state: GateState | None = None) -> GateState:
    """The same, with these in progress."""
    return (state or GateState()).with_lease(Lease(holder, items))


# loading and adopting ------------------------------------------------------------------------------


def test_the_first_look_at_a_database_counts() -> None:
    """What a slower thread has read of it may be out by now; what dbt has not made is not the adapter's."""
    stranger = Staged("d.x", "hand", "x:0")
    state = after(do(events.loaded, frozenset({"d"}), (OLD, stranger)))
    assert (state.book.staged, state.loaded) == ((OLD,), frozenset({"d"}))
    elsewhere = Staged("e.t", "old", "t:0", owner="model.t")
    late = after(
        do(events.gone, OLD), do(events.loaded, frozenset({"d", "e"}), (OLD, elsewhere)), state=state
    )
    assert (late.book.staged, late.loaded) == ((elsewhere,), frozenset({"d", "e"}))


def test_what_this_process_staged_is_newer_than_what_lies_there() -> None:
    """A database that is loaded later brings only what is not known yet."""
    known = Staged("d.a", "mine", "a:2", owner="model.a")
    assert after(do(events.built, known), do(events.loaded, frozenset({"d"}), (A, OLD))).book.staged == (
        known,
        OLD,
    )


def test_a_retry_adopts_once() -> None:
    """What lies under the retried runs' names; a thread that comes later adopts nothing more."""
    state = after(do(events.loaded, frozenset({"d"}), (OLD, OUT)), do(events.continued, frozenset({"old"})))
    assert (state.adopted, state.mine, state.is_begun) == (frozenset({OLD.key, OUT.key}), state.adopted, True)
    assert (
        after(do(events.built, A), do(events.continued, frozenset({"mine"})), state=state).adopted
        == state.adopted
    )
    assert not after(do(events.continued, frozenset())).adopted


# building ------------------------------------------------------------------------------------------


def test_what_is_built_is_read_and_takes_the_place_of_the_same_name() -> None:
    """Under the invocation's name; a new version replaces the former one."""
    assert after(do(events.started, "dbt_1")).branch == "dbt_1"
    again = Staged("d.a", "mine", "a:2", owner="model.a")
    state = after(do(events.built, A), do(events.built, B), do(events.built, again))
    assert state.book.staged == (B, again)
    assert state.own("d.a") == (again,)
    assert state.seen_by("model.x", ()) == {"d.a": "mine", "d.b": "mine"}


def test_parents_are_ancestors_and_what_was_read_by_name() -> None:
    """Of this invocation, and never the table itself."""
    state = after(do(events.loaded, frozenset({"d"}), (OLD_CHILD,)), do(events.built, A), do(events.built, B))
    assert state.parents_of("d.b", {"model.a", "model.b", "model.c"}, ()) == (A,)
    assert state.parents_of("d.x", (), {("d.b", "b:1"), ("d.a", "a:0")}) == (B,)


def test_batches_that_join_an_earlier_run_are_told_once() -> None:
    """Those that join what this run has staged are not worth a line; what a retry adopted is an earlier run's."""
    step = events.joined(GateState(), OLD)
    assert step.actions == (OLD,)
    assert events.joined(step.state, OLD).actions == ()
    assert events.joined(after(do(events.built, A)), A).actions == ()
    adopted = after(do(events.loaded, frozenset({"d"}), (OLD,)), do(events.continued, frozenset({"old"})))
    assert events.joined(adopted, OLD).actions == (OLD,)


def test_ways_to_build_and_to_test_again_are_kept() -> None:
    """The last way to build a table counts."""

    def first(_: int) -> None: ...

    def last(_: int) -> None: ...

    def recheck() -> Outcome:
        return Outcome("test.a", Verdict.GREEN)

    state = after(
        do(events.rebuildable, "d.a", first),
        do(events.rebuildable, "d.a", last),
        do(events.ran, "test.a", recheck),
    )
    assert (state.rebuilds, state.rechecks) == ({"d.a": last}, {"test.a": recheck})


def test_states_do_not_share_what_changes() -> None:
    """A state that somebody holds stays as it was."""
    before = after(do(events.rebuildable, "d.a", lambda _: None))
    after(
        do(events.rebuildable, "d.b", lambda _: None),
        do(events.built, A),
        do(events.take, ME, "d.a"),
        state=before,
    )
    assert (set(before.rebuilds), before.book, before.leases) == ({"d.a"}, GateBook(), ())


# verdicts ------------------------------------------------------------------------------------------


def test_an_outcome_counts_for_the_version_that_was_read() -> None:
    """Not for one that was staged meanwhile, and not for one that is gone."""
    green = Outcome("test.a", Verdict.GREEN, (A.as_read,))
    (said,) = after(do(events.built, A), do(events.said, A.key, green)).book.staged
    assert said.is_green
    newer = Staged("d.a", "mine", "a:2", owner="model.a", gates=("test.a",))
    (said,) = after(do(events.built, A), do(events.built, newer), do(events.said, A.key, green)).book.staged
    assert said.missing_gates == ("test.a",)
    assert after(do(events.said, A.key, green)) == GateState()


def test_what_is_gone_is_gone_unless_it_was_staged_anew() -> None:
    """By its version."""
    newer = Staged("d.a", "mine", "a:2", owner="model.a")
    assert after(do(events.built, A), do(events.gone, A)).book.staged == ()
    assert after(do(events.built, newer), do(events.gone, A)).book.staged == (newer,)


def test_tests_read_what_earlier_runs_left() -> None:
    """What they gate, and what has no other rows; models read neither; nobody what is out."""
    state = after(do(events.loaded, frozenset({"d"}), (OLD, OLD_CHILD, OUT)))
    assert state.left() == {"d.a", "d.c"}
    assert state.seen_by("test.a", ()) == {"d.a": "old", "d.c": "old"}
    assert state.seen_by("test.x", ()) == {"d.c": "old"}
    assert state.seen_by("test.x", {"d.a"}) == {"d.a": "old", "d.c": "old"}
    assert state.seen_by("model.x", {"d.a"}) == {}


def test_a_node_that_is_retried_does_not_read_what_it_had_staged() -> None:
    """Others do."""
    state = after(do(events.loaded, frozenset({"d"}), (OLD,)), do(events.continued, frozenset({"old"})))
    assert state.seen_by("model.a", ()) == {}
    assert state.seen_by("model.b", ()) == {"d.a": "old"}


# leases --------------------------------------------------------------------------------------------


def test_a_table_belongs_to_one_thread() -> None:
    """The other one waits; the same one may go on with it."""
    state = after(do(events.take, ME, "d.a"))
    assert events.take(state, OTHER, "d.a").actions == (Wait(frozenset({"d.a"})),)
    assert events.take(state, OTHER, "d.a").state == state
    assert events.take(state, ME, "d.a").actions == ()
    assert after(do(events.take, OTHER, "d.b"), state=state).taken(ME) == {"d.b"}
    assert after(do(events.left, ME), do(events.take, OTHER, "d.a"), state=state).taken(ME) == {"d.a"}


def test_who_leaves_keeps_what_he_had_before() -> None:
    """Work inside of work; what others have stays theirs."""
    outer, inner, others = Lease(ME, (A,)), Lease(ME, (B,)), Lease(OTHER, (OLD_CHILD,))
    state = GateState(leases=(outer, inner, others))
    assert after(do(events.left, ME, (outer,)), state=state).leases == (outer, others)
    assert after(do(events.left, ME), state=state).leases == (others,)


def test_readers_are_told_of_what_others_move() -> None:
    """What the node reads, by whom it was staged; not what is only held still, and not one's own work."""
    state = taken(A)
    assert state.is_moving(ME, {"model.a", "model.b"})
    assert not state.is_moving(ME, {"model.b"})
    assert not state.is_moving(OTHER, {"model.a"})
    assert not after(do(events.take, OTHER, "d.a")).is_moving(ME, {"model.a"})
    assert (state.is_holder(OTHER), state.is_holder(ME)) == (True, False)


# dropping ------------------------------------------------------------------------------------------


@pytest.fixture
def waiting() -> GateState:
    """An earlier run has left a, its child c, and o, whose log waits; this one has staged a and b."""
    return after(
        do(events.loaded, frozenset({"d"}), (OLD, OLD_CHILD, OUT)), do(events.built, A), do(events.built, B)
    )


def test_what_waits_goes_with_what_was_built_from_it(waiting: GateState) -> None:
    """In that order, each once; what is kept by name and what is out already stays."""
    step = events.drop_waiting(waiting, ME, "d.a", keep="mine")
    assert step.actions == (DropStaged(OLD, OLD), DropStaged(OLD_CHILD, OLD))
    assert step.state.leases == (Lease(ME, (OLD, OLD_CHILD)),)
    assert step.state.book == waiting.book  # each goes from the book when it is gone
    assert events.drop_waiting(waiting, ME, "d.o").actions == ()


def test_what_this_run_built_from_it_stays(waiting: GateState) -> None:
    """It waits, and says what for; only the table itself gives up what this run has staged."""
    assert events.drop_waiting(waiting, ME, "d.a").actions == (
        DropStaged(OLD, OLD),
        DropStaged(OLD_CHILD, OLD),
        DropStaged(A, A),
    )


def test_nothing_is_dropped_twice() -> None:
    """A grandchild of two that go."""
    other = Staged("d.a", "older", "a:9", owner="model.a")
    child = Staged("d.c", "old", "c:0", owner="model.c", parents=(OLD.as_read, other.as_read))
    state = after(do(events.loaded, frozenset({"d"}), (OLD, other, child)))
    assert [one.item for one in events.drop_waiting(state, ME, "d.a").actions] == [OLD, child, other]  # type: ignore[attr-defined]


def test_what_others_have_in_progress_is_not_dropped(waiting: GateState) -> None:
    """Who may wait waits for it; who has a lease himself leaves it to them."""
    busy = taken(OLD_CHILD, state=waiting)
    assert events.drop_waiting(busy, ME, "d.a", "mine").actions == (Wait(frozenset({"d.c"})),)
    assert events.drop_waiting(busy, ME, "d.a", "mine").state == busy
    holding = taken(A, holder=ME, state=busy)
    assert events.drop_waiting(holding, ME, "d.a", "mine").actions == (DropStaged(OLD, OLD),)
    assert events.drop_waiting(busy, ME, "d.o").actions == ()


# batches -------------------------------------------------------------------------------------------


def test_batches_of_a_table_are_written_at_once(waiting: GateState) -> None:
    """Each thread ends its own; who publishes the table is waited for."""
    both = after(do(events.batch_began, ME, "d.a"), do(events.batch_began, OTHER, "d.a"))
    assert both.written(ME) == both.written(OTHER) == {"d.a"}
    mine = after(do(events.batch_ended, OTHER, "d.a"), state=both)
    assert (mine.written(ME), mine.written(OTHER)) == (frozenset(), {"d.a"})
    busy = taken(A, state=waiting)
    assert events.batch_began(busy, ME, "d.a").actions == (Wait(frozenset({"d.a"})),)
    assert events.batch_began(busy, ME, "d.a").state == busy


def test_a_wait_for_batches_ends_with_the_last_one() -> None:
    """Another one waits for who has the table in progress alone."""
    state = after(do(events.batch_began, OTHER, "d.a"))
    tables = frozenset({"d.a"})
    assert not Wait(tables, and_batches=True).is_over(ME, state)
    assert Wait(tables).is_over(ME, state)
    assert Wait(tables, and_batches=True).is_over(OTHER, state)
    assert not Wait(tables).is_over(ME, taken(A))


def test_a_batch_that_is_out_drops_no_other_batches(waiting: GateState) -> None:
    """Of this run, wherever they are staged; what earlier runs left, and no batch has joined, goes."""
    drop = do(events.drop_waiting, ME, "d.a", for_batch=True)
    assert drop(waiting).actions == (DropStaged(OLD, OLD), DropStaged(OLD_CHILD, OLD))
    assert drop(after(do(events.joined, OLD), state=waiting)).actions == ()


# the end -------------------------------------------------------------------------------------------


def test_the_end_tells_what_stays_once(waiting: GateState) -> None:
    """Of this invocation; what comes later is told later."""
    step = events.ended(waiting, ME)
    assert step.actions == (SayHeld((A, B), waiting.book),)
    assert events.ended(step.state, ME).actions == ()
    more = Staged("d.z", "mine", "z:1", owner="model.z")
    later = after(do(events.built, more), state=step.state)
    assert events.ended(later, ME).actions == (SayHeld((more,), later.book),)


def test_the_end_waits_for_what_is_in_progress(waiting: GateState) -> None:
    """And tells nothing before."""
    busy = taken(A, state=waiting)
    assert events.ended(busy, ME).actions == (Wait(frozenset({"d.a"})),)
    assert events.ended(busy, ME).state == busy
    assert events.ended(after(do(events.left, OTHER), state=busy), ME).actions == (
        SayHeld((A, B), waiting.book),
    )


def test_reads_by_name_are_of_a_version() -> None:
    """TableRead of a staged snapshot names table and version; other versions are nobody's parent."""
    assert after(do(events.built, A)).parents_of("d.x", (), {("d.a", TableRead("d.a", "a:9").version)}) == ()
