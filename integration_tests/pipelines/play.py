"""One history: the first load, batches with a dbt run after each, and every model judged.

Steps      1 rows into the tables 2 at times a run that is killed 3 `dbt run` (changed_keys) 4 `dbt run --full-refresh`
           of the same models in another schema 5 each model against both full queries: Spark's and DuckDB's
INVARIANT  a figure counts only beside rows that were right: a wrong row or a failed model is a finding.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from dbt.adapters.factory import reset_adapters

from integration_tests.pipelines.feed import SCHEMA, Feed, load
from integration_tests.pipelines.oracle import Oracle, difference
from integration_tests.pipelines.project import DEV, FULL, Done, Model, Project
from tablestore_engine.api import Engine, SparkSettings

ALL, NOTHING = "all rows", "nothing changed"
_KILL_SECONDS = 1.5  # a model that is killed has run at most so long


@dataclass(frozen=True)
class ModelRun:
    """One model in one batch. `strategy`, `why`: how it was computed, and for which reason not by a faster way;
    `could`: it was restricted, or all rows were only cheaper. `full_seconds`: of its full refresh in the same batch, if
    there was one.
    """

    model: str
    batch: int
    strategy: str
    why: str
    could: bool
    seconds: float
    full_seconds: float | None
    keys_affected: int | None
    rows_changed: int
    rows: int


@dataclass
class Played:
    """What a history showed. `findings`: wrong rows and failed models, in words."""

    runs: list[ModelRun] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(
        default_factory=list
    )  # seconds of the whole commands, rows of the inputs
    kills: int = 0
    compared: int = 0  # tables against full queries

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "findings": self.findings,
            "kills": self.kills,
            "compared": self.compared,
            "batches": self.batches,
            "runs": [asdict(one) for one in self.runs],
        }


@dataclass
class Play:
    """`full_each`: each n-th batch and the last one are compared with Spark's full refresh, too, none for 0; DuckDB
    judges all.
    `kills`: so many batches, spread over the history, begin with a killed run. `minutes`: no batch begins later.
    `target`: whose models follow their inputs.
    """

    feed: Feed
    project: Project
    engine: Engine
    batches: int
    seed: int
    full_each: int = 1
    kills: int = 0
    minutes: float | None = None
    target: str = DEV
    played: Played = field(default_factory=Played)

    def run(self) -> Played:
        """All of it."""
        rng = random.Random(self.seed)
        killed = set(rng.sample(range(1, self.batches + 1), min(self.kills, self.batches)))
        started = time.monotonic()
        count = load(self.engine, self.feed, self.feed.first(), create=True)
        print(f"first load: {count:,} rows in {time.monotonic() - started:.1f} s", flush=True)
        self._round(0, count)
        for number in range(1, self.batches + 1):
            if self.minutes is not None and time.monotonic() - started > self.minutes * 60:
                break
            count = load(self.engine, self.feed, self.feed.batch(number))
            if number in killed:
                self._kill(rng)
            self._round(number, count)
        return self.played

    def _kill(self, rng: random.Random) -> None:
        names = [model.name for model in self.project.models if model.key]
        if self.project.run_killed(self.target, rng.choice(names), rng.random() * _KILL_SECONDS):
            self.played.kills += 1

    def _round(self, number: int, count: int) -> None:
        done, seconds = self.project.run(self.target)
        is_full = self.full_each > 0 and (
            (number > 0 and number % self.full_each == 0) or number == self.batches
        )
        full, full_seconds = self.project.run(FULL) if is_full else ({}, None)
        self.played.batches.append(
            {"batch": number, "rows": count, "seconds": seconds, "full_seconds": full_seconds}
        )
        sources = {name: self._rows(SCHEMA, name) for name in self.feed.keys}
        with Oracle(sources) as oracle:
            oracle.compute(self.project)
            for model in self._judged():
                self._judge(model, number, done, full, oracle)
        shown = "" if full_seconds is None else f", full refresh {full_seconds:.1f} s"
        print(
            f"batch {number}: {count:,} rows, dbt run {seconds:.1f} s{shown}; {self._ways(number)}",
            flush=True,
        )

    def _judged(self) -> Iterator[Model]:
        return (model for model in self.project.models if model.key)

    def _rows(self, schema: str, name: str) -> Any:
        return self.engine.table(f"{schema}.{name}").scan().to_arrow()

    def _judge(
        self, model: Model, number: int, done: dict[str, Done], full: dict[str, Done], oracle: Oracle
    ) -> None:
        own, twin = done[model.name], full.get(model.name)
        for kind, one in (("", own), (" (full refresh)", twin)):
            if one is not None and one.status != "success":
                self._find(number, f"{model.name}{kind}: {one.status}: {one.message}")
        if own.status != "success":
            return
        rows = self._rows(self.target, model.name)
        expected = {"DuckDB": oracle.rows(model.name)}
        if twin is not None and twin.status == "success":
            expected["Spark"] = self._rows(FULL, model.name)
        for who, right in expected.items():
            self.played.compared += 1
            wrong = difference(rows, right, model.key)
            if wrong:
                self._find(number, f"{model.name} ({way_of(own)[0]}) differs from {who}: {wrong}")
        if number:
            self._note(model, number, own, twin, rows.num_rows)

    def _note(self, model: Model, number: int, own: Done, twin: Done | None, rows: int) -> None:
        strategy, why = way_of(own)
        self.played.runs.append(
            ModelRun(
                model.name, number, strategy, why, could_restrict(own), round(own.seconds, 3),
                None if twin is None else round(twin.seconds, 3),
                own.facts.get("keys_affected"), own.facts.get("rows_affected") or 0, rows,
            )
        )  # fmt: skip

    def _find(self, number: int, text: str) -> None:
        self.played.findings.append(f"seed {self.seed}, batch {number}: {text}")
        print(f"FOUND {self.played.findings[-1]}", flush=True)

    def _ways(self, number: int) -> str:
        ways = [one.strategy for one in self.played.runs if one.batch == number]
        return ", ".join(f"{ways.count(way)} {way}" for way in dict.fromkeys(ways))


def way_of(done: Done) -> tuple[str, str]:
    """The strategy and the reason that the adapter gives: why all rows are compared, or why there are no deltas."""
    strategy = str(done.facts.get("evaluated") or "unknown")
    why = str(done.facts.get("fallback") or done.facts.get("no_deltas") or "")
    if strategy not in (ALL, "unknown") and not done.facts.get("keys_affected"):
        return NOTHING, why
    return strategy, why


def could_restrict(done: Done) -> bool:
    """Whether a run was restricted, or had a strategy besides all rows that was expected to be slower."""
    expected = done.facts.get("seconds_expected") or {}
    return way_of(done)[0] not in (ALL, "unknown") or set(expected) > {ALL}


def play(feed: Feed, project: Project, settings: SparkSettings, **named: Any) -> Played:
    """A history in the project's folder; keyword arguments are those of Play."""
    with Engine(project.warehouse, spark=settings) as engine:
        played = Play(feed, project, engine, **named).run()
    reset_adapters()
    return played
