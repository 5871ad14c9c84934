"""The demo's broker, as anybody would type it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tablestore_demo.project_folder import BROKER
from tablestore_engine.api import FixRequest


def run_broker(folder: Path, action: str) -> str:
    """Its JSON answer. Raises FixRequest TS1856."""
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "broker", action, "--json"]
    done = subprocess.run(
        [*command, "--data-dir", str(folder / BROKER)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise FixRequest(
            "TS1856", f"broker {action} failed", why="see above", fix="tablestore demo --no-kafka"
        )
    return done.stdout
