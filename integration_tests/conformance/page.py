"""docs/conformance.md from docs/conformance.json: which classes of dbt-tests-adapter pass, on which dbt-core.

Steps      1 list the originals  2 judge each for each version  3 group by area
INVARIANT  a class passes only if each of its test functions passed in one class of ours that inherits from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration_tests.conformance.inventory import find_originals, list_tests, reason_not_expected

ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "docs" / "conformance.json"
PAGE = ROOT / "docs" / "conformance.md"
CORES = ("1.11", "1.12")
EXPECTED_AT_LEAST = 187
# Expected classes that do not run, or not whole.
EXCEPTIONS: Mapping[str, str] = {
    "utils.test_current_timestamp.BaseCurrentTimestampNaive": "either this or Aware applies to a database: TIMESTAMP "
    "is an instant here and comes back with its zone, so Aware runs",
}


@dataclass(frozen=True)
class Verdict:
    """Of one original on one dbt-core: `state` is passes, differs, fails or not run; `how` says what ours changes."""

    state: str
    how: str


def _how(ours: Mapping[str, Any]) -> str:
    """What a class of ours changes, in words; empty when it is the original as it is."""
    if ours["differs"]:
        return f"**differs**: {ours['differs']}"
    fixtures = [name for name in ours["fixtures"] if name != "spark_sql"]
    parts = ["SQL in Spark's words"] if "spark_sql" in ours["fixtures"] else []
    if fixtures:
        parts.append("fixtures " + ", ".join(f"`{name}`" for name in fixtures))
    if ours["expected"]:
        parts.append("expected values " + ", ".join(f"`{name}`" for name in ours["expected"]))
    return f"{'; '.join(parts)} ({ours['says'].rstrip('.')})" if parts else ""


def judge(name: str, tests: tuple[str, ...], classes: Mapping[str, Any]) -> Verdict:
    """The best of our classes that stand for the original: first those that change least."""
    ours = [found for found in classes.values() if name in found["originals"]]
    passing = [found for found in ours if all(found["tests"].get(test) == "passed" for test in tests)]
    if passing:
        best = min(passing, key=lambda found: (bool(found["differs"]), len(_how(found)), found["originals"]))
        return Verdict("differs" if best["differs"] else "passes", _how(best))
    ran = {outcome for found in ours for outcome in found["tests"].values()}
    if ran <= {"skipped"}:
        return Verdict("not run", "")
    missing = sorted({test for found in ours for test in tests if found["tests"].get(test) != "passed"})
    return Verdict("fails", "does not pass: " + ", ".join(f"`{test}`" for test in missing))


_MARKS = {"passes": "✓", "differs": "✓ differs", "fails": "✗", "not run": "–"}


def render(record: Mapping[str, Any]) -> str:
    """The whole page."""
    verdicts = {
        name: tuple(judge(name, list_tests(cls), record.get(core, {}).get("classes", {})) for core in CORES)
        for name, cls in find_originals().items()
    }
    expected = {name: found for name, found in verdicts.items() if reason_not_expected(name) is None}
    return (
        "\n".join([*_opening(record, expected), *_differences(expected), *_areas(verdicts)]).rstrip() + "\n"
    )


def count_passing(record: Mapping[str, Any], core: str) -> tuple[int, int]:
    """(expected classes that pass, expected classes)."""
    states = Counter(
        judge(name, list_tests(cls), record.get(core, {}).get("classes", {})).state
        for name, cls in find_originals().items()
        if reason_not_expected(name) is None
    )
    return states["passes"] + states["differs"], sum(states.values())


_TITLE = """\
<!-- Written by `make test-conformance`; do not edit. -->
# Conformance with dbt

dbt Labs publishes what dbt expects of an adapter as test classes (`dbt-tests-adapter`). This page says what became of
each: `make test-conformance` runs them all, against a real Spark, for each dbt-core that is supported.

| dbt-core | expected classes | pass | of them with a difference | do not | versions |
|---|---|---|---|---|---|"""
_LEGEND = """
A class *passes* (✓) when each of its test functions passed unchanged. *Fixtures* and *expected values* are models,
seeds, names of types and messages that the originals let an adapter replace; here they say in Spark SQL what the
original says in Postgres'. *Differs* means that a check itself was replaced, be it the test function or a function
that it checks by; the reason follows. – was not run on that version, or not yet again.
`make test` runs a selection of the classes. Their session has `spark.sql.storeAssignmentPolicy=LEGACY`, because some
insert text into columns of DATE and TIMESTAMP, which Spark refuses by default.
"""


def summarise(record: Mapping[str, Any]) -> tuple[list[str], bool]:
    """(a line per dbt-core, whether each passes EXPECTED_AT_LEAST of the expected classes)."""
    counts = {core: count_passing(record, core) for core in CORES}
    lines = [
        f"dbt-core {core}: {some} of {all_} expected classes pass" for core, (some, all_) in counts.items()
    ]
    return lines, all(some >= EXPECTED_AT_LEAST for some, _ in counts.values())


def _opening(record: Mapping[str, Any], expected: Mapping[str, tuple[Verdict, ...]]) -> list[str]:
    lines = [_TITLE]
    for index, core in enumerate(CORES):
        states = Counter(found[index].state for found in expected.values())
        versions = ", ".join(
            f"{name} {text}" for name, text in record.get(core, {}).get("versions", {}).items()
        )
        passing, rest = states["passes"] + states["differs"], states["fails"] + states["not run"]
        lines.append(f"| {core} | {len(expected)} | {passing} | {states['differs']} | {rest} | {versions} |")
    return [*lines, _LEGEND]


def _differences(expected: Mapping[str, tuple[Verdict, ...]]) -> list[str]:
    rows = [
        (name, EXCEPTIONS.get(name) or found[0].how)
        for name, found in expected.items()
        if any(verdict.state != "passes" for verdict in found)
    ]
    lines = ["## Expected, and not just as dbt has it", "", "| class | what and why |", "|---|---|"]
    return [*lines, *(f"| `{name}` | {why} |" for name, why in rows), ""]


def _areas(verdicts: Mapping[str, tuple[Verdict, ...]]) -> list[str]:
    lines: list[str] = []
    for area in sorted({name.split(".")[0] for name in verdicts}):
        lines += [
            f"## {area}",
            "",
            f"| class | {' | '.join(CORES)} | how |",
            f"|---|{'---|' * len(CORES)}---|",
        ]
        for name, found in verdicts.items():
            if name.split(".")[0] == area:
                marks = " | ".join(_MARKS[verdict.state] for verdict in found)
                lines.append(f"| `{'.'.join(name.split('.')[1:])}` | {marks} | {_explain(name, found)} |")
        lines.append("")
    return lines


def _explain(name: str, found: tuple[Verdict, ...]) -> str:
    """What ours changes; of a class that does not pass everywhere, first why that is so."""
    reason = reason_not_expected(name)
    known = f"not expected: {reason}" if reason else EXCEPTIONS.get(name, "")
    hows = [known] if any(one.state in ("fails", "not run") for one in found) else []
    return "; ".join(dict.fromkeys(how for how in (*hows, *(one.how for one in found)) if how))
