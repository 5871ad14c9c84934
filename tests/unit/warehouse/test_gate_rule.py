"""The rule of the gate: what may be published, when, and with whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablestore_engine.catalog.read_log import TableRead
from tablestore_engine.warehouse.gate.gate_rule import (
    GateBook,
    Outcome,
    Staged,
    Verdict,
    World,
    bound_group,
    explain,
    is_held,
    needs_world,
    pick_group,
)

OLD = World({"d.orders": "main:1", "d.daily": "main:2", "d.customers": "main:3"})
ORDERS = Staged("d.orders", "s", "run:orders", 2, gates=("test.p.unique", "test.p.relation"))
DAILY = Staged("d.daily", "s", "run:daily", 2, gates=("test.p.relation",))


def said(item: Staged, test: str, verdict: str = Verdict.GREEN, *others: TableRead) -> Staged:
    """`item` after a test that read it, and others."""
    return item.with_outcome(Outcome(test, verdict, (item.as_read, *others)))


def names(group: tuple[Staged, ...]) -> list[str]:
    """Their tables."""
    return [item.table for item in group]


def test_nothing_is_published_before_every_gate_spoke() -> None:
    """One green test of two is not enough."""
    assert pick_group(GateBook((said(ORDERS, "test.p.unique"),)), OLD) == ()


@pytest.mark.parametrize("verdict", [Verdict.RED, Verdict.ERROR])
def test_red_and_broken_tests_hold_back(verdict: Verdict) -> None:
    """A test that could not run has not said yes."""
    item = said(said(ORDERS, "test.p.unique"), "test.p.relation", verdict)
    assert pick_group(GateBook((item,)), OLD) == ()
    assert explain(item, GateBook((item,)), OLD) == "red: relation"


def test_a_repeated_test_replaces_what_it_said() -> None:
    """dbt retry runs the red test again; green then counts."""
    one = Staged("d.x", "s", "run:x", 1, gates=("t",))
    assert names(pick_group(GateBook((said(said(one, "t", Verdict.RED), "t"),)), OLD)) == ["d.x"]


def test_a_test_of_other_rows_says_nothing() -> None:
    """Green or red at a past snapshot: the gate is still open."""
    one = Staged("d.orders", "s", "run:orders", 2, gates=("t",))
    for verdict in (Verdict.GREEN, Verdict.RED):
        past = one.with_outcome(Outcome("t", verdict, (TableRead("d.orders", "main:1", 1),)))
        assert pick_group(GateBook((past,)), OLD) == ()
        assert explain(past, GateBook((past,)), OLD) == "waiting for t"


def test_a_test_whose_reads_nobody_knows_counts() -> None:
    """It has named no rows of the table, neither plainly nor at a version: red holds back all the same."""
    one = Staged("d.orders", "s", "run:orders", 2, gates=("t",))
    assert pick_group(GateBook((one.with_outcome(Outcome("t", Verdict.GREEN)),)), OLD) != ()
    assert pick_group(GateBook((one.with_outcome(Outcome("t", Verdict.RED)),)), OLD) == ()


AT_1 = TableRead("d.orders", "main:1", 1)


@pytest.mark.parametrize("verdict", [Verdict.GREEN, Verdict.RED])
def test_a_test_that_reads_other_versions_by_name_is_no_gate(verdict: Verdict) -> None:
    """ref('orders').at(1) only: it opens nothing, closes nothing, and nobody waits for it."""
    one = Staged("d.orders", "s", "run:orders", 2, gates=("at", "t"))
    abstained = one.with_outcome(Outcome("at", verdict, (), (AT_1,)))
    assert pick_group(GateBook((abstained,)), OLD) == ()
    assert explain(abstained, GateBook((abstained,)), OLD) == "waiting for t"
    assert names(pick_group(GateBook((said(abstained, "t"),)), OLD)) == ["d.orders"]
    alone = replace(abstained, gates=("at",))
    assert names(pick_group(GateBook((alone,)), OLD)) == ["d.orders"]


def test_abstaining_binds_nobody_and_takes_nothing_back() -> None:
    """What was red stays red; a table that the test read plainly is gated by it; an error may have read more."""
    one = Staged("d.orders", "s", "run:orders", 2, gates=("t",))
    at = Outcome("t", Verdict.GREEN, (TableRead("d.daily", "main:2", 1),), (AT_1,))
    red = said(one, "t", Verdict.RED)
    assert red.with_outcome(at) == red
    assert said(one.with_outcome(at), "t", Verdict.RED).red_gates == ("t",)
    assert one.with_outcome(at).bound_reads == ()
    assert Staged("d.daily", "s", "run:daily", 2, gates=("t",)).with_outcome(at).missing_gates == ("t",)
    assert one.with_outcome(replace(at, verdict=Verdict.ERROR)).red_gates == ("t",)


def test_a_name_of_the_staged_rows_is_not_another_version() -> None:
    """tablestore_staged(ref('orders')) names the very rows that wait: the test counts for them."""
    one = Staged("d.orders", "s", "run:orders", 2, gates=("t",))
    for verdict, free in ((Verdict.GREEN, ["d.orders"]), (Verdict.RED, [])):
        named = one.with_outcome(Outcome("t", verdict, (), (AT_1, one.as_read)))
        assert names(pick_group(GateBook((named,)), OLD)) == free


def test_staged_tables_that_one_test_read_go_out_together() -> None:
    """The relation was green for both new versions: neither goes alone, in whichever order they become free."""
    daily = said(DAILY, "test.p.relation", Verdict.GREEN, ORDERS.as_read)
    orders = said(ORDERS, "test.p.relation", Verdict.GREEN, DAILY.as_read)
    book = GateBook((daily, orders))
    assert pick_group(book, OLD) == ()
    assert explain(daily, book, OLD) == "is published together with d.orders: waiting for unique"
    free = book.with_added(said(orders, "test.p.unique"))
    assert names(pick_group(free, OLD)) == ["d.daily", "d.orders"]
    red = book.with_added(said(orders, "test.p.unique", Verdict.RED))
    assert pick_group(red, OLD) == ()
    assert explain(daily, red, OLD) == "is published together with d.orders: red: unique"


def test_a_gate_of_one_binds_the_other_too() -> None:
    """orders has no gate of its own among the selected tests; it still waits for the one that read it."""
    daily = said(DAILY, "test.p.relation", Verdict.GREEN, ORDERS.as_read)
    orders = replace(ORDERS, gates=())
    assert names(bound_group(orders, GateBook((daily, orders)))) == ["d.daily", "d.orders"]


def test_published_rows_that_moved_make_a_verdict_old() -> None:
    """The test read orders as they were: it runs again before daily goes out."""
    daily = said(DAILY, "test.p.relation", Verdict.GREEN, TableRead("d.orders", "main:1", 1))
    assert names(pick_group(GateBook((daily,)), OLD)) == ["d.daily"]
    moved = World({**OLD.current, "d.orders": "other:7"})
    assert pick_group(GateBook((daily,)), moved) == ()
    assert "run it again" in explain(daily, GateBook((daily,)), moved)


def test_half_a_group_is_finished() -> None:
    """Killed between two claims: orders is out with the very rows that the test read, so daily follows."""
    daily = said(DAILY, "test.p.relation", Verdict.GREEN, ORDERS.as_read)
    after = World({**OLD.current, "d.orders": ORDERS.version})
    assert names(pick_group(GateBook((daily,)), after)) == ["d.daily"]
    later = World({**OLD.current, "d.orders": "other:9"})
    assert pick_group(GateBook((daily,)), later) == ()


def test_children_follow_their_parents() -> None:
    """Rows built from staged rows go out after these; never when these are gone."""
    child = Staged("d.child", "s", "run:child", 1, parents=(ORDERS.as_read,))
    free = said(said(ORDERS, "test.p.unique"), "test.p.relation")
    assert names(pick_group(GateBook((child, free)), OLD)) == ["d.orders"]
    assert "built from staged rows of d.orders" in explain(child, GateBook((child, ORDERS)), OLD)
    out = replace(OLD, past=frozenset({("d.orders", ORDERS.version)}))
    assert names(pick_group(GateBook((child,)), out)) == ["d.child"]
    assert "build it again" in explain(child, GateBook((child,)), OLD)


def test_parents_go_first_within_a_group() -> None:
    """Whatever their names are."""
    parent = said(Staged("d.z", "s", "run:z", 1, gates=("t",)), "t")
    child = said(
        Staged("d.a", "s", "run:a", 1, gates=("t",), parents=(parent.as_read,)), "t", "green", parent.as_read
    )
    assert names(pick_group(GateBook((child, parent)), OLD)) == ["d.z", "d.a"]


def test_manual_waits_to_be_asked() -> None:
    """Tests never publish a manual model; asking does not open a red gate."""
    manual = Staged("d.x", "s", "run:x", 1, policy="manual")
    assert pick_group(GateBook((manual,)), OLD) == ()
    assert "tablestore_publish" in explain(manual, GateBook((manual,)), OLD)
    assert names(pick_group(GateBook((manual,)), OLD, asked=frozenset({"d.x"}))) == ["d.x"]
    red = said(replace(manual, gates=("t",)), "t", Verdict.RED)
    assert pick_group(GateBook((red,)), OLD, asked=frozenset({"d.x"})) == ()


def test_a_pending_log_goes_alone() -> None:
    """What is in the table already waits for nobody, and nobody waits for it."""
    orders = replace(said(ORDERS, "test.p.relation", "green", DAILY.as_read), is_out=True)
    daily = said(DAILY, "test.p.relation", Verdict.RED, ORDERS.as_read)
    assert names(pick_group(GateBook((daily, orders)), OLD)) == ["d.orders"]
    assert "pending" in explain(orders, GateBook((orders,)), OLD)


def test_a_replaced_snapshot_takes_its_children_along() -> None:
    """At any depth: their rows are made from the old one."""
    child = Staged("d.child", "s", "run:child", 1, parents=(ORDERS.as_read,))
    grandchild = Staged("d.grand", "s", "run:grand", 1, parents=(child.as_read,))
    book = GateBook((ORDERS, DAILY, child, grandchild))
    assert sorted(names(book.with_children(ORDERS))) == ["d.child", "d.grand", "d.orders"]


def test_nobody_looks_at_readers_while_every_group_is_held_by_its_own_gates() -> None:
    """What readers see decides only once a group has nothing of its own to wait for: then pick_group may find it."""
    waiting = GateBook((said(ORDERS, "test.p.unique"), DAILY))
    assert not needs_world(waiting)
    assert is_held(ORDERS)
    free = said(said(ORDERS, "test.p.unique"), "test.p.relation")
    assert needs_world(GateBook((free, DAILY)))
    assert not is_held(free)
    manual = replace(free, policy="manual")
    assert not needs_world(GateBook((manual,)))
    assert needs_world(GateBook((manual,)), frozenset({manual.table}))
    assert needs_world(GateBook((replace(ORDERS, is_out=True),)))
