"""What histories showed, for a file and as a table: each model's strategies, reasons, and medians of its seconds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from integration_tests.pipelines.play import ALL, ModelRun, Played

_HEAD = (
    "| model | could be restricted | was | all rows as cheaper | seconds | full refresh | ratio | why not |\n"
    "|---|---|---|---|---|---|---|---|"
)


def summary(histories: Sequence[Played]) -> dict[str, Any]:
    """Of histories of one pipeline and scale. `could`: runs that could be restricted, of all runs. `incremental`: those
    that did not compare all rows; `cheaper`: those that could, and took all rows as cheaper.

    Seconds are medians over the batches that had a full refresh, so that both sides have the same batches.
    """
    runs = [run for played in histories for run in played.runs]
    names = dict.fromkeys(run.model for run in runs)
    models = {name: _model([run for run in runs if run.model == name]) for name in names}
    return {
        "batches": sum(1 for played in histories for one in played.batches if one["batch"]),
        "kills": sum(played.kills for played in histories),
        "compared": sum(played.compared for played in histories),
        "findings": [one for played in histories for one in played.findings],
        "models": models,
        "seconds": _median([one["seconds"] for one in _with_full(histories)]),
        "full_seconds": _median([one["full_seconds"] for one in _with_full(histories)]),
    }


def _with_full(histories: Sequence[Played]) -> list[dict[str, Any]]:
    batches = [one for played in histories for one in played.batches]
    return [one for one in batches if one["batch"] and one["full_seconds"] is not None]


def _model(runs: Sequence[ModelRun]) -> dict[str, Any]:
    both = [run for run in runs if run.full_seconds is not None]
    seconds, full = _median([run.seconds for run in both]), _median([run.full_seconds or 0.0 for run in both])
    return {
        "runs": len(runs),
        "could": sum(run.could for run in runs),
        "incremental": sum(run.strategy != ALL for run in runs),
        "cheaper": sum(run.could and run.strategy == ALL for run in runs),
        "strategies": dict(Counter(run.strategy for run in runs).most_common()),
        "why": dict(Counter(run.why for run in runs if run.why).most_common()),
        "seconds": seconds,
        "full_seconds": full,
        "rows": runs[-1].rows,
        "rows_changed": _median([run.rows_changed for run in runs]),
        "keys_affected": _median([run.keys_affected for run in runs if run.keys_affected is not None]),
    }


def _median(values: Sequence[float]) -> float | None:
    return round(median(values), 3) if values else None


def table(found: dict[str, Any]) -> str:
    """In Markdown, a row for each model."""
    lines = [_HEAD]
    for name, one in found["models"].items():
        ratio = f"{one['seconds'] / one['full_seconds']:.2f}" if one["full_seconds"] else ""
        why = "; ".join(one["why"])
        lines.append(
            f"| {name} | {one['could']} of {one['runs']} | {one['incremental']} | {one['cheaper']} "
            f"| {one['seconds']} | {one['full_seconds']} | {ratio} | {why} |"
        )
    return "\n".join(lines)


def keep(path: Path, name: str, found: dict[str, Any]) -> None:
    """Under `name` in the file, beside what others have written there."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept[name] = found
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")
