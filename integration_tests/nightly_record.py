"""What each part of the nightly run gave, in docs/nightly.json: a run that ends early leaves the parts that were done.

INVARIANT  a part is recorded with the commit that it ran on, and with `+` behind it where files differ from that.
"""

from __future__ import annotations

import datetime as dt
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs" / "nightly.json"


def ran_on(root: Path = ROOT) -> str:
    """The short commit of a checkout; `unknown` without one."""
    commit = _git(root, "rev-parse", "--short=8", "HEAD")
    others = _git(
        root, "status", "--porcelain", "--untracked-files=no", "--", ".", f":!{RECORD.relative_to(ROOT)}"
    )
    if commit is None:
        return "unknown"
    return f"{commit}+" if others else commit


def keep(
    name: str, *, passed: int, failed: int, skipped: int, seconds: float, seed: str, path: Path = RECORD
) -> None:
    """Replace the figures of one part."""
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    record[name] = {
        "commit": ran_on(),
        "day": dt.datetime.now(dt.UTC).date().isoformat(),
        "seed": seed,
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "seconds": round(seconds),
    }
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")


def _git(root: Path, *words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
