"""The book of staged snapshots: what may be published, and when."""

from __future__ import annotations

import pytest

from dbt.adapters.tablestore.gate import GateBook, Staged, Verdict, combine_verdict, explain, pick_publishable

ORDERS = Staged("model.p.orders", "demo.orders", "dbt_1", "auto", gates=("test.p.unique", "test.p.relation"))
DAILY = Staged(
    "model.p.daily", "demo.daily", "dbt_1", "auto", gates=("test.p.relation",), parents=("model.p.orders",)
)
MANUAL = Staged("model.p.audit", "demo.audit", "dbt_1", "manual")


def book(*items: Staged) -> GateBook:
    """A book with these staged snapshots."""
    return GateBook(items)


def names(items: tuple[Staged, ...]) -> list[str]:
    """Their tables."""
    return [item.table for item in items]


def test_nothing_is_published_before_every_gate_ran() -> None:
    """One green test of two is not enough."""
    after = book(ORDERS).with_verdict("test.p.unique", Verdict.GREEN)
    assert pick_publishable(after) == ()


def test_the_last_green_gate_publishes_parents_first() -> None:
    """A test shared by parent and child frees both, the parent before the child."""
    after = (
        book(DAILY, ORDERS)
        .with_verdict("test.p.unique", Verdict.GREEN)
        .with_verdict("test.p.relation", Verdict.GREEN)
    )
    assert names(pick_publishable(after)) == ["demo.orders", "demo.daily"]


@pytest.mark.parametrize("verdict", [Verdict.RED, Verdict.ERROR])
def test_a_red_parent_holds_back_its_green_children(verdict: Verdict) -> None:
    """A child built from unaudited rows is not published, however green it is."""
    child = Staged("model.p.c", "demo.c", "dbt_1", "auto", gates=("test.p.c",), parents=("model.p.orders",))
    after = book(ORDERS, child).with_verdict("test.p.c", Verdict.GREEN).with_verdict("test.p.unique", verdict)
    after = after.with_verdict("test.p.relation", Verdict.GREEN)
    assert pick_publishable(after) == ()


def test_an_ungated_child_follows_its_parent() -> None:
    """A model without tests that reads staged rows waits for them, and only for them."""
    child = Staged("model.p.c", "demo.c", "dbt_1", "auto", parents=("model.p.orders",))
    before = book(child, ORDERS)
    assert pick_publishable(before) == ()
    after = before.with_verdict("test.p.unique", Verdict.GREEN).with_verdict("test.p.relation", Verdict.GREEN)
    assert names(pick_publishable(after)) == ["demo.orders", "demo.c"]


def test_manual_waits_to_be_asked() -> None:
    """Tests never publish a manual model; the operation does."""
    assert pick_publishable(book(MANUAL)) == ()
    assert names(pick_publishable(book(MANUAL), frozenset({"model.p.audit"}))) == ["demo.audit"]


def test_asking_does_not_open_a_red_gate() -> None:
    """Not even the operation publishes what a test refused."""
    red = Staged("model.p.x", "demo.x", "b", "manual", gates=("t",)).with_verdict("t", Verdict.RED)
    assert pick_publishable(book(red), frozenset({"model.p.x"})) == ()


def test_a_repeated_test_replaces_its_verdict() -> None:
    """dbt retry runs the red test again; green then counts."""
    one = Staged("model.p.x", "demo.x", "b", "auto", gates=("t",))
    after = book(one).with_verdict("t", Verdict.RED).with_verdict("t", Verdict.GREEN)
    assert names(pick_publishable(after)) == ["demo.x"]


def test_a_new_build_voids_what_was_built_from_the_old_one() -> None:
    """Children of a replaced staged snapshot, at any depth, leave the book: their rows are from the old one."""
    grandchild = Staged("model.p.g", "demo.g", "dbt_1", "auto", parents=("model.p.daily",))
    after = book(ORDERS, DAILY, grandchild, MANUAL).with_staged(
        Staged("model.p.orders", "demo.orders", "dbt_2", "auto")
    )
    assert sorted(names(after.staged)) == ["demo.audit", "demo.orders"]
    assert after.find("model.p.orders") == Staged("model.p.orders", "demo.orders", "dbt_2", "auto")


def test_publishing_a_parent_frees_its_children() -> None:
    """After without(), nobody waits for the published node."""
    after = book(ORDERS, DAILY).without("model.p.orders")
    assert after.staged == (Staged("model.p.daily", "demo.daily", "dbt_1", "auto", ("test.p.relation",), ()),)


@pytest.mark.parametrize(
    ("row", "severity", "warn_is_error", "verdict"),
    [
        ((0, False, False), "error", False, Verdict.GREEN),
        ((3, True, True), "error", False, Verdict.RED),
        ((3, True, True), "ERROR", False, Verdict.RED),
        ((3, True, False), "error", False, Verdict.GREEN),
        ((3, True, True), "warn", False, Verdict.GREEN),
        ((3, True, True), "warn", True, Verdict.RED),
        (None, "warn", False, Verdict.ERROR),
        (None, "error", False, Verdict.ERROR),
    ],
)
def test_verdicts_are_those_of_dbt(
    row: tuple[int, bool, bool] | None, severity: str, warn_is_error: bool, verdict: Verdict
) -> None:
    """The same row and severity that dbt calls fail, warn, pass or error give red, green or error here."""
    assert combine_verdict(row, severity, warn_is_error=warn_is_error) is verdict


def test_explanations_name_the_reason() -> None:
    """A user reads which test, which parent, or what to type."""
    red = ORDERS.with_verdict("test.p.unique", Verdict.RED)
    assert explain(red, book(red)) == "red: unique"
    assert explain(ORDERS, book(ORDERS)) == "waiting for unique, relation"
    child = Staged("model.p.c", "demo.c", "b", "auto", parents=("model.p.orders",))
    assert "orders" in explain(child, book(child, ORDERS))
    assert "tablestore_publish" in explain(MANUAL, book(MANUAL))
