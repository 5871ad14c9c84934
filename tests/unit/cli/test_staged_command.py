"""staged and publish on a real warehouse, without a broker."""

from __future__ import annotations

import pytest

from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.cli.output import to_utc
from tablestore_engine.spi import Outcome, Staged, TableRead, Verdict, pick_failing_rows, stage_properties

from .conftest import KEYED, Run, orders

TEST_ID = "test.shop.unique_orders_order_id.ab12"


@pytest.fixture
def staged(engine: Engine) -> Engine:
    """Order 9 is staged under the name `try`."""
    engine.write("demo.orders", orders((9, "zed", 9.0)), WriteSpec(table=KEYED, stage="try"))
    return engine


def test_staged_lists_outcomes(run: Run, staged: Engine) -> None:
    """A staged snapshot is listed with its base and what its tests said."""
    staged.table("demo.orders").record_outcome("try", TEST_ID, "green")
    for words in ((), ("demo",), ("demo.orders",)):
        (found,) = run("staged", *words, "--json").json
        assert (found["table"], found["name"]) == ("demo.orders", "try")
        assert (found["snapshot"], found["base_snapshot"]) == (4, 3)
        assert found["outcomes"] == {TEST_ID: "green"}
    assert run("staged", "demo.events", "--json").json == []


def test_staged_counts_tests_and_names_the_red_ones(run: Run, staged: Engine) -> None:
    """The columns say different things: `tests` counts, `state` names what is red."""
    staged.table("demo.orders").record_outcome("try", TEST_ID, "red")
    staged.table("demo.orders").record_outcome("try", "test.shop.relation.cd34", "green")
    row = run("staged").out.splitlines()[2]
    assert "1 of 2 green" in row
    assert row.count("red: unique_orders_order_id") == 1


def test_publish_staged(run: Run, staged: Engine) -> None:
    """Publishing a staged snapshot makes it the newest one of the table."""
    report = run("publish", "demo.orders", "--staged", "try", "--json").json
    assert (report["snapshot"], report["inserted"], report["offsets"]) == (4, 1, {})
    assert staged.table("demo.orders").latest_snapshot_id() == 4
    assert run("staged", "--json").json == []


def test_a_red_snapshot_needs_force(run: Run, staged: Engine) -> None:
    """While a test is red nothing is published, unless --force says so."""
    staged.table("demo.orders").record_outcome("try", TEST_ID, "red")
    refused = run("publish", "demo.orders", "--staged", "try")
    assert refused.status == 1
    assert "TS1923" in refused.err
    assert "unique_orders_order_id" in refused.err
    assert staged.table("demo.orders").latest_snapshot_id() == 3
    assert run("publish", "demo.orders", "--staged", "try", "--force").status == 0
    assert staged.table("demo.orders").latest_snapshot_id() == 4


def test_publish_without_a_log(run: Run) -> None:
    """A table without a log system has nothing to publish to, and the error says how to give it one."""
    done = run("publish", "demo.orders")
    assert done.status == 1
    assert "TS1922" in done.err


def test_reset_and_staged_exclude_each_other(run: Run, staged: Engine) -> None:
    """A new beginning of the log beside a staged snapshot would be passed over in silence: wrong usage."""
    with pytest.raises(SystemExit) as stopped:
        run("publish", "demo.orders", "--staged", "try", "--reset", "0")
    assert stopped.value.code == 2
    assert [one.name for one in staged.staged("demo.orders")] == ["try"]


UNIQUE, RELATION = "test.shop.unique_orders_order_id.ab12", "test.shop.relation.cd34"


def stage(engine: Engine, table: str, *gates: str, parents: tuple[TableRead, ...] = ()) -> Staged:
    """One more staged snapshot named `run`, as dbt makes it."""
    planned = Staged(table, "run", "", 0, f"model.shop.{table}", "auto", gates, parents)
    spec = WriteSpec(
        table=KEYED,
        stage="run",
        commit_user=f"dbt-{table}",
        commit_identifier=1,
        properties=stage_properties(planned),
    )
    engine.write(table, orders((9, "zed", 9.0)), spec)
    return next(one for one in engine.gate.read_book(table).staged if one.name == "run")


def green(engine: Engine, test: str, *read: Staged) -> None:
    """A test read all of these and liked them."""
    for item in read:
        engine.gate.record(item, Outcome(test, Verdict.GREEN, tuple(one.as_read for one in read)))


