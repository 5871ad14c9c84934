"""Histories of one pipeline: the first load, batches, each model judged and timed beside its full refresh.

Usage   python -m integration_tests.pipelines.run tpch --scale 0.1 --batches 5
        python -m integration_tests.pipelines.run tpcdi --scale 0.05 --batches 200 --seeds 3 --kills 100 --full-each 10
Writes  a table, and `--output` (build/pipelines.json): medians of each model under the pipeline's name and scale;
        with `--runs` each run of each model as well
Exit    1 where a model had wrong rows or failed
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from integration_tests.pipelines.feed import Feed
from integration_tests.pipelines.play import Played, play
from integration_tests.pipelines.project import DEV, FORCED, Project
from integration_tests.pipelines.report import keep, summary, table
from integration_tests.pipelines.tpcdi.feed import TpcdiFeed
from integration_tests.pipelines.tpch.feed import TpchFeed
from tablestore_engine.api import SparkSettings

ROOT = Path(__file__).resolve().parents[2]
FEEDS: Mapping[str, Callable[[float, int, float], Feed]] = {"tpch": TpchFeed, "tpcdi": TpcdiFeed}
SHARE = 0.001  # as the refresh functions of TPC-H


def history(
    feed: Feed,
    folder: Path,
    *,
    batches: int,
    seed: int,
    conf: Mapping[str, str],
    kills: int = 0,
    full_each: int = 1,
    minutes: float | None = None,
    target: str = DEV,
) -> Played:
    """One, in a folder that is empty."""
    project = Project(feed.project, folder, feed.variables, conf)
    settings = SparkSettings("local[2]", conf=conf)
    more = {"kills": kills, "full_each": full_each, "minutes": minutes, "target": target}
    return play(feed, project, settings, batches=batches, seed=seed, **more)


def _asked(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration_tests.pipelines.run")
    parser.add_argument("pipeline", choices=sorted(FEEDS))
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--share", type=float, default=SHARE, help="of the rows that a batch changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="so many histories, from --seed on")
    parser.add_argument("--kills", type=int, default=0, help="killed runs, over all histories")
    parser.add_argument("--full-each", type=int, default=1, help="a full refresh in each n-th batch")
    parser.add_argument("--minutes", type=float, default=None, help="of each history: no batch begins later")
    parser.add_argument(
        "--target", choices=(DEV, *FORCED), default=DEV, help="dev takes the cheapest strategy"
    )
    parser.add_argument("--partitions", type=int, default=None, help="spark.sql.shuffle.partitions")
    parser.add_argument("--folder", default=None, help="where warehouses are made")
    parser.add_argument("--output", default=str(ROOT / "build" / "pipelines.json"))
    parser.add_argument("--runs", default=None, help="a file for every run of every model")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """0 if every model was right in every batch."""
    asked = _asked(arguments)
    conf = {} if asked.partitions is None else {"spark.sql.shuffle.partitions": str(asked.partitions)}
    histories = []
    for at, seed in enumerate(range(asked.seed, asked.seed + asked.seeds)):
        kills = asked.kills // asked.seeds + (at < asked.kills % asked.seeds)
        folder = Path(tempfile.mkdtemp(prefix="pipelines-", dir=asked.folder))
        try:
            feed = FEEDS[asked.pipeline](asked.scale, seed, asked.share)
            histories.append(
                history(
                    feed,
                    folder,
                    batches=asked.batches,
                    seed=seed,
                    conf=conf,
                    kills=kills,
                    full_each=asked.full_each,
                    minutes=asked.minutes,
                    target=asked.target,
                )
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    found = {"scale": asked.scale, "share": asked.share, "seeds": asked.seeds, **summary(histories)}
    name = f"{asked.pipeline} {asked.scale:g}" + (f" {asked.target}" if asked.target != DEV else "")
    keep(Path(asked.output), name, found)
    if asked.runs is not None:
        Path(asked.runs).write_text(json.dumps([one.as_json() for one in histories], indent=1) + "\n")
    print(table(found))
    wrong = found["findings"]
    print(f"{found['compared']} tables compared, {found['kills']} kills, {len(wrong)} findings")
    print("".join(f"  {one}\n" for one in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
