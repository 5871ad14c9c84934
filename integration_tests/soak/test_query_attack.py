"""A dose of the query attack with fixed seeds: random queries by changed_keys, random changes, no wrong row."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.soak.query_attack.attack import Attack
from integration_tests.soak.query_attack.planted import DELTAS, PLANTS
from integration_tests.soak.query_attack.queries import LINEAR
from integration_tests.soak.query_attack.record import FOUND, QueryRecord
from tests.doses import examples

SEED, QUERIES, CHANGES = 20261125, 24, 4
DAY_QUERIES, DAY_CHANGES = 3, 2  # the nightly run makes 3,000 queries besides


def test_random_queries_equal_their_full_query() -> None:
    """Random models over random tables are what DuckDB and Spark compute, after the first run and each round."""
    queries, changes = examples(DAY_QUERIES, QUERIES), examples(DAY_CHANGES, CHANGES)
    report = Attack(SEED, queries, changes, models=20, spark_each=4).run()
    print("\n".join(report.lines()))
    assert not report.findings, "\n".join(map(str, report.findings))
    assert report.counts["DuckDB and Spark disagree"] == 0
    assert report.counts["models that Spark cannot run"] == 0
    assert report.counts["comparisons with DuckDB"] > queries


def test_a_project_is_kept_unless_something_was_wrong(tmp_path: Path) -> None:
    """A run continues after the projects of the file; other numbers of rounds, and wrong rows, are played again."""
    path = tmp_path / "queries.json"
    record = QueryRecord(path)
    record.keep("7/0", 5, {"queries": 30, "runs": 140, FOUND: 0})
    record.keep("7/10", 5, {"queries": 30, "runs": 130, FOUND: 1})
    again = QueryRecord(path)
    found = again.find("7/0", 30, 5)
    assert found is not None
    assert found["runs"] == 140
    assert [again.find(*one) for one in (("7/0", 30, 4), ("7/0", 9, 5), ("7/10", 30, 5), ("7/2", 30, 5))] == [
        None
    ] * 4
    assert (again.seed, again.total()) == (7, {"queries": 60, "runs": 270, FOUND: 1})
    attack = Attack(7, 30, 5, record=again, seconds=0).run()
    assert (attack.counts["runs"], attack.findings) == (140, [])


@pytest.mark.nightly
@pytest.mark.parametrize("plant", ["only-after", "single-as-inner", *DELTAS])
def test_a_planted_error_is_found(plant: str) -> None:
    """The attack sees a run that forgets keys before a change, one that loses look-ups that find nothing, and deltas
    that lose a sign, old states, removed extremes, NULL or groups.
    """
    assert plant in PLANTS
    queries, changes, linear = (120, 6, 1.0) if plant in DELTAS else (QUERIES, CHANGES, LINEAR)
    attack = Attack(SEED, queries, changes, models=20, plant=plant, shrinks=0, stop_after=1, linear=linear)
    report = attack.run()
    assert [one.kind for one in report.findings][:1] == ["wrong rows"]
