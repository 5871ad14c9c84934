"""A dbt project in a folder of its own: its models as text, for dbt twice, and for DuckDB.

Targets    `deltas`, `affected_keys` and `all_rows` have the models in schemas of their own, always by that strategy
           `dev` follows its inputs by changed_keys; `full` has the same models in another schema, always by
           --full-refresh: the full query in Spark, over full queries where models read models
INVARIANT  what DuckDB gets is made of the model's file alone, by a template of ours: neither the adapter nor its
           compiled text is part of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import jinja2
import yaml
from dbt.cli.main import dbtRunner

from integration_tests.pipelines.feed import SCHEMA

DEV, FULL = "dev", "full"
FORCED = ("deltas", "affected_keys", "all_rows")
_QUIET = ("--quiet", "--no-use-colors", "--no-write-json", "--log-level-file", "none")
_REF, _CONFIG = re.compile(r"ref\('(\w+)'\)"), re.compile(r"\{\{ config\((.*?)\) \}\}", re.DOTALL)


@dataclass(frozen=True)
class Model:
    """`key`: columns; empty for a view, which is not judged. `reads`: names of models."""

    name: str
    text: str
    key: tuple[str, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """What one dbt command did with one model. `seconds`: the node's, as dbt has them."""

    status: str
    message: str
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)


class Project:
    """A copy of the project at `source` in `folder`, over the warehouse `folder`/warehouse."""

    def __init__(
        self,
        source: Path,
        folder: Path,
        variables: Mapping[str, str],
        conf: Mapping[str, str],
    ) -> None:
        self.folder, self._variables = folder, variables
        shutil.copytree(source, folder, dirs_exist_ok=True)
        outputs = {
            target: {"type": "tablestore", "warehouse": "./warehouse", "schema": target, "threads": 1,
                     "spark": {"master": "local[2]", "conf": dict(conf)}}
            for target in (DEV, FULL, *FORCED)
        }  # fmt: skip
        profile = {"pipelines": {"target": DEV, "outputs": outputs}}
        (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
        self.models = _models(folder / "models")

    @property
    def warehouse(self) -> str:
        """Its address."""
        return str(self.folder / "warehouse")

    def run(self, target: str, *hear: Callable[[Any], None]) -> tuple[dict[str, Done], float]:
        """All models of a target, in this process: what each did, and the seconds of the command. `hear`: gets dbt's
        events.
        """
        started = time.monotonic()
        more = ("--full-refresh",) if target == FULL else ()
        done = dbtRunner(callbacks=list(hear)).invoke([*_QUIET, "run", *more, *self._place(target)])
        results = getattr(done.result, "results", None)
        if not results:
            raise AssertionError(f"dbt did nothing: {done.exception}")
        found = {
            row.node.name: Done(
                str(row.status), row.message or "", row.execution_time, dict(row.adapter_response or {})
            )
            for row in results
        }
        return found, time.monotonic() - started

    def run_killed(self, target: str, model: str, seconds: float) -> bool:
        """The models of a target in a process that dies by SIGKILL so long after `model` has begun.

        Whether it was killed; False: the model was done before.
        """
        command = [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", "--log-level-file", "none", "run"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        child = subprocess.Popen(
            [*command, *self._place(target)],
            cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        for line in child.stdout:
            if f"START sql incremental model {target}.{model} " in line:
                time.sleep(seconds)
                child.kill()
                break
        child.stdout.close()
        return child.wait() < 0

    def duckdb_text(self, model: Model) -> str:
        """The model's query in DuckDB's words, over `raw` and over the models' names."""
        variables = {
            **yaml.safe_load((self.folder / "dbt_project.yml").read_text()).get("vars", {}),
            **self._variables,
        }
        return jinja2.Template(model.text).render(
            config=lambda **_: "",
            source=lambda _, name: f"{SCHEMA}.{name}",
            ref=lambda name: name,
            var=lambda name: variables[name],
            target={"type": "duckdb"},
        )

    def _place(self, target: str) -> list[str]:
        folder = str(self.folder)
        return [
            *("--project-dir", folder, "--profiles-dir", folder, "--target", target),
            *("--target-path", f"{folder}/target-{target}", "--vars", json.dumps(dict(self._variables))),
        ]


def _models(folder: Path) -> tuple[Model, ...]:
    """In an order in which each stands behind those that it reads."""
    found = {}
    for path in sorted(folder.rglob("*.sql")):
        text = path.read_text()
        config = _CONFIG.search(text)
        named = re.search(r"unique_key=(\[.*?\]|'\w+')", config[1]) if config else None
        key = tuple(re.findall(r"'(\w+)'", named[1])) if named else ()
        found[path.stem] = Model(path.stem, text, key, tuple(dict.fromkeys(_REF.findall(text))))
    order = TopologicalSorter({one.name: one.reads for one in found.values()}).static_order()
    return tuple(found[name] for name in order)
