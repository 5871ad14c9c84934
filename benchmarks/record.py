"""docs/performance.json: figures by name, each with the day, the commit and the load of the run that made them."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_FILE = ROOT / "docs" / "performance.json"


def kept(name: str) -> dict[str, Any]:
    """The figures of this name; none: empty."""
    return _known().get(name, {})


def keep(name: str, figures: Mapping[str, Any], *, beside: bool = False) -> None:
    """Figures in place of those of this name. `beside`: of the parts that `figures` has no name for, those of before
    stay, although another run made them.
    """
    known = _known()
    known[name] = {**(known.get(name, {}) if beside else {}), **figures, "made": _made()}
    _FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def _known() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    return found


def _made() -> dict[str, object]:
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "day": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "load": round(os.getloadavg()[1], 1),
    }
