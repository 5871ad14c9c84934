"""Processor time of a suite has that of processes that nobody waits for."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.processor_time import processor_seconds

_BUSY = """import os, sys
while sum(os.times()[:2]) < 1: pass
print(flush=True)
sys.stdin.read()
"""


def test_a_child_that_lives_and_one_that_has_ended_count() -> None:
    """A JVM at the end of its suite lives; a broker has ended, and its exit status was not asked for."""
    before = processor_seconds()
    with subprocess.Popen([sys.executable, "-c", _BUSY], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert processor_seconds() - before >= 1
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert processor_seconds() - before >= 1
