"""Histories one after another, findings made small, counts at the end."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from integration_tests.soak.query_attack.findings import ALL, DELTAS, KEYS, UNKNOWN, Finding, Report
from integration_tests.soak.query_attack.history import History, random_history
from integration_tests.soak.query_attack.planted import CLAUSES, planted
from integration_tests.soak.query_attack.play import play
from integration_tests.soak.query_attack.queries import LINEAR
from integration_tests.soak.query_attack.record import QueryRecord
from integration_tests.soak.query_attack.shrink import shown, shrunk

MODELS = 30


@dataclass(frozen=True)
class Attack:
    """`count` queries, `changes` rounds each.

    plant        an error to put into the adapter
    spark_each   every n-th comparison is made in Spark as well
    shrinks      so many findings are made small
    stop_after   so many findings end the run, at the end of a round
    record       projects that it has are not played again
    seconds      no project begins later
    linear       share of queries whose changes add up
    """

    seed: int
    count: int
    changes: int
    models: int = MODELS
    plant: str | None = None
    spark_each: int = 1
    shrinks: int = 3
    stop_after: int = 10
    linear: float = LINEAR
    record: QueryRecord | None = None
    seconds: float = math.inf

    def run(self) -> Report:
        """All histories; findings are printed as they come."""
        report, left, number, ends = Report(), self.count, 0, time.monotonic() + self.seconds
        with planted(self.plant) if self.plant else nullcontext():
            while left > 0 and len(report.findings) < self.stop_after:
                models, seed = min(self.models, left), f"{self.seed}/{number}"
                known = None if self.record is None else self.record.find(seed, models, self.changes)
                if known is not None:
                    report.counts += known
                elif time.monotonic() < ends:
                    self._one(seed, models, report)
                left, number = left - models, number + 1
        return report

    def _one(self, seed: str, models: int, total: Report) -> None:
        started, report, known = time.monotonic(), Report(), len(total.findings)
        history = random_history(seed, models, self.changes, CLAUSES.get(self.plant or ""), self.linear)
        folder = Path(tempfile.mkdtemp(prefix="attack-"))
        report.counts["queries"] += models
        report.counts["projects"] += 1
        try:
            play(history, folder, report, self.spark_each, self.stop_after - known)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if self.record is not None:
            self.record.keep(seed, self.changes, report.recorded())
        total.join(report)
        seconds, done, found = time.monotonic() - started, report.counts["runs"], report.findings
        local = {name: total.counts[f"local runs by {name}"] for name in (DELTAS, KEYS, ALL, UNKNOWN)}
        print(
            f"queries: {seed}: {done} runs in {seconds:.0f} s ({done / seconds:.1f}/s), {len(found)} found",
            flush=True,
        )
        print(f"  local runs so far: {local}", flush=True)
        clauses = [f"{count} {text}" for (is_local, text), count in total.clauses.most_common() if is_local]
        print("".join(f"  local, all rows: {one}\n" for one in clauses[:8]), end="", flush=True)
        for index, finding in enumerate(found):
            print(f"\n{finding}", flush=True)
            if known + index < self.shrinks:
                self._shrink(history, finding)

    def _shrink(self, history: History, finding: Finding) -> None:
        small = shrunk(history, finding)
        if small is None:
            print("the model alone, with the same changes, is right", flush=True)
            return
        print(f"--- smaller\n{shown(small[0])}\n{small[1].detail}\n---", flush=True)
