"""The table of docs/reliability.md on `make test-nightly`: of each part its last run.

Rows       from docs/nightly.json, which the run writes, a part when it is done (integration_tests/nightly_record.py)
INVARIANT  a part without a run says so; a part that the run does not have any more is a ValueError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_HEAD = [
    "| part | commit | day | seed | passed | failed | skipped | minutes |",
    "|---|---|---|---|---|---|---|---|",
]


def nightly_lines(record: Mapping[str, Mapping[str, Any]], parts: Collection[str]) -> list[str]:
    """`parts`: names in their order. Raises ValueError."""
    unknown = sorted(set(record) - set(parts))
    if unknown:
        raise ValueError(f"docs/nightly.json has {unknown[0]!r}, which the nightly run does not have")
    return ["", *_HEAD, *(_line(name, record.get(name)) for name in parts), ""]


def _line(name: str, run: Mapping[str, Any] | None) -> str:
    if run is None:
        return f"| {name} | not run | | | | | | |"
    counts = " | ".join(f"{run[key]:,}" for key in ("passed", "failed", "skipped"))
    return (
        f"| {name} | {run['commit']} | {run['day']} | {run['seed']} | {counts} | {run['seconds'] / 60:.0f} |"
    )
