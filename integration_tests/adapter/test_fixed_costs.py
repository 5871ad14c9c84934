"""What a run of a `changed_keys` model with few changed rows asks Spark for: counts that do not depend on rows.

WHY        each costs time in every run: a job 20 ms and more, an analysis as much, a call to the JVM 0.1 to 0.3 ms.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from py4j.clientserver import JavaClient

from integration_tests.adapter.conftest import Shop
from tablestore_engine.spark.hidden_tables import HiddenTables

_START = re.compile(r"^\d+ of \d+ START .* (?:demo\.)?(\w+) \.+ \[")
_MODEL = "{{{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='{key}'{more}) }}}} "
_TOTALS = "select g, count(*) as n, sum(v) as s from {{ ref('fed') }} group by g"
_JOIN = "select f.id, f.v, d.name from {{ ref('fed') }} f join {{ ref('dim') }} d on f.g = d.g"
_KEYS = ", changed_keys={{'strategy': 'affected_keys'}}".format()
MODELS = {
    "groups": _MODEL.format(key="g", more="") + _TOTALS,
    "joined": _MODEL.format(key="id", more="") + _JOIN,
    "by_keys": _MODEL.format(key="g", more=_KEYS) + _TOTALS,
}
# Of a later run: Spark jobs, analyses and statements of Spark, calls to the JVM; the last rounded up. Of the analyses
# three register the input's new state in the first model. Affected keys: a job for their rows.
LIMITS = {"groups": (0, 4, 250), "joined": (0, 1, 250), "by_keys": (1, 1, 260)}
HOW = {"groups": "deltas", "joined": "deltas", "by_keys": "affected keys"}


@pytest.fixture
def counts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    """Of the command that runs, by node."""
    found: dict[str, Counter[str]] = {}
    node = [Counter[str]()]

    def hear(line: str) -> None:
        if started := _START.match(line):
            node[0] = found[started[1]] = Counter()

    inner = JavaClient.send_command

    def send(self: JavaClient, command: str, *arguments: Any, **named: Any) -> Any:
        if not command.startswith("m"):  # Python lets go of an object, at any time
            node[0]["calls"] += 1
            node[0]["analyses"] += command.split("\n")[2:3] == ["sql"]
        return inner(self, command, *arguments, **named)

    monkeypatch.setattr(JavaClient, "send_command", send)
    monkeypatch.setattr(HiddenTables, "drop", lambda *_: None)  # what earlier tests of the session have left
    shop.on_line = hear
    return found


def _jobs(shop: Shop) -> int:
    """Spark jobs of the session so far."""
    scheduler: Any = shop.engine.spark.sparkContext._jsc.sc().dagScheduler()
    return int(scheduler.numTotalJobs())


def _feed(shop: Shop, changed: int) -> None:
    rows = [f"{number},{number % 10},{number + (changed if number < 3 else 0)}" for number in range(500)]
    shop.write("seeds/fed.csv", "\n".join(["id,g,v", *rows, ""]))


def test_a_run_with_few_changes_asks_spark_for_little(shop: Shop, counts: dict[str, Counter[str]]) -> None:
    """By deltas and by affected keys: no more jobs, analyses and calls than LIMITS says."""
    shop.output["threads"] = 1
    for name, text in MODELS.items():
        shop.write(f"models/{name}.sql", text)
    shop.write("seeds/dim.csv", "\n".join(["g,name", *(f"{number},n{number}" for number in range(10)), ""]))
    shop.write(
        "seeds/fed.yml",
        "seeds: [{name: fed, config: {primary_key: id}}, {name: dim, config: {primary_key: g}}]",
    )
    for run in range(3):
        _feed(shop, run)
        shop.dbt("build", "--select", "fed", "dim", *MODELS)
    _feed(shop, 3)
    shop.dbt("seed", "--select", "fed")
    seen: dict[str, tuple[int, int, int]] = {}
    for name in MODELS:  # the first of them registers the new state of the input for all
        before = _jobs(shop)
        shop.dbt("run", "--select", name)
        assert shop.response(name)["evaluated"] == HOW[name]
        found = counts[name]
        seen[name] = (_jobs(shop) - before, found["analyses"], found["calls"])
    assert shop.rows("select s from demo.groups where g = 0") == shop.rows(
        "select sum(v) from demo.fed where g = 0"
    )
    too_many = {name: each for name, each in seen.items() if any(map(int.__gt__, each, LIMITS[name]))}
    assert not too_many
