"""The dbt project of a history on disk, and dbt run over it."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from integration_tests.interpreted import INTERPRETED
from integration_tests.soak.query_attack.history import History
from integration_tests.soak.query_attack.queries import Model, View
from integration_tests.soak.query_attack.relation import render
from integration_tests.soak.query_attack.world import SCHEMA
from tablestore_demo.dbt_session import BuildResult, DbtSession
from tablestore_engine.api.changed_keys import ChangedKeys

# Many short plans: no code generation, no replanning, no reports. What a query gives is the same.
SPARK = {
    "spark.sql.shuffle.partitions": "1",
    **INTERPRETED,
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Xmn400m"
    " -XX:MetaspaceSize=400m -XX:ParallelGCThreads=1",
}


def redefined(number: int) -> str:
    """What makes the session's function."""
    return f"create or replace temporary function moved(x bigint) returns bigint return x + {number}"


STRATEGIES = ("deltas", "deltas", "deltas", "affected_keys", "affected_keys", "all_rows")


def strategy_of(seed: str, model: str, number: int) -> str:
    """At random, another in each round: a run follows what runs by other strategies have left."""
    return random.Random(f"{seed} {model} {number}").choice(STRATEGIES)


@dataclass
class Project:
    """`names`: what stands in a model's text for each input."""

    folder: Path
    history: History
    names: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        sources = {one.name: f"{{{{ source('raw', '{one.name}') }}}}" for one in self.history.tables}
        made: list[View | Model] = [*self.history.views, *self.history.models]
        self.names = {**sources, **{one.name: f"{{{{ ref('{one.name}') }}}}" for one in made}}
        self._write_files()

    def _write_files(self) -> None:
        tables = [{"name": one.name} for one in self.history.tables]
        output = {"type": "tablestore", "warehouse": "./warehouse", "schema": SCHEMA, "threads": 2,
                  "spark": {"master": "local[2]", "conf": SPARK}}  # fmt: skip
        self.redefine(0)
        self._write("profiles.yml", yaml.safe_dump({"attack": {"target": "dev", "outputs": {"dev": output}}}))
        sources = {"sources": [{"name": "raw", "schema": SCHEMA, "tables": tables}]}
        self._write("models/sources.yml", yaml.safe_dump(sources))
        for view in self.history.views:
            self.write_view(view, view.texts[0])
        for model in self.history.models:
            self.write_model(model)

    def redefine(self, number: int) -> None:
        """The session's function, before the next runs."""
        self._write(
            "dbt_project.yml", yaml.safe_dump({"name": "attack", "version": "1.0", "profile": "attack",
                                               "on-run-start": [redefined(number)],
                                               "flags": {"send_anonymous_usage_stats": False}})
        )  # fmt: skip

    def write_view(self, view: View, text: str) -> None:
        """With one of its texts."""
        kind = "ephemeral" if view.ephemeral else "view"
        self._write(
            f"models/{view.name}.sql", f"{{{{ config(materialized='{kind}') }}}}\n{self._sql(text)}\n"
        )

    def write_model(self, model: Model, number: int = 0) -> None:
        """By changed_keys, as in the round of this number."""
        config: dict[str, Any] = {
            "materialized": "incremental",
            "incremental_strategy": "changed_keys",
            "on_schema_change": "append_new_columns",
            "unique_key": list(model.key),
            "affected_limit": 1.0,
        }
        config["changed_keys"] = {"strategy": strategy_of(self.history.seed, model.name, number)}
        if model.affected_by:
            config["affected_by"] = {name: list(given) for name, given in model.affected_by}
        items = ", ".join(f"{name}={json.dumps(value)}" for name, value in config.items())
        self._write(f"models/{model.name}.sql", f"{{{{ config({items}) }}}}\n{self._sql(model.text)}\n")

    def remove(self, name: str) -> None:
        """A model or view is run no more."""
        (self.folder / f"models/{name}.sql").unlink(missing_ok=True)

    def compiled(self, name: str) -> str:
        """The text of a model as dbt has given it to the adapter last."""
        return (self.folder / f"target/compiled/attack/models/{name}.sql").read_text()

    def run(self, skipped: Collection[str], moment_ms: int) -> BuildResult:
        """All models but some, at this moment."""
        words = ["--log-level", "none", "--log-level-file", "none"]
        for name in sorted(skipped):
            words += ["--exclude", name]
        with patch.object(ChangedKeys, "moment_ms", lambda _: moment_ms):
            return DbtSession(self.folder).invoke("run", *words)

    def _sql(self, text: str) -> str:
        return render(text, self.names, spark=True)

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
