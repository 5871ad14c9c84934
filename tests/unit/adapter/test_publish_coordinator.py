"""The publish coordinator over a real engine: what is staged, read, published and said; no Spark, no dbt."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.adapter_response import TablestoreResponse, describe_commit
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.errors import RetryError, TablestoreError
from tablestore_engine.spi import Staged, Verdict, moment_text, stage_properties

from .staging_run import ALL, NODES, SPEC, Run, latest, staged


def test_auto_is_gated_only_by_tests_of_this_invocation(engine: Engine) -> None:
    """dbt build with the test selected stages; dbt run, or a build without it, publishes at once."""
    assert Run(engine, "a").build("orders")
    assert not Run(engine, "b").build("orders", selected=("model.p.orders",))
    assert latest(engine, "orders") == 1
    assert staged(engine) == []


def test_policies(engine: Engine) -> None:
    """always never stages on its own tests, on_tests stages without them running, manual stages always."""
    only = ("model.p.orders",)
    assert not Run(engine, "a").build("orders", policy="always")
    assert Run(engine, "b").build("orders", 2, "on_tests", only)
    assert Run(engine, "c").build("orders", 3, "manual", only)


def test_children_of_staged_models_are_staged_too(engine: Engine) -> None:
    """Rows made from unaudited rows do not go out first, whatever the child's policy."""
    run = Run(engine, "a")
    assert run.build("orders")
    assert run.build("daily", 1, "always", ("model.p.daily",))
    lines = run.test("unique")
    assert [line.split()[0] for line in lines] == ["demo.orders", "demo.daily"]
    assert (latest(engine, "orders"), latest(engine, "daily")) == (1, 1)


def test_child_written_while_parent_is_published_is_published_behind_its_own_write(engine: Engine) -> None:
    """The parent's last test ends before the child is there: no test comes any more, so the child's write asks."""
    run = Run(engine, "a")
    run.build("orders")
    plan = run.coordinator.plan_staged(
        node="model.p.daily", table="demo.daily", policy="auto", nodes=NODES, selected=("model.p.daily",)
    )
    run.test("unique")
    run.write("demo.daily", 1, plan)
    assert latest(engine, "daily") is None
    assert [line.split()[0] for line in run.coordinator.publish_free("demo.daily")] == ["demo.daily"]
    assert latest(engine, "daily") == 1
    assert staged(engine) == []


def test_publishing_what_is_free_leaves_other_tables_alone(engine: Engine) -> None:
    """What waits for a red parent, and what another table waits for, is no business of a node's write."""
    run = Run(engine, "a")
    run.build("orders")
    run.build("daily", selected=("model.p.daily",))
    assert run.coordinator.publish_free("demo.daily") == ()
    run.test("unique", Verdict.RED)
    assert run.coordinator.publish_free("demo.daily") == ()
    assert staged(engine) == ["demo.daily", "demo.orders"]


def test_red_publishes_nothing_and_says_so_once(engine: Engine) -> None:
    """A line names table and test, one line sums up; asking twice repeats neither."""
    run = Run(engine, "aaaa-bbbb-cccc-dddd")
    run.build("orders")
    run.test("unique", Verdict.RED)
    assert latest(engine, "orders") is None
    (item,) = engine.gate.read_book("demo").staged
    assert run.coordinator.take_held_back() == (
        (
            "demo.orders NOT published: red: unique; its rows: tablestore head demo.orders --snapshot @staged; "
            "its changes: tablestore diff demo.orders @staged"
        ),
        (
            "1 of this run's tables wait, and readers do not see them yet: demo.orders (tablestore staged)"
            f"; kept until {moment_text(item.written_ms + 7 * 86_400_000)}"
        ),
    )
    assert run.coordinator.take_held_back() == ()


def test_results_say_what_became_of_each_model(engine: Engine) -> None:
    """The dict that dbt took when the model ended follows: false with a reason, then true."""
    run = Run(engine, "a")
    run.build("orders")
    live = run.responses["orders"].to_dict(omit_none=True)
    assert (live["published"], live["reason"]) == (False, "waiting for unique")
    run.test("unique", Verdict.RED)
    run.coordinator.take_held_back()
    assert (live["published"], live["reason"]) == (False, "red: unique")
    run.test("unique")
    assert live["published"] is True
    assert "reason" not in live
    again = Run(engine, "b")
    again.build("orders", 2, "always")
    assert again.responses["orders"].published is True


