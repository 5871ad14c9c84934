"""`make test-conformance`: the whole suite on each dbt-core, then the page.

Steps      1 a pytest process per environment, one after the other, recording into one file
           2 docs/conformance.json becomes that file   3 docs/conformance.md from it   4 say what passes
INVARIANT  the record begins empty, so that nothing of an earlier run is told as this one's.
Usage      python -m integration_tests.conformance.run
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from integration_tests.conformance.page import (
    CORES,
    PAGE,
    RECORD,
    ROOT,
    render,
    summarise,
)

ENVIRONMENTS = {"1.11": ".venv", "1.12": ".venv-dbt-1.12"}


def main() -> int:
    """0 when no test failed and enough expected classes pass on each dbt-core."""
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        for core in CORES:
            print(f"\n=== conformance on dbt-core {core}", flush=True)
            python = ROOT / ENVIRONMENTS[core] / "bin" / "python"
            command = [
                str(python),
                "-m",
                "pytest",
                "integration_tests/conformance",
                f"--conformance-record={path}",
            ]
            failed |= subprocess.run(command, cwd=ROOT, check=False).returncode != 0
        record = json.loads(path.read_text())
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(render(record))
    lines, enough = summarise(record)
    print("\n".join(lines))
    return int(failed or not enough)


if __name__ == "__main__":
    sys.exit(main())
