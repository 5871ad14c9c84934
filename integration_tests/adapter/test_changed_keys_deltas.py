"""changed_keys models by deltas: rows that follow from changes and stored rows, or keys that are evaluated besides."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.config.changed_keys_config import Way
from dbt.adapters.tablestore.inputs.changed_inputs import ChangedInputs, Followed
from dbt.adapters.tablestore.inputs.run_choice import RUNS_PROPERTY
from dbt.adapters.tablestore.plan import run_costs
from dbt.adapters.tablestore.plan.run_costs import RunHistory
from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_changed_keys_soundness import (
    KEYED,
    ORDERS,
    PEOPLE,
    PRODUCTS,
    check,
    feed,
    model,
    put,
    run,
)
from tablestore_engine.api import TableSpec, WriteSpec
from tests.doses import is_nightly

__all__ = ["feed"]
STAR = (
    f"select p.name, count(*) as n, sum(o.amount) as total, max(o.amount) as most from {ORDERS} o "
    f"join {PRODUCTS} p on p.id = o.product group by p.name"
)
TOTAL = (
    f"select 1 as one, count(*) as n, sum(amount) as total, coalesce(sum(amount), 0) as zeroed from {ORDERS}"
)
NAMED = f"select o.id, c.name, o.amount from {ORDERS} o join {PEOPLE} c on c.id = o.customer"


def by_deltas(shop: Shop, *names: str, evaluated: int = 0) -> None:
    """Each model equals its full query, by deltas; so many keys were evaluated for each."""
    run(shop, *names, evaluated="deltas")
    for name in names:
        assert shop.response(name)["keys_evaluated"] == evaluated, (name, shop.response(name))


@pytest.mark.nightly  # by day the star, total and join of pipelines; test_averages_ratios_and_having_follow_deltas
def test_deltas_follow_changes_of_several_inputs_in_one_run(feed: Shop) -> None:
    """A star with count, sum and max, a total and a join, while both sides of the joins change."""
    model(feed, "star", STAR, "name")
    model(feed, "total", TOTAL, "one")
    model(feed, "named", NAMED)
    run(feed, "star", "total", "named", evaluated="all rows")
    put(feed, "orders", {"id": [5, 1], "customer": [4, 2], "product": [9, 8], "amount": [50, 10]})
    put(feed, "products", {"id": [7], "name": ["pencil"]})
    put(feed, "people", {"id": [2], "name": ["rob"], "boss": [1]})
    run(feed, "star", "total", "named", evaluated="deltas")
    assert [feed.response(name)["keys_evaluated"] for name in ("total", "named")] == [0, 0]
    feed.engine.sql("delete from demo.orders where id in (2, 3)")
    run(feed, "star", "total", "named", evaluated="deltas")
    run(feed, "star", "total", "named", evaluated="affected keys")
    assert feed.response("star")["keys_affected"] == 0


def test_deltas_pass_groups_windows_and_outer_joins_inside_of_a_query(feed: Shop) -> None:
    """A count of counts, the largest order of each product, and people without orders, while all inputs change: parts
    appear, vanish and move, NULL is the key of one.
    """
    counted = (
        f"select n, count(*) as people from (select c.id, count(o.id) as n from {PEOPLE} c "
        f"left join {ORDERS} o on o.customer = c.id group by c.id) group by n"
    )
    largest = (
        f"select 1 as one, count(*) as n, sum(amount) as total from (select *, row_number() over "
        f"(partition by product order by amount desc, id) as place from {ORDERS}) where place = 1"
    )
    idle = (
        f"select id, name from {PEOPLE} c where not exists (select 1 from {ORDERS} o where o.customer = c.id)"
    )
    model(feed, "counted", counted, "n")
    model(feed, "largest", largest, "one")
    model(feed, "idle", idle)
    names = ("counted", "largest", "idle")
    run(feed, *names, evaluated="all rows")
    put(
        feed,
        "orders",
        {"id": [5, 1, 6], "customer": [4, 2, None], "product": [9, 8, None], "amount": [50, 10, 3]},
    )
    put(feed, "people", {"id": [2, 9], "name": ["rob", "new"], "boss": [1, None]})
    if is_nightly():
        run(feed, *names, evaluated="deltas")
    feed.engine.sql("delete from demo.orders where id in (2, 3, 5)")
    run(feed, *names, evaluated="deltas")
    if is_nightly():
        put(feed, "orders", {"id": [6], "customer": [1], "product": [None], "amount": [4]})
        run(feed, *names, evaluated="deltas")


@pytest.mark.nightly  # by day the star above; pipelines
def test_strategy_of_the_config_leads_to_the_same_rows(feed: Shop) -> None:
    """affected_keys evaluates the keys; compile names the strategy of each input, or what prevents deltas."""
    model(feed, "one", STAR, "name", more=", changed_keys={'strategy': 'affected_keys'}")
    model(feed, "two", STAR, "name")
    model(feed, "left", NAMED.replace("join", "left join"))
    run(feed, "one", "two", "left", evaluated="all rows")
    feed.dbt("compile", "--select", "one", "two", "left")
    shown = "\n".join(feed.shown)
    assert "demo.two: changes of demo.products: deltas" in shown
    assert "demo.one: changes of demo.products: affected keys: strategy='affected_keys'" in shown
    assert "demo.left: changes of demo.people: deltas" in shown
    assert "demo.left: changes of demo.orders: deltas" in shown
    put(feed, "products", {"id": [7], "name": ["pencil"]})
    put(feed, "orders", {"id": [5], "customer": [4], "product": [9], "amount": [50]})
    feed.dbt("run", "--select", "one", "two", "left")
    found = {name: feed.response(name) for name in ("one", "two", "left")}
    assert {name: one["evaluated"] for name, one in found.items()} == {
        "one": "affected keys", "two": "deltas", "left": "deltas",
    }  # fmt: skip
    assert found["one"]["no_deltas"] == "strategy='affected_keys'"
    for name in found:
        check(feed, name)
    assert Counter(feed.rows("select * from demo.one")) == Counter(feed.rows("select * from demo.two"))
    model(feed, "one", STAR, "name", more=", changed_keys={'strategy': 'fast'}")
    feed.dbt("run", "--select", "one", ok=False)
    assert "TS1811" in feed.log


def test_rows_that_others_change_during_a_run_are_not_merged(
    feed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums that were added to stored rows are refused at the claim, TS1489, and nothing is committed. The next run
    finds the commit of others. A compaction in between is none, and a run that ends before its write leaves nothing.
    """
    model(feed, "total", TOTAL, "one")
    run(feed, "total", evaluated="all rows")
    follow = ChangedInputs.follow

    def during(act: Any) -> Any:
        def followed(*given: Any, **more: Any) -> Followed:
            found = follow(*given, **more)
            act()
            return found

        return followed

    put(feed, "orders", {"id": [5], "customer": [4], "product": [9], "amount": [50]})
    with monkeypatch.context() as patch:
        compact = during(lambda: feed.engine.table("demo.total").compact(full=True))
        patch.setattr(ChangedInputs, "follow", compact)
        by_deltas(feed, "total")
    put(feed, "orders", {"id": [6], "customer": [4], "product": [9], "amount": [7]})
    with monkeypatch.context() as patch:
        patch.setattr(
            ChangedInputs, "follow", during(lambda: feed.engine.sql("update demo.total set total = 1000"))
        )
        feed.dbt("run", "--select", "total", ok=False)
    assert "TS1489" in feed.log
    assert feed.rows("select n, total from demo.total") == [(5, 1000)]
    run(feed, "total", evaluated="all rows")
    with monkeypatch.context() as patch:

        def killed() -> None:
            raise RuntimeError("killed")

        put(feed, "orders", {"id": [7], "customer": [4], "product": [9], "amount": [8]})
        patch.setattr(ChangedInputs, "follow", during(killed))
        feed.try_dbt("run", "--select", "total")
    by_deltas(feed, "total")


