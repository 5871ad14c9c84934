"""Processor time of a suite has that of processes that nobody waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_BUSY = "import os\nwhile sum(os.times()[:2]) < 0.6: pass"
_ORPHAN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_BUSY!r}])"
# it ends when both others have closed its pipe
_COMMAND = f"""import subprocess, sys
with subprocess.Popen([sys.executable, "-c", {_ORPHAN!r}], stdout=-1) as child:
    child.stdout.read()
sys.exit(3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give such processes to their first one")
def test_a_process_whose_parent_has_ended_counts(tmp_path: Path) -> None:
    """As a JVM behind a command. The status of the command is passed on."""
    file = tmp_path / "seconds"
    command = [sys.executable, "-c", _COMMAND]
    done = subprocess.run([sys.executable, "-m", "tests.processor_time", str(file), *command], check=False)
    assert done.returncode == 3
    assert float(file.read_text()) >= 0.6