def test_reads_of_the_invocation_see_its_staged_rows(engine: Engine) -> None:
    """Until published; dbt snapshots too, which are staged with what they read."""
    run = Run(engine, "aaaa-bbbb-cccc-dddd")
    run.build("orders")
    assert run.coordinator.is_staged("demo.orders")
    assert run.coordinator.branches_for("model.p.daily", ["demo"]) == {"demo.orders": "dbt_aaaabbbbcccc"}
    assert run.coordinator.branches_for("snapshot.p.history", ["demo"]) == {"demo.orders": "dbt_aaaabbbbcccc"}
    run.test("unique")
    assert run.coordinator.branches_for("model.p.daily", ["demo"]) == {}
    assert not run.coordinator.is_staged("demo.orders")


def test_a_later_process_tests_and_publishes(engine: Engine) -> None:
    """dbt run, then dbt test: the second one reads the staged rows, keeps the outcome, publishes."""
    Run(engine, "a").build("orders", policy="always")
    Run(engine, "b").build("orders", 2)
    second = Run(engine, "c")
    assert second.coordinator.branches_for("test.p.unique", ["demo"]) == {"demo.orders": "dbt_b"}
    assert second.coordinator.branches_for("test.p.positive", ["demo"]) == {}
    assert second.coordinator.branches_for("model.p.orders", ["demo"]) == {}
    second.test("unique", Verdict.RED)
    assert engine.staged("demo")[0].outcomes == {"test.p.unique": "red"}
    Run(engine, "d").test("unique")
    assert latest(engine, "orders") == 2


def test_a_test_never_reads_a_table_that_is_not_there_yet(engine: Engine) -> None:
    """Every test of a later process reads the staged rows of a table that was never published, gate or not."""
    Run(engine, "a").build("orders")
    assert Run(engine, "b").coordinator.branches_for("test.p.positive", ["demo"]) == {"demo.orders": "dbt_a"}


def test_tests_bind_what_they_read_together(engine: Engine) -> None:
    """The relation read both staged tables: a red test of one holds both, and they go out together."""
    run = Run(engine, "a")
    selected = tuple(NODES)
    run.build("orders", selected=selected)
    run.build("other", selected=selected)
    run.test("relation")
    assert (latest(engine, "orders"), latest(engine, "other")) == (None, None)
    run.test("unique", Verdict.RED)
    assert (latest(engine, "orders"), latest(engine, "other")) == (None, None)
    assert any(
        "demo.other NOT published: is published together with demo.orders" in x
        for x in run.coordinator.take_held_back()
    )
    run.test("unique")
    assert (latest(engine, "orders"), latest(engine, "other")) == (1, 1)


def test_yesterdays_refused_rows_bind_nobody(engine: Engine) -> None:
    """A later build of other is tested against what readers see of orders, and goes out."""
    Run(engine, "a").build("orders", policy="always")
    Run(engine, "b").build("orders", 2, selected=tuple(NODES))
    red = Run(engine, "c")
    red.test("unique", Verdict.RED)
    today = Run(engine, "d")
    today.build("other", selected=tuple(NODES))
    today.test("relation")
    assert (latest(engine, "orders"), latest(engine, "other")) == (1, 1)


def test_a_new_build_drops_the_rejected_branch(engine: Engine) -> None:
    """Whether the new build is published at once or staged again; what was built from it goes too."""
    for policy, selected in (("always", ()), ("auto", ALL)):
        run = Run(engine, f"a{policy}")
        run.build("orders", 1)
        run.build("daily", 1, "always", ())
        run.test("unique", Verdict.RED)
        Run(engine, f"b{policy}").build("orders", 2, policy, selected)
        assert [one.name for one in engine.staged("demo")] == ([] if policy == "always" else ["dbt_bauto"])


def test_what_becomes_of_a_waiting_snapshot_is_told(engine: Engine, told: list[str]) -> None:
    """A line each, and a true one: replaced, dropped for rows that go out at once, dropped since nothing differs."""
    was = "staged snapshot {} of demo.orders, which was waiting, "
    Run(engine, "a").build("orders")
    assert told == []
    Run(engine, "b").build("orders", 2)
    assert told == [was.format(1) + "is replaced by this build"]
    Run(engine, "c").build(
        "orders", 3, "always", ()
    )  # nobody has seen rows of it: the table itself is made anew
    assert told[1:] == [was.format(1) + "is replaced by this build"]
    Run(engine, "d").build("orders", 4)
    Run(engine, "e").build("orders", 5, "always", ())
    assert told[2:] == [was.format(2) + "is dropped: this run publishes at once"]
    Run(engine, "f").build("orders", 6)
    Run(engine, "g").coordinator.forget("demo.orders", is_unchanged=True)
    assert told[3:] == [
        was.format(3) + "is dropped: built again, the model changes nothing of what readers see"
    ]
    assert staged(engine) == []


