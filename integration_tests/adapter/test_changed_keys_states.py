"""changed_keys models with state of their groups: averages, ratios and HAVING follow deltas, state and rows are
one commit, and a state that cannot be used costs time and never a row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbt.adapters.tablestore.inputs.changed_inputs import ChangedInputs, Followed
from integration_tests.adapter.conftest import ParsedShop, Shop, new_shop
from integration_tests.adapter.test_changed_keys_soundness import (
    ORDERS,
    PEOPLE,
    PRODUCTS,
    fed,
    feed,
    model,
    put,
    run,
)
from tablestore_engine.format import group_state_file
from tablestore_engine.spi import STATE_POSITION
from tests.doses import cases, is_nightly

__all__ = ["feed"]
STAR = (
    f"select p.name, avg(o.amount) as mean, 100 * sum(case when o.customer = 1 then o.amount end) / sum(o.amount) "
    f"as share, coalesce(max(c.name), '-') as last from {ORDERS} o join {PRODUCTS} p on p.id = o.product "
    f"join {PEOPLE} c on c.id = o.customer group by p.name"
)
TOTAL = f"select 1 as one, avg(cast(amount as decimal(9,2))) as mean, sum(amount) / count(*) as ratio from {ORDERS}"
LARGE = f"select product, avg(amount) as mean from {ORDERS} group by product having count(*) > 1"
ALL = ("star", "total", "large")
FOLLOWED = ", changed_keys={'strategy': 'deltas'}"  # however long all rows take


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, parsed_shop: ParsedShop | None) -> Path:
    """A project that is built once."""
    return build(new_shop(tmp_path_factory.mktemp("built"), parsed_shop)).folder


def build(shop: Shop) -> Shop:
    """Three models that have a state."""
    model(fed(shop), "star", STAR, "name", FOLLOWED)
    model(shop, "total", TOTAL, "one", FOLLOWED)
    model(shop, "large", LARGE, "product", FOLLOWED)
    run(shop, *ALL, evaluated="all rows")
    return shop


@pytest.fixture
def stated(request: pytest.FixtureRequest, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A copy of it; each run writes a part of its own of a state, however few groups there are. Over an object store
    it is built here.
    """
    monkeypatch.setattr(group_state_file, "GROWS", 0)
    if "://" in shop.output["warehouse"]:
        return build(shop)
    shop.take(request.getfixturevalue("built"))
    return shop


def add(shop: Shop, number: int, **more: Any) -> None:
    """One more order, of product 7."""
    row = {"id": number, "customer": 1, "product": 7, "amount": number} | more
    put(shop, "orders", {name: [value] for name, value in row.items()})


def state_of(shop: Shop, name: str) -> Path:
    """The last file that the model's newest snapshot names."""
    position = shop.engine.table(f"demo.{name}").positions()[STATE_POSITION]
    found = list((shop.folder / "warehouse").rglob(f"{position.split('+')[-1]}.parquet"))
    assert len(found) == 1, position
    return found[0]


def by_deltas(shop: Shop, *names: str) -> None:
    """Equal to the full query, and no key was evaluated."""
    run(shop, *names, evaluated="deltas")
    assert [shop.response(name)["keys_evaluated"] for name in names] == [0] * len(names)


def test_averages_ratios_and_having_follow_deltas(stated: Shop) -> None:
    """Rows that come and go, at night rows that change, too; groups that pass HAVING, fail it and vanish; both sides of
    the joins.
    """
    put(stated, "orders", {"id": [5, 6], "customer": [4, 2], "product": [9, 9], "amount": [50, None]})
    put(stated, "products", {"id": [7], "name": ["pencil"]})
    by_deltas(stated, *ALL)
    assert stated.rows("select product from demo.large order by 1") == [(7,), (9,)]
    assert "+" in stated.engine.table("demo.star").positions()[STATE_POSITION]
    stated.engine.sql("delete from demo.orders where product in (7, 8)")
    put(stated, "people", {"id": [2], "name": ["rob"], "boss": [1]})
    by_deltas(stated, *ALL)
    assert stated.rows("select product from demo.large") == [(9,)]
    if is_nightly():
        stated.engine.sql("update demo.orders set amount = amount * 3, product = 8 where id = 5")
        by_deltas(stated, *ALL)
    stated.engine.sql("delete from demo.orders")
    by_deltas(stated, *ALL)
    assert stated.rows("select mean, ratio from demo.total") == [(None, None)]
    if is_nightly():
        add(stated, 9)
        by_deltas(stated, *ALL)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _changed(path: Path) -> None:
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, 0), path)