@pytest.mark.nightly  # by day spark/test_deltas.py; tests/laws/test_signed_row_laws.py
def test_groups_that_vanish_and_return_and_groups_without_count(feed: Shop) -> None:
    """count(*) tells that a group is empty; a sum of 0 or a distinct row tells nothing, and its key is evaluated."""
    model(
        feed,
        "counted",
        f"select product, count(*) as n, max(id) as m from {ORDERS} group by product",
        "product",
    )
    model(feed, "summed", f"select product, sum(amount) as s from {ORDERS} group by product", "product")
    model(feed, "single", f"select distinct product from {ORDERS}", "product")
    names = ("counted", "summed", "single")
    run(feed, *names, evaluated="all rows")
    feed.engine.sql("delete from demo.orders where product = 9")
    run(feed, *names, evaluated="deltas")
    assert [feed.response(name)["keys_evaluated"] for name in names] == [0, 1, 1]
    put(feed, "orders", {"id": [9], "customer": [4], "product": [9], "amount": [None]})
    by_deltas(feed, *names)
    put(feed, "orders", {"id": [9], "customer": [4], "product": [9], "amount": [3]})
    run(feed, *names, evaluated="deltas")
    assert [feed.response(name)["keys_evaluated"] for name in names] == [
        0,
        1,
        0,
    ]  # NULL may be an overflow, too


