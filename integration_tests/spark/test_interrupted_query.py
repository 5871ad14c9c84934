"""Ctrl-C and SIGTERM end a program that waits for the rows of a query, at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doses import case_rows

HANG_SECONDS = 120
PROGRAM = """
import signal, threading, time
from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.runtime.interrupts import interrupted_by_sigterm
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
engine = Engine("w", spark=SparkSettings("local[1]"))
tracker = engine.spark.sparkContext.statusTracker()
def tell():
    while not tracker.getActiveJobsIds():
        time.sleep(0.05)
    print("it runs", flush=True)
threading.Thread(target=tell, daemon=True).start()
with interrupted_by_sigterm():
    engine.sql("select count(*) from range(10000000) a cross join range(10000000) b where a.id + b.id < 0")
"""


@pytest.mark.nightly  # by day adapter/test_interrupts.py: a signal in a query
@pytest.mark.parametrize(
    ("number", "raised"), case_rows([(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Terminated")], 1)
)
def test_a_signal_ends_the_wait_for_rows(number: signal.Signals, raised: str, tmp_path: Path) -> None:
    """Not only when the query has ended: this one would take years."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "it runs\n"
    process.send_signal(number)
    try:
        said = process.communicate(timeout=HANG_SECONDS)[1]
    finally:
        process.kill()
    assert process.returncode not in {0, -signal.SIGKILL}
    assert said.rstrip().splitlines()[-1].endswith(raised)
