"""Run import-linter on our packages: `make layers`.

WHY        dbt-core ships `dbt/__init__.py`, so `dbt` is found in site-packages and our part of the namespace is
           not looked at. A folder of links, first on the path, gives the linter just our part of it.
Usage      python -m tests.house.layers
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_import_linter() -> subprocess.CompletedProcess[str]:
    """The linter's run; its output is text."""
    with tempfile.TemporaryDirectory(prefix="layers-") as folder:
        adapters = Path(folder) / "dbt" / "adapters"
        adapters.mkdir(parents=True)
        for package in (adapters.parent, adapters):
            (package / "__init__.py").touch()
        (adapters / "tablestore").symlink_to(ROOT / "dbt" / "adapters" / "tablestore")
        for name in ("tablestore_engine", "tablestore_demo"):
            (Path(folder) / name).symlink_to(ROOT / name)
        command = [
            str(Path(sys.executable).parent / "lint-imports"),
            "--config",
            str(ROOT / ".importlinter"),
            "--no-cache",
        ]
        environment = {**os.environ, "PYTHONPATH": folder}
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )


if __name__ == "__main__":
    done = run_import_linter()
    print(done.stdout, done.stderr)
    sys.exit(done.returncode)