def test_a_missing_verdict_holds_back(run: Run, engine: Engine) -> None:
    """No red test is not enough: every gate has to be green, as in dbt."""
    item = stage(engine, "demo.orders", UNIQUE)
    refused = run("publish", "demo.orders", "--staged", "run")
    assert (refused.status, "TS1923" in refused.err) == (1, True)
    assert "waiting for unique_orders_order_id" in refused.err
    assert run("staged", "publish", "demo.orders", "run").status == 1
    green(engine, UNIQUE, item)
    assert run("staged", "publish", "demo.orders", "run").status == 0
    assert engine.table("demo.orders").latest_snapshot_id() == 4


def test_a_test_that_names_its_versions_is_no_gate(run: Run, engine: Engine) -> None:
    """As in dbt: ref('orders').at(1) opens nothing, and nothing waits for it."""
    item = stage(engine, "demo.orders", UNIQUE, RELATION)
    for verdict in (Verdict.RED, Verdict.GREEN):
        constants = (TableRead("demo.orders", "other:1", 1),)
        engine.gate.record(item, Outcome(RELATION, verdict, (), constants))
        assert "waiting for unique_orders_order_id" in run("staged", "publish", "demo.orders", "run").err
    (shown,) = run("staged", "show", "demo.orders", "run", "--json").json
    assert {one["test"]: one["verdict"] for one in shown["tests"]} == {
        UNIQUE: "missing",
        RELATION: "abstains",
    }
    assert "abstains" in run("staged", "show", "demo.orders", "run").out
    assert "0 of 1 green" in run("staged").out
    green(engine, UNIQUE, item)
    assert run("staged", "publish", "demo.orders", "run").status == 0


def test_what_tests_read_together_is_published_together(run: Run, engine: Engine) -> None:
    """One command, both tables; --force takes the named one alone."""
    first, second = stage(engine, "demo.orders", RELATION), stage(engine, "demo.more", RELATION, UNIQUE)
    green(engine, RELATION, first, second)
    refused = run("staged", "publish", "demo.orders", "run")
    assert "is published together with demo.more: waiting for unique" in refused.err
    green(engine, UNIQUE, second)
    done = run("staged", "publish", "demo.orders", "run", "--json")
    assert [(one["table"], one["state"]) for one in done.json] == [
        ("demo.more", "published"),
        ("demo.orders", "published"),
    ]
    stage(engine, "demo.third", UNIQUE)
    assert run("staged", "publish", "demo.third", "run", "--force").status == 0
    assert run("staged", "--json").json == []


def test_staged_says_what_each_waits_for(run: Run, engine: Engine) -> None:
    """The list has the reason, show has the gates and what they read."""
    item = stage(engine, "demo.orders", UNIQUE, RELATION)
    green(engine, UNIQUE, item)
    assert "waiting for relation" in run("staged", "demo").out
    (shown,) = run("staged", "show", "demo.orders", "run", "--json").json
    assert (shown["reason"], shown["owner"]) == ("waiting for relation", "model.shop.demo.orders")
    assert {one["test"]: one["verdict"] for one in shown["tests"]} == {UNIQUE: "green", RELATION: "missing"}
    text = run("staged", "show", "demo.orders").out
    assert "demo__at_branch_run" in text
    assert "relation" in text


def test_dropping_takes_what_was_built_from_it(run: Run, engine: Engine) -> None:
    """Rows of a child were made from the dropped ones."""
    parent = stage(engine, "demo.orders", UNIQUE)
    stage(engine, "demo.more", parents=(parent.as_read,))
    done = run("staged", "drop", "demo.orders", "run", "--json")
    assert [one["table"] for one in done.json] == ["demo.orders", "demo.more"]
    assert run("staged", "--json").json == []
    assert engine.table("demo.orders").latest_snapshot_id() == 3


def test_a_name_that_is_not_staged(run: Run, engine: Engine) -> None:
    """Said with what is there; several staged ones need a name."""
    for action in ("show", "drop", "publish"):
        refused = run("staged", action, "demo.orders", "nothing")
        assert (refused.status, "TS1975" in refused.err) == (1, True)
    stage(engine, "demo.orders", UNIQUE)
    engine.write("demo.orders", orders((8, "yo", 1.0)), WriteSpec(table=KEYED, stage="second"))
    refused = run("staged", "drop", "demo.orders")
    assert "run, second" in refused.err