def test_a_lost_claim_is_an_error(engine: Engine) -> None:
    """Somebody else committed meanwhile: the test that asked fails, neither the model nor its child is published."""
    Run(engine, "z").build("orders", policy="always")
    run = Run(engine, "a")
    run.build("orders", 2)
    run.build("daily", 2, "always", ())
    engine.write("demo.orders", pa.table({"id": [77]}), WriteSpec(table=SPEC))
    with pytest.raises(RetryError, match="TS1876") as failed:
        run.test("unique")
    assert "demo.orders NOT published" in str(failed.value)
    assert "dbt build --select orders" in str(failed.value)
    assert (latest(engine, "orders"), latest(engine, "daily")) == (2, None)
    assert run.responses["orders"].published is False


def test_a_group_that_cannot_go_whole_does_not_go(engine: Engine) -> None:
    """One table moved: the other, whose claim would succeed, stays too."""
    Run(engine, "z").build("orders", policy="always")
    run = Run(engine, "a")
    selected = tuple(NODES)
    run.build("other", 2, selected=selected)
    run.build("orders", 2, selected=selected)
    run.test("relation")
    engine.write("demo.orders", pa.table({"id": [77]}), WriteSpec(table=SPEC))
    with pytest.raises(RetryError, match="together or not at all"):
        run.test("unique")
    assert latest(engine, "other") is None