def test_keys_that_come_twice_fail_as_in_the_full_query(feed: Shop) -> None:
    """A second row of a stored key is found: TS1601, and nothing is committed."""
    model(feed, "both", f"select id, name from {PEOPLE} union all select id, name from {PRODUCTS}")
    run(feed, "both", evaluated="all rows")
    put(feed, "products", {"id": [1], "name": ["again"]})
    feed.dbt("run", "--select", "both", ok=False)
    assert "TS1601" in feed.log
    feed.engine.sql("delete from demo.people where id = 1")
    by_deltas(feed, "both")


@pytest.mark.nightly  # by day spark/test_ansi_mode.py: a change without room
def test_sum_at_the_end_of_bigint_fails_as_in_the_full_query(feed: Shop) -> None:
    """A total out of range is evaluated, which is an error with ANSI; back in range it is right."""
    last = (1 << 63) - 1
    put(feed, "orders", {"id": [1], "customer": [1], "product": [7], "amount": [last - 20]})
    model(feed, "total", TOTAL, "one")
    run(feed, "total", evaluated="all rows")
    put(feed, "orders", {"id": [5], "customer": [1], "product": [7], "amount": [11]})
    by_deltas(feed, "total")
    put(feed, "orders", {"id": [6], "customer": [1], "product": [7], "amount": [1]})
    feed.dbt("run", "--select", "total", ok=False)
    assert "ARITHMETIC_OVERFLOW" in feed.log
    put(feed, "orders", {"id": [6], "customer": [1], "product": [7], "amount": [-5]})
    by_deltas(feed, "total")


@pytest.mark.nightly  # by day tests/laws/test_delta_merge_laws.py; spark/test_deltas.py
def test_floats_and_other_keys_have_no_deltas(feed: Shop) -> None:
    """A sum of DOUBLE depends on the order; rows with -0.0 and NaN are followed bit by bit."""
    reals = pa.table({"id": [1, 2, 3], "x": [0.0, float("nan"), 1.5]})
    feed.engine.write(
        "demo.people",
        reals,
        WriteSpec(
            table=TableSpec(primary_key=("id",)),
            on_schema_change="append_new_columns",
            missing_columns="null",
        ),
    )
    model(feed, "summed", f"select 1 as one, sum(x) as s, count(*) as n from {PEOPLE}", "one")
    model(feed, "shown", f"select id, x, x * 2 as y from {PEOPLE}")
    feed.dbt("run", "--select", "summed", "shown")
    reals = pa.table({"id": [1, 2], "x": [-0.0, 7.5]})
    feed.engine.write("demo.people", reals, WriteSpec(table=KEYED.table, missing_columns="null"))
    feed.dbt("run", "--select", "summed", "shown")
    assert "sum" in feed.response("summed")["no_deltas"]
    assert feed.response("shown")["evaluated"] == "deltas"
    assert [str(row) for row in feed.rows("select x, y from demo.shown where id = 1")] == ["(-0.0, -0.0)"]


