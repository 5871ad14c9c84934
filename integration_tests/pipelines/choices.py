"""How often a run of a `changed_keys` model takes the strategy that is the fastest: all of them run, side by side.

Usage      python -m integration_tests.pipelines.choices tpch --scale 0.02 --batches 6
Steps      each batch: the models by each strategy in a schema of its own, and by the strategy that is chosen
Measure    processor seconds of a node, of Python and the JVM, since other work on the machine does not change them; and
           the seconds that passed, which the choice is made by
Right      a (model, batch) with changes whose chosen strategy took at most SLACK more than the fastest one
Medians    the same by medians of each strategy over NEAR batches before and after: on a busy machine one run differs
           from the next by more than SLACK, so that it says little of two nearly equal strategies
Exit       1 where a strategy gave other rows than another
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from dbt.adapters.tablestore.config.changed_keys_config import Way
from dbt.adapters.tablestore.inputs import changed_keys_inputs
from dbt.adapters.tablestore.inputs.run_choice import RunChoice
from dbt.adapters.tablestore.plan.run_costs import ChosenWay
from integration_tests.pipelines.feed import Feed, load
from integration_tests.pipelines.oracle import difference
from integration_tests.pipelines.play import NOTHING, way_of
from integration_tests.pipelines.project import DEV, FORCED, Done, Project
from integration_tests.pipelines.run import FEEDS, SHARE
from tablestore_engine.api import Engine, SparkSettings

SLACK = 0.1  # of the fastest strategy's seconds: less is noise
NEAR = 2
_TICKS = 100  # of the kernel in a second, for user programs


@dataclass(frozen=True)
class Pair:
    """One model in one batch, 0 for the first build. `seconds`, `processor`: by strategy; `chosen`: one of them;
    `reason`: why; `sizes`: those that the choice had.
    """

    model: str
    batch: int
    chosen: str
    reason: str
    seconds: Mapping[str, float]
    processor: Mapping[str, float]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def loss(self, *, is_processor: bool) -> float:
        """Seconds of the chosen strategy over those of the fastest one; 1 is the best."""
        took = self.processor if is_processor else self.seconds
        return took[self.chosen] / max(min(took.values()), 1e-9)


class ProcessorTimes:
    """Hears dbt's events: processor seconds of each node."""

    def __init__(self, engine: Engine) -> None:
        gateway: Any = engine.spark.sparkContext._jvm
        self._jvm = Path(f"/proc/{gateway.java.lang.ProcessHandle.current().pid()}/stat")
        self._begun: dict[str, float] = {}
        self.taken: dict[str, float] = {}

    def __call__(self, event: Any) -> None:
        """One of dbt's events."""
        if event.info.name in ("NodeStart", "NodeFinished"):
            name = event.data.node_info.node_name
            if event.info.name == "NodeStart":
                self._begun[name] = self._now()
            else:
                self.taken[name] = self._now() - self._begun[name]

    def _now(self) -> float:
        own = resource.getrusage(resource.RUSAGE_SELF)
        user, system = self._jvm.read_text().rpartition(")")[2].split()[11:13]
        return own.ru_utime + own.ru_stime + (int(user) + int(system)) / _TICKS


@contextmanager
def heard_sizes() -> Iterator[dict[str, dict[str, int]]]:
    """model → the sizes that its last choice had."""
    found: dict[str, dict[str, int]] = {}

    def noted(*words: Any, **named: Any) -> RunChoice:
        return _Noted(**vars(make(*words, **named)), kept=found.setdefault(words[1].model, {}))

    make = changed_keys_inputs._choice
    with patch.object(changed_keys_inputs, "_choice", noted):
        yield found


@dataclass(frozen=True)
class _Noted(RunChoice):
    kept: dict[str, int] = field(default_factory=dict)

    def choose(self, possible: Iterable[Way], joined: Iterable[str]) -> ChosenWay:
        joined = tuple(joined)
        self.kept.update(asdict(self.sizes(joined)))
        return super().choose(possible, joined)


def measure(feed: Feed, project: Project, engine: Engine, batches: int) -> Iterator[Pair]:
    """After the first load, of each model whose inputs changed in a batch. Raises SystemExit for rows that differ."""
    load(engine, feed, feed.first(), create=True)
    targets, sizes = (DEV, *FORCED), dict[str, dict[str, int]]()
    for number in range(batches + 1):
        if number:
            load(engine, feed, feed.batch(number))
        done: dict[str, dict[str, Done]] = {}
        times = {target: ProcessorTimes(engine) for target in targets}
        for at in range(len(targets)):
            target = targets[(at + number) % len(targets)]
            with heard_sizes() as heard:
                done[target] = project.run(target, times[target])[0]
            sizes = heard if target == DEV else sizes
        _compare(engine, project, done, number)
        taken = {name: one.taken for name, one in times.items()}
        yield from _pairs(number, done, taken, sizes) if number else _builds(done, taken)


def _builds(
    done: Mapping[str, Mapping[str, Done]], taken: Mapping[str, Mapping[str, float]]
) -> Iterator[Pair]:
    for model, one in done[DEV].items():
        seconds, processor = ({str(Way.WHOLE): round(took, 3)} for took in (one.seconds, taken[DEV][model]))
        yield Pair(model, 0, str(Way.WHOLE), "first build", seconds, processor)


