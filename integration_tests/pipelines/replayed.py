"""The rule that chooses a strategy, replayed over the seconds of all strategies, as `choices --output` has them.

Usage      python -m integration_tests.pipelines.replayed matrix.json --noise 0.2 --load 0.3
Steps      for each model, batch after batch: the rule chooses by the runs so far → what that took, times noise, is a
           run → right, if it took at most SLACK more than the fastest one without noise
Noise      of each run by itself, and a load that neighbours in time share: logarithms with these deviations
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt.adapters.tablestore.config.changed_keys_config import Way
from dbt.adapters.tablestore.plan.run_costs import RowCounts, RunHistory
from integration_tests.pipelines.choices import SLACK

_STAYS = 0.8  # of the load, from one batch to the next


def replay(
    pairs: Sequence[Mapping[str, Any]], noise: float, load: float, seed: int, truth: str
) -> Iterator[tuple[str, int, str, float]]:
    """Of each model and batch: (model, batch, strategy, its seconds over those of the fastest one)."""
    rng = random.Random(seed)
    histories: dict[str, RunHistory] = {}
    now = dict.fromkeys((str(one["model"]) for one in pairs), 0)
    totals = {str(one["model"]): one["sizes"]["total"] for one in reversed(pairs) if one["sizes"]}
    level, batch = 0.0, 0
    for one in pairs:
        if one["batch"] != batch:
            batch, level = one["batch"], _STAYS * level + rng.gauss(0, load) * math.sqrt(1 - _STAYS**2)
        model, took = str(one["model"]), one[truth]
        sizes = RowCounts(**one["sizes"]) if one["sizes"] else RowCounts()
        history = histories.get(model, RunHistory())
        way = history.choose([Way(name) for name in took], sizes).way if batch else Way.WHOLE
        work = (sizes.total or totals[model]) if way == Way.WHOLE else sizes.changed
        seconds = took[str(way)] * math.exp(level + rng.gauss(0, noise))
        begun, now[model] = now[model], now[model] + round(seconds * 1000) + 1
        histories[model] = history.beginning(way, work, begun).ended(now[model])
        if batch:
            yield model, batch, str(way), took[str(way)] / max(min(took.values()), 1e-9)


def shares(
    pairs: Sequence[Mapping[str, Any]], noise: float, load: float, truth: str, seeds: int
) -> dict[str, float]:
    """Of right choices, over `seeds` replays: all batches, and those of the second half."""
    last = max(one["batch"] for one in pairs)
    found = [one for seed in range(seeds) for one in replay(pairs, noise, load, seed, truth)]
    later = [one for one in found if one[1] > last // 2]
    return {
        "right": round(sum(one[3] <= 1 + SLACK for one in found) / len(found), 3),
        "right in the second half": round(sum(one[3] <= 1 + SLACK for one in later) / len(later), 3),
        "over the best": round(sum(one[3] for one in found) / len(found), 3),
    }


def main(arguments: list[str]) -> int:
    """Prints the shares."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.pipelines.replayed")
    parser.add_argument("matrix", nargs="+", type=Path)
    parser.add_argument("--noise", type=float, default=0.15)
    parser.add_argument("--load", type=float, default=0.3)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--truth", choices=("processor", "seconds"), default="processor")
    asked = parser.parse_args(arguments)
    for path in asked.matrix:
        pairs = json.loads(path.read_text())
        print(path.name, json.dumps(shares(pairs, asked.noise, asked.load, asked.truth, asked.seeds)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
