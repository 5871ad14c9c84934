"""What a demo tells people to type next, typed."""

from __future__ import annotations

import subprocess


def type_suggestions(printed: str) -> int:
    """Number of lines. Raises AssertionError where one fails, or says nothing."""
    part = printed.partition("Now yours:")[2]
    lines = [line.strip() for line in part.splitlines() if line.startswith("  ")]
    setup = [line for line in lines if line.startswith(("source ", "cd "))]
    for command in (line for line in lines if line not in setup):
        script = "; ".join(["set -e", *setup, command])
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip()
    return len(lines)