def _pairs(
    number: int,
    done: Mapping[str, Mapping[str, Done]],
    taken: Mapping[str, Mapping[str, float]],
    sizes: Mapping[str, Mapping[str, int]],
) -> Iterator[Pair]:
    for model, chosen in done[DEV].items():
        ways = {target: way_of(done[target][model])[0] for target in (DEV, *FORCED)}
        if NOTHING in ways.values() or not chosen.facts.get("choice"):
            continue
        by = {ways[target]: target for target in reversed(FORCED)}
        pair = Pair(
            model,
            number,
            ways[DEV],
            str(chosen.facts["choice"]),
            {way: round(done[target][model].seconds, 3) for way, target in by.items()},
            {way: round(taken[target][model], 3) for way, target in by.items()},
            sizes.get(f"{DEV}.{model}", {}),
        )
        if pair.chosen in pair.seconds:
            yield pair


def _compare(engine: Engine, project: Project, done: Mapping[str, Mapping[str, Done]], number: int) -> None:
    for model in (one for one in project.models if one.key):
        failed = [target for target in (DEV, *FORCED) if done[target][model.name].status != "success"]
        if failed:
            raise SystemExit(f"batch {number}: {model.name} failed: {done[failed[0]][model.name].message}")
        rows = [engine.table(f"{target}.{model.name}").scan().to_arrow() for target in (DEV, *FORCED)]
        for target, others in zip(FORCED, rows[1:], strict=True):
            if wrong := difference(rows[0], others, model.key):
                raise SystemExit(f"batch {number}: {model.name} by {target}: {wrong}")


def _keep(project: Project, names: Sequence[str]) -> None:
    for path in (project.folder / "models").rglob("*.sql") if names else ():
        if path.stem not in names:
            path.unlink()
    project.models = tuple(one for one in project.models if not names or one.name in names)


def steady(pairs: Sequence[Pair]) -> list[Pair]:
    """With medians over neighbouring batches in place of the seconds of one run."""
    found = []
    for pair in pairs:
        near = [one for one in pairs if one.model == pair.model and abs(one.batch - pair.batch) <= NEAR]
        seconds, processor = (
            {way: median(took[way] for took in kind if way in took) for way in pair.seconds}
            for kind in ([one.seconds for one in near], [one.processor for one in near])
        )
        found.append(replace(pair, seconds=seconds, processor=processor))
    return found


def summary(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Shares of right choices, and what the chosen strategies took beside the fastest ones."""
    found: dict[str, Any] = {"pairs": len(pairs), "chosen": {}}
    for pair in pairs:
        found["chosen"][pair.chosen] = found["chosen"].get(pair.chosen, 0) + 1
    for name, is_processor in (("processor", True), ("passed", False)):
        losses = [pair.loss(is_processor=is_processor) for pair in pairs]
        medians = [pair.loss(is_processor=is_processor) for pair in steady(pairs)]
        took = [pair.processor if is_processor else pair.seconds for pair in pairs]
        best, chosen = (
            sum(min(one.values()) for one in took),
            sum(one[pair.chosen] for one, pair in zip(took, pairs, strict=True)),
        )
        found[name] = {
            "fastest": round(sum(one <= 1 for one in losses) / max(len(pairs), 1), 3),
            "right": round(sum(one <= 1 + SLACK for one in losses) / max(len(pairs), 1), 3),
            "right by medians": round(sum(one <= 1 + SLACK for one in medians) / max(len(pairs), 1), 3),
            "seconds over the best": round(chosen / max(best, 1e-9), 3),
        }
    return found


def main(arguments: list[str]) -> int:
    """0 if all strategies gave the same rows."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.pipelines.choices")
    parser.add_argument("pipeline", choices=sorted(FEEDS))
    parser.add_argument("--scale", type=float, default=0.02)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--share", type=float, default=SHARE, help="of the rows that a batch changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=2, help="spark.sql.shuffle.partitions")
    parser.add_argument("--folder", default=None, help="where the warehouse is made")
    parser.add_argument("--models", nargs="*", default=[], help="these alone; they read no other model")
    parser.add_argument("--output", default=None, help="a file for every pair")
    asked = parser.parse_args(arguments)
    conf = {"spark.sql.shuffle.partitions": str(asked.partitions)}
    feed = FEEDS[asked.pipeline](asked.scale, asked.seed, asked.share)
    folder = Path(tempfile.mkdtemp(prefix="choices-", dir=asked.folder))
    pairs: list[Pair] = []
    try:
        project = Project(feed.project, folder, feed.variables, conf)
        _keep(project, asked.models)
        with Engine(project.warehouse, spark=SparkSettings("local[2]", conf=conf)) as engine:
            for pair in measure(feed, project, engine, asked.batches):
                pairs.append(pair)
                print(json.dumps(asdict(pair)), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if asked.output is not None:
            Path(asked.output).write_text(json.dumps([asdict(one) for one in pairs], indent=1) + "\n")
    later = [one for one in pairs if one.batch > asked.batches // 2]
    changed = [one for one in pairs if one.batch]
    print(json.dumps({"all batches": summary(changed), "second half": summary(later)}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