@pytest.mark.nightly  # by day tests/laws/test_delta_merge_laws.py
def test_time_zones_and_dates_are_kept_in_merged_rows(feed: Shop) -> None:
    """Extremes of TIMESTAMP, TIMESTAMP_NTZ and DATE in a session far from UTC."""
    feed.output["spark"]["conf"]["spark.sql.session.timeZone"] = "Asia/Kolkata"
    moment = "timestamp '2024-01-01 00:30:00' + make_interval(0, 0, 0, 0, amount)"
    model(
        feed,
        "moments",
        f"select product, count(*) as n, max({moment}) as last, min(cast({moment} as timestamp_ntz)) as first, "
        f"max(cast({moment} as date)) as day from {ORDERS} group by product",
        "product",
    )
    run(feed, "moments", evaluated="all rows")
    put(feed, "orders", {"id": [5, 6], "customer": [1, 1], "product": [7, 10], "amount": [40, -40]})
    by_deltas(feed, "moments")


def _kept(shop: Shop, name: str) -> RunHistory:
    newest = shop.engine.table(f"demo.{name}").newest_commit()
    assert newest is not None
    return RunHistory.read(newest.properties[RUNS_PROPERTY])


@pytest.mark.nightly  # by day tests/unit/adapter/test_run_costs.py
def test_all_rows_are_computed_where_that_was_cheaper(feed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as both ways have run; the choice is no warning, and `strategy` switches it off."""
    model(feed, "star", STAR, "name")
    model(feed, "kept", STAR, "name", more=", changed_keys={'strategy': 'deltas'}")
    names = ("star", "kept")
    total = sum(feed.engine.table(f"demo.{name}").facts().rows for name in ("orders", "products"))
    run(feed, *names, evaluated="all rows")
    assert feed.response("star").get("seconds_expected") is None
    monkeypatch.setattr(run_costs, "MARGIN_SECONDS", -1e9)  # all rows are always cheaper by enough
    for amount in (50, 60):
        put(feed, "orders", {"id": [5], "customer": [4], "product": [9], "amount": [amount]})
        feed.dbt("run", "--select", *names)
        for name in names:
            check(feed, name)
    responses = {name: feed.response(name) for name in names}
    ways = {name: one["evaluated"] for name, one in responses.items()}
    assert ways == {"star": "all rows", "kept": "deltas"}
    expected = responses["star"]["seconds_expected"]
    assert set(expected) == set(Way)
    assert responses["star"]["fallback"].startswith(f"about {expected['all rows']:.1f} s, deltas about")
    assert responses["star"]["choice"] == "cheapest by earlier runs and sizes"
    star, kept = _kept(feed, "star"), _kept(feed, "kept")
    assert [(one.way, one.work) for one in star.runs] == [(Way.WHOLE, total), (Way.WHOLE, total + 1)]
    assert [(one.way, one.work) for one in kept.runs] == [(Way.WHOLE, total), (Way.DELTAS, 1)]
    assert [(one.begun.way, one.begun.work) for one in (star, kept) if one.begun] == [
        (Way.WHOLE, total + 1), (Way.DELTAS, 2),
    ]  # fmt: skip
    model(feed, "star", f"{STAR} having count(*) > 0", "name")
    run(feed, "star", evaluated="all rows")
    assert _kept(feed, "star").runs == ()  # of another query


@pytest.mark.nightly  # by day tests/unit/adapter/test_run_costs.py
def test_too_many_affected_keys_end_in_all_rows(feed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run remembers how many keys there were; `strategy` follows them all the same. An empty model has no limit."""
    halves = f"select product, sum(amount / 2.0D) as s from {ORDERS} group by product"
    model(feed, "halves", halves, "product")
    model(feed, "kept", halves, "product", more=", changed_keys={'strategy': 'affected_keys'}")
    run(feed, "halves", "kept", evaluated="all rows")
    monkeypatch.setattr(run_costs, "KEYS_SHARE", 0.01)
    put(feed, "orders", {"id": [5, 6], "customer": [4, 4], "product": [9, 7], "amount": [50, 60]})
    feed.dbt("run", "--select", "halves", "kept")
    for name in ("halves", "kept"):
        check(feed, name)
    assert feed.response("halves")["fallback"] == "more than 0 keys are affected"
    assert [feed.response(name)["evaluated"] for name in ("halves", "kept")] == ["all rows", "affected keys"]
    begun = _kept(feed, "halves").begun
    assert begun is not None
    assert (begun.way, begun.work, begun.keys) == (Way.KEYS, 2, 1)