def test_a_refused_publication_says_why(run: Run, engine: Engine) -> None:
    """Somebody committed meanwhile: exit status 1, the code of the claim, and the staged snapshot is still there."""
    stage(engine, "demo.orders")
    engine.write("demo.orders", orders((7, "new", 7.0)), WriteSpec(table=KEYED))
    refused = run("staged", "publish", "demo.orders")
    assert (refused.status, "TS1308" in refused.err) == (1, True)
    assert len(run("staged", "--json").json) == 1


def test_a_table_that_waits_beside_a_view(run: Run, engine: Engine) -> None:
    """The name is a view still: list, show, drop and publish find what waits to take its place."""
    engine.create_view("demo.latest", "select 1 as order_id")
    for name in ("dropped", "try"):
        beside = WriteSpec(table=KEYED, stage=name, beside=True, commit_user=name, commit_identifier=1)
        engine.write("demo.latest", orders((9, "zed", 9.0)), beside)
        for words in ((), ("demo",), ("demo.latest",), ("show", "demo.latest")):
            (found,) = run("staged", *words, "--json").json
            assert (found["table"], found["name"], found["base_snapshot"]) == ("demo.latest", name, None)
        if name == "dropped":
            assert run("staged", "drop", "demo.latest", name).status == 0
            assert run("staged", "--json").json == []
    assert run("staged", "publish", "demo.latest", "try").status == 0
    assert engine.find_view("demo.latest") is None
    assert engine.table("demo.latest").scan().to_arrow().num_rows == 1


def test_staged_says_until_when_each_is_kept(run: Run, engine: Engine) -> None:
    """Seven days by default, the end of a parent for its child, no end for one that waits for a person."""
    parent = stage(engine, "demo.orders", UNIQUE)
    stage(engine, "demo.daily", parents=(parent.as_read,))
    by_hand = Staged("demo.hand", "hand", "", 0, "model.shop.hand", "manual")
    engine.write(
        "demo.hand", orders((9, "zed", 9.0)), WriteSpec(stage="hand", properties=stage_properties(by_hand))
    )
    until = to_utc(parent.written_ms + 7 * 86_400_000)
    found = {one["table"]: one for one in run("staged", "demo", "--json").json}
    assert {name: one["kept_until"] for name, one in found.items()} == {
        "demo.orders": until,
        "demo.daily": until,
        "demo.hand": None,
    }
    assert found["demo.orders"]["written"] == to_utc(parent.written_ms)
    assert until is not None
    assert until in run("staged", "demo.orders").out
    assert "published or dropped" in run("staged", "demo.hand").out
    assert until in run("staged", "show", "demo.orders").out


def test_show_prints_rows_that_fail(run: Run, engine: Engine) -> None:
    """Below the verdicts, and in JSON; without control characters."""
    item = stage(engine, "demo.orders", UNIQUE)
    failing = pick_failing_rows(("order_id", "customer"), [(9, "zed\x1b[31m"), (10, None)])
    engine.gate.record(item, Outcome(UNIQUE, Verdict.RED, (item.as_read,), (), failing))
    text = run("staged", "show", "demo.orders").out
    assert "rows that fail unique_orders_order_id" in text
    assert "zed\\x1b[31m" in text
    assert "NULL" in text
    (shown,) = run("staged", "show", "demo.orders", "--json").json
    (test,) = shown["tests"]
    assert test["failing"] == {
        "columns": ["order_id", "customer"],
        "rows": [["9", "zed\x1b[31m"], ["10", None]],
    }


def test_outcome_of_a_former_version_has_no_rows(run: Run, engine: Engine) -> None:
    """And one whose rows cannot be read is TS1077, as other damage of a verdict is."""
    item = stage(engine, "demo.orders", UNIQUE)
    staging = engine.table("demo.orders").store.staging
    staging.record_outcome("run", UNIQUE, "red", '{"reads": []}')
    assert run("staged", "show", "demo.orders").status == 0
    staging.record_outcome("run", UNIQUE, "red", '{"reads": [], "failing": {"columns": 3, "rows": []}}')
    assert "TS1077" in run("staged", "show", "demo.orders").err
    assert item.name == "run"
