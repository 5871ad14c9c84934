"""The peer of the first workload: pypaimon in the environment that the interop suite makes and keeps."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Protocol

from integration_tests.interop.environments import PYPAIMON

SCRIPT = Path(__file__).parent / "peer_pypaimon.py"


class SheetLike(Protocol):
    """Where figures go."""

    seconds: dict[str, list[float]]
    facts: dict[str, object]


def run_pypaimon(
    sheet: SheetLike, folder: Path, base: Path, batches: list[Path], expected: tuple[int, int, int]
) -> None:
    """Seconds of pypaimon go into the sheet."""
    # -P: modules of this folder have names of packages
    python = [str(PYPAIMON.python()), "-P"]
    command = [*python, str(SCRIPT), str(folder / "pypaimon"), str(base), *map(str, batches)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode != 0:
        raise SystemExit(f"pypaimon failed: {done.stderr[-2000:]}")
    result = json.loads(done.stdout.splitlines()[-1])
    if tuple(result["checksum"]) != expected:
        raise SystemExit(f"pypaimon: expected {expected}, got {result['checksum']}")
    sheet.seconds["load: pypaimon"] = [result["load"]]
    sheet.seconds["upsert 200 k: pypaimon"] = result["upserts"]
    sheet.seconds["read to Arrow: pypaimon"] = [result["read"]]
    for name in ("load: pypaimon", "upsert 200 k: pypaimon", "read to Arrow: pypaimon"):
        print(f"  {name:<44} {min(sheet.seconds[name]):8.3f} s", flush=True)
