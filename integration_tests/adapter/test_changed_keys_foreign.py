"""changed_keys models whose own table others change, and inputs that are overwritten: nothing is trusted unseen."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.tablestore.inputs.changed_inputs import ChangedInputs, Followed
from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_changed_keys_soundness import feed, model, put, run

__all__ = ["feed"]
ORDERS = "{{ source('raw', 'orders') }}"


def test_commit_of_others_in_the_model_compares_all_rows_once(
    feed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UPDATE, TRUNCATE and a column that is dropped and added again are noticed and repaired, with a warning; options,
    comments and compaction are no such thing. A commit that came while the keys were computed is found by the next run.
    """
    model(feed, "m", f"select id, customer, amount from {ORDERS}")
    run(feed, "m", evaluated="all rows")
    table = feed.engine.table("demo.m")
    for statement in (
        "update demo.m set amount = 99 where id = 1",
        "truncate table demo.m",
        "alter table demo.m drop column amount; alter table demo.m add column amount bigint",
    ):
        for one in statement.split("; "):
            feed.engine.sql(one)
        run(feed, "m", evaluated="all rows")
        assert "is not the model's own" in feed.response("m")["fallback"]
        assert any("all rows are compared" in line for line in feed.shown)
        run(feed, "m")
    feed.engine.sql("comment on table demo.m is 'derived'")
    feed.engine.sql("alter table demo.m set tblproperties ('snapshot.num-retained.min' = '12')")
    put(feed, "orders", {"id": [1], "customer": [2], "product": [7], "amount": [5]})
    run(feed, "m")
    table.compact(full=True)
    put(feed, "orders", {"id": [1], "customer": [2], "product": [7], "amount": [6]})
    follow = ChangedInputs.follow

    def followed(*given: Any, **more: Any) -> Followed:
        found = follow(*given, **more)
        feed.engine.sql("update demo.m set amount = 77 where id = 4")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(ChangedInputs, "follow", followed)
        feed.dbt("run", "--select", "m")
    assert feed.rows("select amount from demo.m where id = 4") == [(77,)]
    run(feed, "m", evaluated="all rows")
    assert "is not the model's own" in feed.response("m")["fallback"]
    run(feed, "m")


@pytest.mark.nightly  # by day an input without a changelog in test_changed_keys.py
def test_input_that_is_overwritten_is_followed_by_its_difference(feed: Shop) -> None:
    """A seed has no changelog: few rows are compared, and only the keys that differ are affected."""
    feed.write("seeds/rates.csv", "id,rate\n1,10\n2,20\n3,30\n")
    model(feed, "rated", f"select o.id, r.rate from {ORDERS} o join {{{{ ref('rates') }}}} r on r.id = o.id")
    feed.dbt("seed", "--select", "rates")
    run(feed, "rated", evaluated="all rows")
    feed.write("seeds/rates.csv", "id,rate\n1,10\n2,21\n4,40\n")
    feed.dbt("seed", "--select", "rates")
    run(feed, "rated")
    assert feed.response("rated")["keys_affected"] == 3
    feed.dbt("seed", "--select", "rates")
    run(feed, "rated")
    assert feed.response("rated")["keys_affected"] == 0
