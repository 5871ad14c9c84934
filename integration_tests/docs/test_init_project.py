"""The project of `tablestore init` builds at once, as its last line says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from integration_tests.docs.project import leftovers


def test_a_new_project_builds(tmp_path: Path) -> None:
    """Without brokers: seed, model, data tests and unit tests pass, the rows are there, and nothing of Spark's is."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TABLESTORE_", "DBT_"))
    }
    environment |= {name: os.environ[name] for name in ("TABLESTORE_CACHE",) if name in os.environ}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(*words: str, folder: Path) -> str:
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("tablestore", "init", "shop", folder=tmp_path)
    built = run("dbt", "build", "--no-send-anonymous-usage-stats", folder=tmp_path / "shop")
    assert "PASS=6 WARN=0 ERROR=0 SKIP=0" in built
    assert "3,cy,5.0" in (tmp_path / "shop/seeds/order_events.csv").read_text()
    assert "cy" in run("tablestore", "head", "demo.orders", folder=tmp_path / "shop")
    assert leftovers(tmp_path) == []
