"""Pipelines of `changed_keys` models: after each batch every model has the rows of its full query in DuckDB and Spark.

By day TPC-DI at a tiny scale and one batch, judged by DuckDB; at night TPC-H too, other seeds, many batches, and runs
that are killed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration_tests.pipelines.play import ALL, NOTHING, Played
from integration_tests.pipelines.run import history
from integration_tests.pipelines.tpcdi.feed import TpcdiFeed
from integration_tests.pipelines.tpch.feed import TpchFeed
from integration_tests.soak.query_attack.planted import planted
from tests.doses import examples

CONF = {"spark.sql.shuffle.partitions": "2"}
FULL = examples(0, 1)  # Spark's full refresh doubles the time; by day DuckDB judges alone
SEED = int(os.environ.get("TABLESTORE_SEED", "1"))
# only in the first batch: files of changed customers and accounts had no row before, so no run has read them
TPCDI_IN_FULL = {"dim_account", "dim_customer"}

pytestmark = [pytest.mark.folders, pytest.mark.filterwarnings("ignore")]


def in_full(played: Played) -> set[str]:
    """Models that could not be restricted in some batch, whatever was cheaper."""
    return {run.model for run in played.runs if not run.could}


def restricted(played: Played) -> set[str]:
    """Models with changes that were not compared in full in some batch."""
    return {run.model for run in played.runs if run.strategy not in (ALL, NOTHING)}


@pytest.mark.nightly  # by day TPC-DI, spark/test_deltas.py, spark/test_traced_query.py, random queries of the attack
def test_tpch_models_equal_their_full_queries_after_each_batch(tmp_path: Path) -> None:
    """New and deleted orders, changed customers, parts and suppliers: 27 tables have the rows of their queries, and all
    of them could be restricted.
    """
    played = history(TpchFeed(0.002, 1, 0.1), tmp_path, batches=1, seed=1, conf=CONF, full_each=FULL)
    assert played.findings == []
    # DuckDB after the first load and the batch, Spark after the batch
    assert played.compared == 27 * (2 + FULL)
    assert in_full(played) == set()
    assert len(restricted(played)) >= 15


def test_tpcdi_models_equal_their_full_queries_after_each_day(tmp_path: Path) -> None:
    """Change data capture, full copies, new prices and corrected ones: 22 tables have the rows of their queries, also
    where a model reads others, and dimensions have versions.
    """
    days = examples(1, 2)
    feed = TpcdiFeed(0.01, 1, 0.001)
    played = history(feed, tmp_path, batches=days, seed=1, conf=CONF, full_each=2 * FULL)
    assert played.findings == []
    assert played.compared == 22 * (1 + days + FULL)
    assert in_full(played) <= TPCDI_IN_FULL
    later = {"dim_account"} if days > 1 else set()
    assert {"dim_trade", "fact_market_history"} | later <= restricted(played)


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["dev", "deltas", "affected_keys"])
def test_tpcdi_models_are_right_over_two_hundred_days(tmp_path: Path, target: str) -> None:
    """By the cheapest strategy and by each one that follows changes, 200 days with 34 killed runs: no wrong row."""
    seed = SEED + len(target)
    feed = TpcdiFeed(0.01, seed, 0.001)
    played = history(feed, tmp_path, batches=200, seed=seed, conf=CONF, full_each=20, kills=34, target=target)
    assert played.findings == []
    assert played.kills > 0


@pytest.mark.nightly
def test_tpch_models_are_right_after_killed_runs(tmp_path: Path) -> None:
    """Runs that die by SIGKILL in any model leave nothing behind that the next run would take for done."""
    played = history(
        TpchFeed(0.01, SEED, 0.03), tmp_path, batches=12, seed=SEED, conf=CONF, full_each=4, kills=10
    )
    assert played.findings == []
    assert played.kills > 0


@pytest.mark.nightly
def test_an_error_in_affected_keys_is_found(tmp_path: Path) -> None:
    """Deletes that are not followed, put into the engine on purpose, are wrong rows here."""
    with planted("no-deletes"):
        played = history(TpchFeed(0.002, 1, 0.1), tmp_path, batches=1, seed=1, conf=CONF)
    wrong = " ".join(played.findings)
    assert "differs from DuckDB" in wrong
    assert "differs from Spark" in wrong
