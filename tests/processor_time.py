"""Processor time of a suite: of its command and of all processes that started below it, also of those that nobody waits
for. And that of the whole machine.

Usage      python -m tests.processor_time FILE COMMAND …   writes seconds into FILE; ends with the status of COMMAND
WHY        a machine's cores are busy for the whole of `make test`: what a suite uses says how long the run takes, its
           seconds on the clock do not (decision 0164). A process whose parent ends before it goes to the next one above
           that asks for such processes, here to this one (decision 0174): JVMs of commands, brokers, a browser. On
           other systems than Linux they are not counted.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 10  # what runs on after the command, as a broker that a user keeps, is not waited for


def run_counted(command: list[str]) -> tuple[int, float]:
    """Status of the command, and the processor seconds of all that it started and that has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    main = subprocess.Popen(command)
    status: int | None = None
    end = 0.0
    while status is None or time.monotonic() < end:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG if status is not None else 0)
        except ChildProcessError:
            break
        if pid == main.pid:
            status, end = os.waitstatus_to_exitcode(how), time.monotonic() + GRACE_SECONDS
            main.returncode = status
        elif pid == 0:
            time.sleep(0.05)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return status or 0, used.ru_utime + used.ru_stime


def machine_seconds() -> tuple[float, float]:
    """Of all processes since the machine started, and in which a core had nothing to do; 0 where nothing says so."""
    try:
        line = Path("/proc/stat").read_text().splitlines()[0]
    except OSError:
        return 0.0, 0.0
    user, nice, system, idle, waits, *others = (
        int(one) / os.sysconf("SC_CLK_TCK") for one in line.split()[1:9]
    )
    return user + nice + system + sum(others), idle + waits


if __name__ == "__main__":
    ended, seconds = run_counted(sys.argv[2:])
    Path(sys.argv[1]).write_text(f"{seconds:.2f}")
    sys.exit(ended if ended >= 0 else 128 - ended)