def test_a_log_that_fails_is_pending_and_finished_by_the_next_test(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot is in the table: nobody says NOT published; the run fails; dbt retry sends the log."""
    run = Run(engine, "a")
    run.build("orders")
    logs = engine.gate._warehouse.logs
    real = logs.published

    def broker_away(*_: object) -> None:
        raise RetryError("TS1799", "the broker does not answer", why="-", fix="-")

    monkeypatch.setattr(logs, "published", broker_away)  # a broker that dies at this moment
    with pytest.raises(TablestoreError) as failed:
        run.test("unique")
    assert "PENDING" in str(failed.value)
    assert "NOT published" not in str(failed.value)
    assert latest(engine, "orders") == 1
    assert run.responses["orders"].published == "pending"
    assert not [line for line in run.coordinator.take_held_back() if "NOT published" in line]
    with pytest.raises(TablestoreError):
        Run(engine, "b").test("unique")
    monkeypatch.setattr(logs, "published", real)
    assert "demo.orders published" in Run(engine, "c").test("unique")[0]
    assert staged(engine) == []


def test_manual_is_published_by_the_operation(engine: Engine) -> None:
    """Without names all green ones go."""
    run = Run(engine, "a")
    run.build("other", 1, "manual", ())
    run.test("relation")
    assert latest(engine, "other") is None
    run.coordinator.publish_asked(frozenset(), ["demo"])
    assert latest(engine, "other") == 1


def test_a_lost_claim_is_planned_and_tested_again(engine: Engine) -> None:
    """In the same run: the model and its child are staged on the new rows, their tests read these, both go out."""
    Run(engine, "z").build("orders", policy="always")
    run = Run(engine, "a", limit=100)
    run.build("orders", 2)
    run.build("daily", 2, "always", ())
    engine.write("demo.orders", pa.table({"id": [77]}), WriteSpec(table=SPEC))
    run.test("unique")
    assert (latest(engine, "orders"), latest(engine, "daily")) == (3, 1)
    assert sorted(engine.table("demo.orders").scan().to_arrow()["id"].to_pylist()) == [1, 2, 77]
    assert run.responses["orders"].published is True
    assert staged(engine) == []


def test_rows_that_are_red_on_the_new_base_stay(engine: Engine) -> None:
    """The test was green before somebody's commit and is red with it: the run fails, nothing goes out."""
    Run(engine, "z").build("orders", policy="always")
    run = Run(engine, "a", limit=50)
    run.build("orders", 2)
    engine.write("demo.orders", pa.table({"id": [77]}), WriteSpec(table=SPEC))
    with pytest.raises(RetryError, match="TS1878") as failed:
        run.test("unique")
    assert "unique failed" in str(failed.value)
    assert latest(engine, "orders") == 2
    assert staged(engine) == ["demo.orders"]


def test_a_table_that_always_moves_ends_the_attempts(engine: Engine) -> None:
    """Three times, then the test fails with what to type."""
    Run(engine, "z").build("orders", policy="always")
    run = Run(engine, "a", limit=1000)
    run.build("orders", 2)
    numbers = iter(range(100, 200))

    def busy() -> None:
        engine.write("demo.orders", pa.table({"id": [next(numbers)]}), WriteSpec(table=SPEC))

    busy()
    run.after_check = busy
    with pytest.raises(RetryError, match="TS1876"):
        run.test("unique")
    assert next(numbers) == 104


def test_what_another_process_published_is_published(engine: Engine) -> None:
    """Two dbt commands at once: the slower one neither fails nor says NOT published."""
    run = Run(engine, "a")
    run.build("orders")
    engine.gate.publish(engine.gate.read_book("demo.orders").staged)
    run.test("unique")
    assert latest(engine, "orders") == 1
    run = Run(engine, "b")
    run.build("orders", 2)
    book = engine.gate.read_book("demo.orders").staged
    engine.gate.publish(book)
    (again,) = engine.gate.publish(book)
    assert again.state == "published"
    assert latest(engine, "orders") == 2


def test_staged_rows_that_are_read_without_a_ref_bind_too(engine: Engine) -> None:
    """`from demo.orders` in a model's text reads the staged rows like a ref does: it waits for them."""
    run = Run(engine, "a")
    run.build("orders")
    (orders,) = engine.gate.read_book("demo.orders").staged
    assert run.build("other", 1, "always", (), reads=(orders.as_read,))
    assert latest(engine, "other") is None
    run.test("unique")
    assert (latest(engine, "orders"), latest(engine, "other")) == (1, 1)


def test_retry_owns_what_the_retried_run_has_staged(engine: Engine) -> None:
    """Its nodes read it, and a child is bound to it; the node that is retried itself reads what is published."""
    Run(engine, "a").build("orders")
    retry = Run(engine, "b")
    retry.coordinator.adopt(lambda: ["a"], lambda: ["demo"])
    assert retry.coordinator.branches_for("model.p.daily", ["demo"]) == {"demo.orders": "dbt_a"}
    assert retry.coordinator.branches_for("model.p.orders", ["demo"]) == {}
    assert retry.build("daily", selected=("model.p.daily",))
    assert [line.split()[0] for line in retry.test("unique")] == ["demo.orders", "demo.daily"]


def test_retried_model_replaces_what_the_retried_run_has_staged(engine: Engine) -> None:
    """With the child that was built from it: nobody could publish that any more."""
    first = Run(engine, "a")
    first.build("orders")
    first.build("daily", selected=("model.p.daily",))
    retry = Run(engine, "b")
    retry.coordinator.adopt(lambda: ["a"], lambda: ["demo"])
    retry.build("orders", 2)
    assert staged(engine) == ["demo.orders"]


def test_staged_rows_that_another_process_dropped_are_an_error(engine: Engine) -> None:
    """Between their write and their entry in the book: a model without its rows is never reported as published."""
    Run(engine, "a").build("orders", policy="always")
    run = Run(engine, "b")
    plan, response = written(run, 2)
    engine.gate.drop(engine.gate.read_book("demo.orders").staged[0])
    with pytest.raises(RetryError, match="TS1890"):
        run.coordinator.add(plan, response)
    assert response.published is not True
    assert latest(engine, "orders") == 1


@pytest.mark.parametrize("is_compacted", [False, True])
def test_staged_rows_that_another_process_published_are_published(engine: Engine, is_compacted: bool) -> None:
    """Also when they went on top of a compaction, as a later snapshot."""
    Run(engine, "a").build("orders", policy="always")
    Run(engine, "b").build("orders", 2, policy="always")
    run = Run(engine, "c")
    plan, response = written(run, 3)
    if is_compacted:
        engine.table("demo.orders").compact(full=True)
    engine.gate.publish(engine.gate.read_book("demo.orders").staged)
    run.coordinator.add(plan, response)
    assert response.published is True
    assert latest(engine, "orders") == (4 if is_compacted else 3)


def written(run: Run, value: int) -> tuple[Staged, TablestoreResponse]:
    """orders, staged and not entered in the run's book yet."""
    plan = run.coordinator.plan_staged(
        node="model.p.orders", table="demo.orders", policy="auto", nodes=NODES, selected=ALL
    )
    assert plan is not None
    spec = WriteSpec(
        table=SPEC,
        stage=plan.name,
        commit_user=run.invocation,
        commit_identifier=1,
        properties=stage_properties(plan),
    )
    return plan, describe_commit(run.engine.write("demo.orders", pa.table({"id": [value]}), spec))