@pytest.mark.parametrize("damage", cases([_changed, Path.unlink, _truncated], 1))
def test_unusable_state_costs_a_run_over_all_rows(stated: Shop, damage: Any) -> None:
    """A missing, torn or exchanged file: all rows are compared with a warning, and the next run follows deltas."""
    damage(state_of(stated, "star"))
    found = stated.engine.table("demo.star").verify()
    assert ("damaged" in str(found)) == (damage is not Path.unlink)
    add(stated, 5)
    stated.dbt("run", "--select", *ALL)
    assert stated.response("star")["evaluated"] == "all rows"
    assert "state of its groups cannot be used" in stated.response("star")["fallback"]
    assert stated.response("total")["evaluated"] == "deltas"
    assert stated.engine.table("demo.star").verify() == ()
    add(stated, 6)
    by_deltas(stated, *ALL)


def test_state_is_of_the_rows_after_a_kill_and_a_rollback(
    stated: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends behind its new state, and before its rows, leaves the state of before; so does a rollback."""
    follow = ChangedInputs.follow

    def killed(*given: Any, **more: Any) -> Followed:
        follow(*given, **more)
        raise RuntimeError("killed")

    before = state_of(stated, "star")
    add(stated, 5)
    with monkeypatch.context() as patch:
        patch.setattr(ChangedInputs, "follow", killed)
        stated.try_dbt("run", "--select", "star")
    assert state_of(stated, "star") == before
    assert len(list(before.parent.iterdir())) == 2
    by_deltas(stated, *ALL)
    table = stated.engine.table("demo.star")
    reached = table.latest_snapshot_id()
    add(stated, 6)
    by_deltas(stated, "star")
    table.rollback(reached)
    by_deltas(stated, "star")


@pytest.mark.nightly  # by day spark/test_deltas.py: rows of state
def test_affected_keys_of_a_model_with_state_keep_its_state(feed: Shop) -> None:
    """A change without deltas evaluates its groups, and their state; later changes follow deltas again."""
    sql = (
        f"select o.product, avg(o.amount) as mean, count(c.name) / count(*) as known from {ORDERS} o "
        f"left join {PEOPLE} c on c.id = o.customer group by o.product"
    )
    model(feed, "kept", sql, "product", FOLLOWED)
    run(feed, "kept", evaluated="all rows")
    put(feed, "people", {"id": [1], "name": [None], "boss": [1]})
    feed.engine.sql("delete from demo.people where id = 3")
    run(feed, "kept")
    add(feed, 5)
    by_deltas(feed, "kept")


@pytest.mark.nightly  # by day a damaged state; adapter/test_changed_keys_foreign.py
def test_other_queries_and_writers_build_the_state_again(stated: Shop) -> None:
    """Another SQL, a foreign commit and a full refresh; a model that needs no state any more has none."""
    stated.engine.sql("update demo.star set share = 0")
    add(stated, 5)
    run(stated, "star", evaluated="all rows")
    model(stated, "total", f"{TOTAL} where amount > 1", "one", FOLLOWED)
    run(stated, "total", evaluated="all rows")
    stated.dbt("run", "--select", "large", "--full-refresh")
    add(stated, 6)
    by_deltas(stated, *ALL)
    model(stated, "total", f"select 1 as one, count(*) as n from {ORDERS}", "one")
    stated.dbt("run", "--select", "total", "--full-refresh")
    assert STATE_POSITION not in stated.engine.table("demo.total").positions()
