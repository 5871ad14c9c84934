"""What a run of the chaos suite has done, as JSON; docs/generate.py makes a section of docs/reliability.md of it."""

from __future__ import annotations

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from confluent_kafka import libversion

from integration_tests.chaos.world import World
from tablestore_engine.devservers.java_bundles import KAFKA_VERSION

ROOT = Path(__file__).resolve().parents[2]
REPORTS = {1: ROOT / "docs" / "chaos.json", 3: ROOT / "docs" / "chaos-three.json"}
CHECKED = (
    *("snapshots", "acknowledged", "messages", "sent again or taken back"),
    *("told by readers", "starts without a boundary", "lost", "doubled", "wrong"),
)


def make_report(
    world: World, checked: Mapping[str, int], accidents: Mapping[str, int], epochs: int, seconds: float
) -> dict[str, Any]:
    """`checked` as the judges counted."""
    points: dict[str, Counter[str]] = {}
    for line, count in world.count_traps().items():
        action, point = line.split()
        points.setdefault(point, Counter())[action] = count
    return {
        "seed": world.seed,
        "brokers": world.brokers.count,
        "seconds": round(seconds),
        "epochs": epochs,
        "kills": world.kills,
        "points": {point: dict(sorted(points[point].items())) for point in sorted(points)},
        "faults": {"broker killed": 0, **dict(sorted(world.faults.items()))},
        "network": {str(fault): count for fault, count in sorted(world.brokers.counts().items())},
        "requests": dict(sorted(world.brokers.requests().items())),
        "accidents": dict(sorted(accidents.items())),
        "errors that passed": dict(sorted(world.count_errors().items())),
        "checked": {name: checked.get(name, 0) for name in CHECKED},
        "versions": {
            "Kafka": KAFKA_VERSION,
            "librdkafka": libversion()[0],
            "confluent-kafka": version("confluent-kafka"),
            "Python": platform.python_version(),
        },
    }


def save_report(report: Mapping[str, Any]) -> None:
    """For the documentation."""
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    REPORTS[report["brokers"]].write_text(
        json.dumps({"commit": said.stdout.strip(), **report}, indent=1, sort_keys=True) + "\n"
    )
