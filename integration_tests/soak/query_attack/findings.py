"""What an attack found, and what it counts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from integration_tests.soak.query_attack.queries import TIME, Model
from integration_tests.soak.query_attack.record import FOUND

DELTAS, KEYS, ALL, UNKNOWN = "deltas", "affected keys", "all rows", "unknown"
_WORDS = re.compile(r"\b(demo\.\w+|q\d+(\.\w+)?|m\d+|v\d+|\d+)\b|`[^`]*`|'[^']*'")


@dataclass(frozen=True)
class Finding:
    """A wrong row, or an error where the full query runs. `round`: 0 is the first run."""

    seed: str
    model: Model
    round: int
    kind: str
    detail: str

    def __str__(self) -> str:
        features = ", ".join(sorted(self.model.features))
        return f"{self.kind}: seed {self.seed}, {self.model.name}, round {self.round} [{features}]\n{self.detail}"


@dataclass
class Report:
    """Counts over projects."""

    counts: Counter[str] = field(default_factory=Counter)
    ways: Counter[tuple[str, bool, str]] = field(default_factory=Counter)  # feature, local, way
    clauses: Counter[tuple[bool, str]] = field(default_factory=Counter)  # local, why all rows were compared
    no_deltas: Counter[str] = field(
        default_factory=Counter
    )  # why keys were evaluated where deltas were allowed
    codes: Counter[tuple[bool, str]] = field(default_factory=Counter)  # local, TS code of the first run
    findings: list[Finding] = field(default_factory=list)

    def tell_way(self, model: Model, way: str, clause: str) -> None:
        """One run of a model whose inputs changed."""
        self.counts[f"runs by {way}"] += 1
        self.counts["runs that use the time"] += TIME in model.features
        if model.local:
            self.counts[f"local runs by {way}"] += 1
        for feature in model.features | {"any"}:
            self.ways[feature, model.local, way] += 1
        if clause:
            self.clauses[model.local, shortened(clause)] += 1

    def tell_deltas(self, evaluated: int, reason: str) -> None:
        """One run of a model that may have deltas: keys that it evaluated besides, or why it has none."""
        self.counts["runs by deltas that evaluate keys"] += evaluated > 0
        if reason:
            self.no_deltas[shortened(reason)] += 1

    def tell_refused(self, model: Model, message: str) -> None:
        """At the first run."""
        self.counts["models refused"] += 1
        self.codes[model.local, message[:6]] += 1
        for feature in model.features | {"any"}:
            self.ways[feature, model.local, "refused"] += 1

    def tell_finding(self, finding: Finding) -> None:
        """Wrong or in error."""
        self.findings.append(finding)
        self.counts[finding.kind] += 1
        for feature in finding.model.features | {"any"}:
            self.ways[feature, finding.model.local, finding.kind] += 1

    def recorded(self) -> dict[str, int]:
        """For docs/queries.json: what was done, by which strategies, and what was wrong."""
        kept = ("queries", "projects", "runs", "comparisons with DuckDB", "comparisons with Spark", "rows compared",
                f"runs by {DELTAS}", f"runs by {KEYS}", f"runs by {ALL}", f"runs by {UNKNOWN}",
                *(f"local runs by {way}" for way in (DELTAS, KEYS, ALL, UNKNOWN)),
                "runs by deltas that evaluate keys", "runs that use the time", "models refused")  # fmt: skip
        return {**{name: self.counts[name] for name in kept}, FOUND: len(self.findings)}

    def join(self, other: Report) -> None:
        """Counts and findings of other projects as well."""
        self.counts += other.counts
        self.ways += other.ways
        self.clauses += other.clauses
        self.no_deltas += other.no_deltas
        self.codes += other.codes
        self.findings += other.findings

    def lines(self) -> list[str]:
        """For people."""
        found = [", ".join(f"{value:,} {what}" for what, value in sorted(self.counts.items()))]
        found += [f"  no deltas: {count:5} {text}" for text, count in self.no_deltas.most_common(40)]
        ways = sorted({way for _, _, way in self.ways})
        for local in (True, False):
            found.append(f"\n{'local' if local else 'other'} queries by feature: {' / '.join(ways)}")
            for feature in sorted({name for name, is_local, _ in self.ways if is_local is local}):
                numbers = " / ".join(str(self.ways[feature, local, way]) for way in ways)
                found.append(f"  {feature:28} {numbers}")
            for title, counter in (("all rows since", self.clauses), ("refused by", self.codes)):
                for (is_local, text), count in counter.most_common():
                    if is_local is local:
                        found.append(f"  {title}: {count:5} {text}")
        return found


def shortened(text: str) -> str:
    """A message without its names and numbers."""
    return _WORDS.sub("…", text.splitlines()[0])[:110]
